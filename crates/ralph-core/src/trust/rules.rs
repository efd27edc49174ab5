//! The table of trust rules.

use super::{TrustAuthority, TrustBound, TrustFile, TrustScope};

/// A rule for a key, or for one of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustRule {
    pub file: TrustFile,
    /// The key, with dots between its parts; `*` stands for a name that the file chooses.
    pub key: &'static str,
    /// `None` applies to all values.
    pub value: Option<&'static str>,
    pub authority: TrustAuthority,
    /// Values that are harmless despite `authority`.
    pub bound: TrustBound,
    pub scope: TrustScope,
    /// Describes the effect, with `{value}` as placeholder; empty for harmless keys.
    pub allows: &'static str,
}

const fn row(
    file: TrustFile,
    key: &'static str,
    authority: TrustAuthority,
    scope: TrustScope,
    allows: &'static str,
) -> TrustRule {
    TrustRule {
        file,
        key,
        value: None,
        authority,
        bound: TrustBound::Same,
        scope,
        allows,
    }
}

const fn harmless(file: TrustFile, key: &'static str) -> TrustRule {
    row(file, key, TrustAuthority::Harmless, TrustScope::Every, "")
}

impl TrustRule {
    const fn with_bound(mut self, bound: TrustBound) -> Self {
        self.bound = bound;
        self
    }

    const fn for_value(mut self, value: &'static str) -> Self {
        self.value = Some(value);
        self
    }
}

use TrustAuthority::{Proposal, UserOnly};
use TrustFile::{AgentLoop, Agents, Dotenv, Models, Settings, Task};

/// Sandbox providers, strongest first.
const PROVIDERS: TrustBound =
    TrustBound::Order(&["daytona", "tart", "docker-sandbox", "docker", "local"]);

/// Every key that a repository can set, with its authority.
pub const RULES: &[TrustRule] = &[
    row(
        Settings,
        "sandbox.enabled",
        UserOnly,
        TrustScope::Every,
        "commands run on this machine without isolation",
    )
    .with_bound(TrustBound::Order(&["true", "false"])),
    row(
        Settings,
        "sandbox.provider",
        UserOnly,
        TrustScope::Every,
        "commands run in `{value}`, which isolates less than the provider you chose",
    )
    .with_bound(PROVIDERS),
    harmless(Settings, "sandbox.image"),
    row(
        Settings,
        "sandbox.base_image",
        Proposal,
        TrustScope::Containers,
        "the Docker Engine pulls the image `{value}` and builds the agents' images on it",
    ),
    harmless(Settings, "sandbox.reuse_container"),
    harmless(Settings, "sandbox.use_local_image"),
    harmless(Settings, "sandbox.setup_command"),
    harmless(Settings, "sandbox.lockfiles"),
    row(
        Settings,
        "sandbox.registries.*",
        Proposal,
        TrustScope::Containers,
        "commands that install dependencies in containers reach `{value}`",
    )
    .with_bound(TrustBound::Within),
    row(
        Settings,
        "sandbox.network.policy",
        UserOnly,
        TrustScope::Containers,
        "commands in containers reach every host",
    )
    .for_value("allow-all")
    .with_bound(TrustBound::Order(&["deny", "allowlist", "allow-all"])),
    row(
        Settings,
        "sandbox.network.policy",
        Proposal,
        TrustScope::Containers,
        "commands in containers reach the listed hosts",
    )
    .with_bound(TrustBound::Order(&["deny", "allowlist", "allow-all"])),
    row(
        Settings,
        "sandbox.network.allowed",
        Proposal,
        TrustScope::Containers,
        "commands in containers reach `{value}`",
    )
    .with_bound(TrustBound::Within),
    harmless(Settings, "sandbox.network.inspect"),
    row(
        Settings,
        "sandbox.network.provider_tools",
        UserOnly,
        TrustScope::Every,
        "requests to models ask the provider for `{value}`, which works outside the sandbox",
    )
    .with_bound(TrustBound::Within),
    row(
        Settings,
        "sandbox.network.model_requests_per_minute",
        Proposal,
        TrustScope::Containers,
        "an agent sends up to {value} requests per minute to its model (0: any number)",
    )
    .with_bound(TrustBound::Limit),
    row(
        Settings,
        "sandbox.docker.hosts",
        UserOnly,
        TrustScope::Every,
        "ralph connects to the Docker Engine at `{value}`",
    )
    .with_bound(TrustBound::Within),
    row(
        Settings,
        "sandbox.docker.read_only",
        Proposal,
        TrustScope::Containers,
        "commands can write to the container's whole file system",
    )
    .with_bound(TrustBound::Order(&["true", "false"])),
    row(
        Settings,
        "sandbox.resources.memory",
        Proposal,
        TrustScope::Containers,
        "a container uses up to {value} bytes of memory",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "sandbox.resources.cpus",
        Proposal,
        TrustScope::Containers,
        "a container uses up to {value} CPUs",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "sandbox.resources.disk",
        Proposal,
        TrustScope::Containers,
        "a workspace uses up to {value} bytes",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "sandbox.resources.processes",
        Proposal,
        TrustScope::Containers,
        "a container has up to {value} processes",
    )
    .with_bound(TrustBound::AtMost),
    harmless(Settings, "sandbox.resources.timeout_minutes"),
    harmless(Settings, "model.max_outage"),
    row(
        Settings,
        "model.retry_delay",
        UserOnly,
        TrustScope::Every,
        "failed requests to models are retried after {value}",
    ),
    row(
        Settings,
        "model.longest_retry_delay",
        UserOnly,
        TrustScope::Every,
        "failed requests to models are retried at least every {value}",
    ),
    row(
        Settings,
        "agent.fallback",
        UserOnly,
        TrustScope::Every,
        "`{value}` continues the work of an agent that cannot, with its credential and at its provider",
    ),
    harmless(Settings, "git.protected_branches"),
    row(
        Settings,
        "git.state_ref",
        UserOnly,
        TrustScope::Every,
        "the files of a run, with its prompts, are pushed to the repository that it delivers to",
    )
    .with_bound(TrustBound::Order(&["false", "true"])),
    harmless(Settings, "git.worktree.name"),
    harmless(Settings, "git.worktree.email"),
    row(
        Settings,
        "github.api_url",
        UserOnly,
        TrustScope::Every,
        "your GitHub credential is sent to `{value}`",
    ),
    row(
        Settings,
        "ci.required",
        UserOnly,
        TrustScope::Every,
        "a run succeeds although the checks of the source host have not passed",
    )
    .with_bound(TrustBound::Order(&["true", "false"])),
    harmless(Settings, "ci.max_rounds"),
    harmless(Settings, "ci.interval"),
    harmless(Settings, "ci.timeout"),
    harmless(Settings, "ci.grace"),
    row(
        Settings,
        "reviews.respond",
        Proposal,
        TrustScope::Every,
        "the model gets the text of reviews in which members or collaborators request changes",
    )
    .with_bound(TrustBound::Order(&["false", "true"])),
    row(
        Settings,
        "overlap.action",
        UserOnly,
        TrustScope::Every,
        "a run continues although another pull request changes the same files",
    )
    .with_bound(TrustBound::Order(&["pause", "warn"])),
    row(
        Settings,
        "issues.authors",
        UserOnly,
        TrustScope::Every,
        "ralph works on issues of {value}",
    )
    .with_bound(TrustBound::Within),
    harmless(Settings, "issues.labels.spec"),
    harmless(Settings, "issues.labels.ready"),
    harmless(Settings, "issues.labels.in_progress"),
    harmless(Settings, "issues.labels.done"),
    harmless(Settings, "issues.labels.needs_attention"),
    harmless(Settings, "issues.labels.blocked"),
    harmless(Settings, "issues.test_command"),
    harmless(Settings, "issues.engine"),
    harmless(Settings, "issues.agent"),
    row(
        Settings,
        "issues.max_iterations",
        Proposal,
        TrustScope::Every,
        "a run of an issue has up to {value} iterations",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "issues.max_wall_time_minutes",
        Proposal,
        TrustScope::Every,
        "a run of an issue takes up to {value} minutes",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "issues.max_cost_usd_estimate",
        Proposal,
        TrustScope::Every,
        "a run of an issue costs up to {value} dollars",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Settings,
        "issues.max_tokens_total",
        Proposal,
        TrustScope::Every,
        "a run of an issue uses up to {value} tokens",
    )
    .with_bound(TrustBound::Limit),
    row(
        Settings,
        "issues.workers",
        Proposal,
        TrustScope::Every,
        "ralph works on up to {value} issues at the same time",
    )
    .with_bound(TrustBound::AtMost),
    harmless(Settings, "monitoring.show_progress"),
    row(
        Settings,
        "notify.on",
        UserOnly,
        TrustScope::Every,
        "you are notified about {value}",
    ),
    row(
        Settings,
        "notify.bell",
        UserOnly,
        TrustScope::Every,
        "the terminal rings its bell when a run ends",
    ),
    row(
        Settings,
        "notify.desktop",
        UserOnly,
        TrustScope::Every,
        "the desktop shows a notification when a run ends",
    ),
    row(
        Settings,
        "notify.command",
        UserOnly,
        TrustScope::Every,
        "the command {value} is started on this machine when a run ends",
    ),
    row(
        Settings,
        "notify.webhook",
        UserOnly,
        TrustScope::Every,
        "the title and the result of a run are sent to `{value}`",
    ),
    harmless(Models, "profiles.*.litellm_model"),
    harmless(Models, "profiles.*.max_output_tokens"),
    harmless(Models, "profiles.*.temperature"),
    harmless(Models, "profiles.*.tags"),
    row(
        Models,
        "profiles.*.api_base",
        Proposal,
        TrustScope::Profiles,
        "prompts with your code go to {value}, without a key",
    ),
    row(
        Models,
        "profiles.*.api_key_env",
        UserOnly,
        TrustScope::Profiles,
        "the value of `{value}` is sent to a model provider as a key",
    ),
    harmless(Models, "profiles.*.wire"),
    harmless(Models, "profiles.*.response_format"),
    harmless(Models, "profiles.*.timeout_s"),
    row(
        Models,
        "profiles.*.input_cost_per_token",
        Proposal,
        TrustScope::Profiles,
        "an input token counts as ${value} against the budget",
    ),
    row(
        Models,
        "profiles.*.output_cost_per_token",
        Proposal,
        TrustScope::Profiles,
        "an output token counts as ${value} against the budget",
    ),
    row(
        Models,
        "profiles.*.cache_read_input_token_cost",
        Proposal,
        TrustScope::Profiles,
        "a cached input token counts as ${value} against the budget",
    ),
    row(
        Models,
        "profiles.*.cache_creation_input_token_cost",
        Proposal,
        TrustScope::Profiles,
        "an input token written to a cache counts as ${value} against the budget",
    ),
    row(
        Models,
        "profiles.*.cache_creation_input_token_cost_above_1hr",
        Proposal,
        TrustScope::Profiles,
        "an input token written to a cache for an hour counts as ${value} against the budget",
    ),
    row(
        Models,
        "profiles.*.output_cost_per_reasoning_token",
        Proposal,
        TrustScope::Profiles,
        "a reasoning token counts as ${value} against the budget",
    ),
    row(
        Models,
        "price_file",
        Proposal,
        TrustScope::Profiles,
        "model prices come from `{value}`",
    ),
    harmless(Agents, "*.like"),
    row(
        Agents,
        "*.command",
        UserOnly,
        TrustScope::Agents,
        "the agent is started as `{value}`",
    ),
    row(
        Agents,
        "*.model_arguments",
        UserOnly,
        TrustScope::Agents,
        "the agent is started with `{value}`",
    ),
    row(
        Agents,
        "*.environment",
        UserOnly,
        TrustScope::Agents,
        "the agent is started with the variables {value}",
    ),
    row(
        Agents,
        "*.credentials",
        UserOnly,
        TrustScope::Agents,
        "the agent logs in with the credentials {value}",
    ),
    row(
        Agents,
        "*.hosts",
        Proposal,
        TrustScope::Agents,
        "commands in containers reach `{value}`, whatever the network policy says",
    )
    .with_bound(TrustBound::Within),
    harmless(Agents, "*.image"),
    harmless(Agents, "*.prompt"),
    harmless(Agents, "*.output"),
    harmless(Agents, "*.timeouts"),
    row(
        AgentLoop,
        "Dockerfile.sandbox",
        Proposal,
        TrustScope::Containers,
        "the Docker Engine runs this Dockerfile, with a network, to build the image ({value})",
    ),
    row(
        AgentLoop,
        "dependencies",
        Proposal,
        TrustScope::Containers,
        "the Docker Engine installs these packages into the image ({value})",
    ),
    row(
        AgentLoop,
        "type",
        UserOnly,
        TrustScope::Every,
        "commands run in `{value}`, which isolates less than the provider you chose",
    )
    .with_bound(PROVIDERS),
    harmless(AgentLoop, "*"),
    row(
        Task,
        "sandbox_provider",
        UserOnly,
        TrustScope::Every,
        "commands run in `{value}`, which isolates less than the provider you chose",
    )
    .with_bound(PROVIDERS),
    row(
        Task,
        "repo_url",
        Proposal,
        TrustScope::Every,
        "the run works on the repository `{value}`",
    ),
    row(
        Task,
        "sandbox_resources.vcpu",
        Proposal,
        TrustScope::Containers,
        "a container uses up to {value} CPUs",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Task,
        "sandbox_resources.memory_gib",
        Proposal,
        TrustScope::Containers,
        "a container uses up to {value} GiB of memory",
    )
    .with_bound(TrustBound::AtMost),
    row(
        Task,
        "sandbox_resources.disk_gib",
        Proposal,
        TrustScope::Containers,
        "a workspace uses up to {value} GiB",
    )
    .with_bound(TrustBound::AtMost),
    harmless(Task, "task_id"),
    harmless(Task, "base_branch"),
    harmless(Task, "target_branch_prefix"),
    harmless(Task, "target_branch_slug"),
    harmless(Task, "sandbox_image"),
    harmless(Task, "model_profile_default"),
    harmless(Task, "model_profile_fallback"),
    harmless(Task, "max_iterations"),
    harmless(Task, "max_wall_time_minutes"),
    harmless(Task, "max_cost_usd_estimate"),
    harmless(Task, "max_tokens_total"),
    harmless(Task, "max_consecutive_gutter"),
    harmless(Task, "min_net_lines"),
    harmless(Task, "doctor_every"),
    harmless(Task, "doctor_profile"),
    harmless(Task, "doctor_apply"),
    harmless(Task, "debug_commands"),
    harmless(Task, "setup_command"),
    harmless(Task, "lockfiles"),
    harmless(Task, "test_command"),
    harmless(Task, "verify_commands"),
    harmless(Task, "verification.baseline"),
    harmless(Task, "verification.on_test_change"),
    harmless(Task, "verification.protected"),
    harmless(Task, "commit_state"),
    harmless(Task, "on_action_error"),
    harmless(Task, "allow_workflow_changes"),
    harmless(Task, "engine"),
    harmless(Task, "agent"),
    harmless(Task, "agent_fallback"),
    harmless(Task, "mode"),
    row(
        Task,
        "ci.required",
        UserOnly,
        TrustScope::Every,
        "a run succeeds although the checks of the source host have not passed",
    )
    .with_bound(TrustBound::Order(&["true", "false"])),
    harmless(Task, "ci.max_rounds"),
    harmless(Task, "ci.interval"),
    harmless(Task, "ci.timeout"),
    harmless(Task, "ci.grace"),
    harmless(Task, "reviews.respond"),
    row(
        Task,
        "overlap.action",
        UserOnly,
        TrustScope::Every,
        "a run continues although another pull request changes the same files",
    )
    .with_bound(TrustBound::Order(&["pause", "warn"])),
    harmless(Task, "pr.enabled"),
    harmless(Task, "pr.draft"),
    harmless(Task, "pr.ready_on_success"),
    harmless(Task, "pr.labels"),
    harmless(Task, "pr.title_template"),
    harmless(Task, "pr.body_template"),
    row(
        Dotenv,
        "RALPH_DEFAULT_PROVIDER",
        UserOnly,
        TrustScope::Every,
        "commands run in `{value}`, which isolates less than the provider you chose",
    )
    .with_bound(PROVIDERS),
    harmless(Dotenv, "RALPH_DEFAULT_MODEL_PROFILE"),
    harmless(Dotenv, "RALPH_FALLBACK_MODEL_PROFILE"),
    // Credentials. Their destination is decided elsewhere, never by a `.env`.
    harmless(Dotenv, "*"),
];

/// Returns the rule of a key, preferring one for this value; `None` for a key without a rule.
pub fn rule(file: TrustFile, key: &str, value: Option<&str>) -> Option<&'static TrustRule> {
    let rows = || {
        RULES
            .iter()
            .filter(|rule| rule.file == file && matches_key(rule.key, key))
    };
    let special = rows().find(|rule| rule.value.is_some() && rule.value == value);
    // Rules with a placeholder follow the named keys of the same file.
    special.or_else(|| rows().find(|rule| rule.value.is_none()))
}

/// Returns whether a key matches a rule's key. The name in place of `*` may contain dots.
fn matches_key(pattern: &str, key: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == key;
    };
    key.len() > before.len() + after.len() && key.starts_with(before) && key.ends_with(after)
}
