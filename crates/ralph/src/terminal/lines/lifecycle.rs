//! Lines about the whole run: its plan, the events around the iterations, and its end.

use ralph_app::format;
use ralph_core::budget::Budget;
use ralph_core::event::{CommandEvent, MessageState, RunEvent, SandboxEvent, SandboxPurpose};
use ralph_core::plan::{AgentPlan, Delivery, EngineKind, NetworkPlan, RunPlan, SuggestedHost};
use ralph_core::ports::{Isolation, PullRequest, PullState};
use ralph_core::profile::ModelChoice;
use ralph_core::run::{FailReason, RunStatus};
use ralph_core::state::RunState;

use super::delivery::state_name;
use super::pieces::{self, BAD, GOOD, field_line, quiet_line, warning_line};
use super::{Style, budgets, setup};
use crate::terminal::styled_line::{StyledLine, Tone};

pub(super) fn run_lines(event: &RunEvent, state: &RunState, style: Style) -> Vec<StyledLine> {
    match event {
        RunEvent::RunCreated { plan } => self::plan_lines(plan),
        RunEvent::RunOpened { epoch, pid, .. } => match epoch {
            0 | 1 => Vec::new(),
            _ => vec![quiet_line(&format!("taken over by process {pid}"))],
        },
        RunEvent::StatusChanged { status } => status_lines(status, state, style),
        RunEvent::ContractChanged { changes, .. } => vec![
            StyledLine::from_text("  » the task file has changed: ")
                .wrapped(Tone::Plain, &changes.join(", ")),
        ],
        RunEvent::LimitsChanged { limits } => {
            let text = format!("budgets: {}", budgets::limits_text(limits));
            vec![StyledLine::from_text("  » ").wrapped(Tone::Plain, &text)]
        }
        RunEvent::ContractRejected { why } => {
            vec![warning_line(&format!(
                "the changed task file is not used: {why}"
            ))]
        }
        RunEvent::ModeChanged { mode } => {
            vec![StyledLine::from_text("  » the mode is ").strong(mode.as_str())]
        }
        RunEvent::ModelChosen { choice } => vec![model_line(choice)],
        RunEvent::ProfileRejected { profile, why } => {
            vec![warning_line(&format!(
                "profile `{profile}` is not used: {why}"
            ))]
        }
        RunEvent::BudgetWarning { budget, percent } => {
            vec![warning_line(&format!(
                "{percent}% of `{}` is used",
                budget.key()
            ))]
        }
        RunEvent::Notice { message } => {
            vec![StyledLine::from_text("  » ").wrapped(Tone::Plain, message)]
        }
        // A notice announces an adoption, the spinner shows the end of a wait; the others are of no interest to the user.
        RunEvent::RunAdopted { .. }
        | RunEvent::QuotaCountdown { .. }
        | RunEvent::ProviderCountdown { .. }
        | RunEvent::FilesRecorded { .. }
        | RunEvent::StillActive {} => Vec::new(),
    }
}

pub(super) fn command_lines(event: &CommandEvent) -> Vec<StyledLine> {
    match event {
        CommandEvent::CommandReceived {
            command, refused, ..
        } => match refused {
            None => vec![
                StyledLine::from_text("  » ")
                    .strong(command.verb())
                    .plain(" accepted"),
            ],
            Some(why) => vec![warning_line(&format!("{} refused: {why}", command.verb()))],
        },
        CommandEvent::CommandDone { done, detail, .. } => {
            if *done {
                vec![StyledLine::from_text("  » ").wrapped(Tone::Plain, detail)]
            } else {
                vec![warning_line(detail)]
            }
        }
        CommandEvent::HostAllowed { host } => {
            vec![StyledLine::from_text("  » ").plain(&format!("{host} is allowed"))]
        }
        CommandEvent::MessageMoved { text, to, .. } => {
            let state = match to {
                MessageState::Queued => "is queued",
                MessageState::Delivered => "was delivered",
                MessageState::Acknowledged => "was acknowledged",
            };
            vec![
                StyledLine::from_text("  » ")
                    .wrapped(Tone::Plain, &format!("a message {state}: {text}")),
            ]
        }
    }
}

pub(super) fn sandbox_lines(event: &SandboxEvent, state: &RunState) -> Vec<StyledLine> {
    match event {
        SandboxEvent::SandboxCreated { sandbox, purpose } => match purpose {
            SandboxPurpose::Work => vec![quiet_line(&format!("sandbox `{sandbox}` is created"))],
            SandboxPurpose::CleanRoom => Vec::new(),
        },
        SandboxEvent::SandboxRemoved { sandbox } => {
            // Every check has its own clean room; only the removal of the work sandbox is shown.
            match &state.sandbox {
                None => vec![quiet_line(&format!("`{sandbox}` is removed"))],
                Some(_) => Vec::new(),
            }
        }
        SandboxEvent::WorkspaceReady { branch, head } => {
            let head = head.short();
            vec![quiet_line(&format!(
                "the repository is on `{branch}` at {head}"
            ))]
        }
        SandboxEvent::SetupStarted { .. } | SandboxEvent::SetupFinished { .. } => {
            setup::setup_lines(event, state)
        }
        SandboxEvent::SandboxChecked { seen, .. } => {
            vec![quiet_line(&format!(
                "checked from inside the sandbox: {}",
                seen.join(", ")
            ))]
        }
        SandboxEvent::Tamper { path, finding, .. } => {
            vec![warning_line(&format!("tampering: `{path}` {finding}"))]
        }
    }
}

/// Describes the sandbox, its isolation and its image.
fn sandbox_summary(plan: &RunPlan) -> String {
    let isolation = match plan.isolation {
        Isolation::None => "no isolation: commands run as you",
        Isolation::Container => "container without a network",
        Isolation::Machine => "virtual machine",
    };
    let image = plan
        .container
        .as_ref()
        .map(|container| format!(" · image {}", container.image));
    format!(
        "{} · {isolation}{}",
        plan.sandbox,
        image.unwrap_or_default()
    )
}

/// Names the model in use, its profile, and its address if one is set.
fn model_line(choice: &ModelChoice) -> StyledLine {
    let profile = choice.profile.as_ref();
    let profile = profile.map_or_else(String::new, |name| format!(" of profile `{name}`"));
    let base = choice.api_base.as_ref();
    let base = base.map_or_else(String::new, |base| format!(" at {base}"));
    let text = format!("the model is `{}`{profile}{base}", choice.model);
    StyledLine::from_text("  » ").wrapped(Tone::Plain, &text)
}

/// Formats a plan.
pub fn plan_lines(plan: &RunPlan) -> Vec<StyledLine> {
    let delivery = match plan.delivery {
        Delivery::PullRequest => "pull request",
        Delivery::Branch => "branch only",
    };
    let boxes = format::plural(plan.checkboxes as u64, "checkbox", "checkboxes");
    let mut lines = vec![
        StyledLine::new()
            .strong(&plan.title)
            .quiet(&format!(" ({})", plan.task_id)),
        field_line("run", plan.run.as_str()),
        field_line("task", &format!("{} · {boxes}", plan.task_file)),
        field_line(
            "repo",
            &format!(
                "{} · {} at {}",
                plan.repo,
                plan.base_branch,
                plan.base.short()
            ),
        ),
        field_line("branch", &format!("{} · {delivery}", plan.branch)),
    ];
    lines.extend(host_line(plan));
    lines.push(field_line("sandbox", &sandbox_summary(plan)));
    lines.extend(plan.local.iter().flat_map(|local| {
        let confinement = local.confinement;
        [
            confinement.describe_isolation(),
            confinement.describe_limits(),
        ]
        .map(|text| field_line("", &text))
    }));
    lines.extend(plan.network.as_ref().map(|network| {
        field_line(
            "network",
            &ralph_app::planning::network::network_summary(network),
        )
    }));
    lines.extend(plan.network.as_ref().and_then(uninspected_hosts_line));
    lines.extend(plan.setup.iter().flat_map(setup::plan_lines));
    lines.push(engine_line(plan));
    let fallback = plan
        .agent
        .as_ref()
        .and_then(|agent| agent.fallback.as_ref());
    lines.extend(fallback.map(|agent| field_line("fallback", &agent_text(agent))));
    lines.extend([
        field_line("tests", &plan.test_command),
        field_line("budgets", &budgets::limits_text(&plan.limits)),
    ]);
    lines.extend(provider_tools_line(plan));
    lines.extend(
        plan.network
            .iter()
            .flat_map(|network| suggested_hosts_lines(&network.suggested)),
    );
    lines
}

/// Names the source host and the credential for it.
fn host_line(plan: &RunPlan) -> Option<StyledLine> {
    plan.remote_repository()?;
    let credential = plan.scm_credential.as_deref().unwrap_or("no credential");
    Some(field_line("host", &format!("{} · {credential}", plan.scm)))
}

/// Names the allowed hosts whose traffic the gate does not inspect.
fn uninspected_hosts_line(network: &NetworkPlan) -> Option<StyledLine> {
    let hosts = network.uninspected();
    let hosts = (!hosts.is_empty()).then(|| hosts.join(", "))?;
    let risk = "a command can use a credential of its own there";
    Some(field_line("", &format!("not inspected: {hosts} · {risk}")))
}

/// Lists the provider-side tools that requests may ask for.
fn provider_tools_line(plan: &RunPlan) -> Option<StyledLine> {
    let allowed = &plan.agent.as_ref()?.provider_tools;
    let names: Vec<&str> = allowed.iter().map(|tool| tool.name()).collect();
    let text = format!(
        "may be asked for {} · its fees besides tokens do not count towards the budget",
        names.join(", ")
    );
    (!names.is_empty()).then(|| field_line("provider", &text))
}

/// Lists the unreachable hosts that the project names.
fn suggested_hosts_lines(hosts: &[SuggestedHost]) -> Vec<StyledLine> {
    /// The number of hosts that are listed.
    const MAX_LISTED: usize = 8;
    let listed = hosts.iter().take(MAX_LISTED).map(|suggested| {
        let SuggestedHost { host, file, why } = suggested;
        field_line("blocked", &format!("{host} · named by {file}, {why}"))
    });
    let mut lines: Vec<StyledLine> = listed.collect();
    let more = hosts.len().saturating_sub(MAX_LISTED) as u64;
    if more > 0 {
        let more = format::plural(more, "more host", "more hosts");
        lines.push(field_line(
            "",
            &format!("and {more} that the project's files name"),
        ));
    }
    lines
}

/// Names the model with the source of its key, or the agent.
fn engine_line(plan: &RunPlan) -> StyledLine {
    let Some(agent) = &plan.agent else {
        let key = plan.model_key.as_ref();
        let key = key.map_or_else(String::new, |source| format!(" · key from {source}"));
        let model = format!("{} · {}{key}", plan.model, engine_name(plan.engine));
        return field_line("model", &model);
    };
    field_line("agent", &agent_text(agent))
}

/// Describes an agent with its model and authentication, and the source of the credential.
fn agent_text(agent: &AgentPlan) -> String {
    let model = agent.model.as_deref().unwrap_or("its own model");
    let login = match &agent.auth {
        Some(auth) => {
            let source = agent.source.as_ref();
            let source = source.map_or_else(String::new, |source| format!(" from {source}"));
            format!(" · {auth}{source}")
        }
        None => String::new(),
    };
    format!("{} · {model}{login}", agent.name)
}

/// Returns the printed name of an engine.
pub fn engine_name(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Actions => "actions",
        EngineKind::Agent => "agent",
    }
}

fn status_lines(status: &RunStatus, state: &RunState, style: Style) -> Vec<StyledLine> {
    match (status, style) {
        // On a terminal, the spinner shows these.
        (
            RunStatus::Created | RunStatus::Preparing | RunStatus::Running | RunStatus::Verifying,
            Style::Rich { .. },
        ) => Vec::new(),
        (
            RunStatus::Created | RunStatus::Preparing | RunStatus::Running | RunStatus::Verifying,
            Style::Plain,
        ) => vec![quiet_line(&format!("… {}", status.as_str()))],
        (
            RunStatus::WaitingQuota(_) | RunStatus::WaitingProvider(_) | RunStatus::WaitingHost(_),
            Style::Rich { .. } | Style::Plain,
        ) => vec![warning_line(&status.reason().unwrap_or_default())],
        (RunStatus::WaitingCi(wait), Style::Rich { .. } | Style::Plain) => {
            vec![quiet_line(&format!("waiting for the {wait}"))]
        }
        (
            RunStatus::Paused(_)
            | RunStatus::Succeeded
            | RunStatus::Failed(_)
            | RunStatus::Stopped
            | RunStatus::SandboxLost,
            Style::Rich { .. } | Style::Plain,
        ) => ending_lines(state, style),
    }
}

/// Returns the block that describes the end of a run or why it waits.
pub fn ending_lines(state: &RunState, style: Style) -> Vec<StyledLine> {
    let status = &state.status;
    let (mark, tone) = match status {
        RunStatus::Succeeded => (GOOD, Tone::Good),
        RunStatus::Failed(_) => (BAD, Tone::Bad),
        RunStatus::Stopped
        | RunStatus::SandboxLost
        | RunStatus::Paused(_)
        | RunStatus::WaitingQuota(_)
        | RunStatus::WaitingProvider(_)
        | RunStatus::WaitingCi(_)
        | RunStatus::WaitingHost(_) => ("■", Tone::Warn),
        RunStatus::Created | RunStatus::Preparing | RunStatus::Running | RunStatus::Verifying => {
            ("…", Tone::Plain)
        }
    };
    let bar = || match style {
        Style::Rich { .. } => StyledLine::new().margin(tone, "┃ "),
        Style::Plain => StyledLine::new(),
    };
    let headline = bar().span(
        tone,
        &format!("{mark} {}", status.as_str().replace('_', " ")),
    );
    let headline = match state.reason() {
        Some(reason) => headline.plain(" — ").wrapped(Tone::Plain, &reason),
        None => headline.strong(&format!(" — {}", state.plan.title)),
    };
    let mut lines = vec![StyledLine::new(), headline];
    lines.extend(
        result_lines(state)
            .iter()
            .map(|line| bar().plain("  ").wrapped(Tone::Plain, line)),
    );
    if *status == RunStatus::Succeeded {
        let findings = pieces::finding_lines(&state.findings);
        lines.extend(
            findings
                .iter()
                .map(|line| bar().plain("  ").wrapped(Tone::Warn, line)),
        );
    }
    lines.push(bar().plain("  ").quiet(&usage_summary(state)));
    let next = next_steps(state);
    lines.extend(
        next.iter()
            .map(|next| bar().plain("  ").wrapped(Tone::Accent, next)),
    );
    lines
}

fn result_lines(state: &RunState) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(pushed) = &state.pushed {
        lines.push(format!(
            "branch `{}` at {}",
            state.plan.branch,
            pushed.short()
        ));
    }
    if let Some(pull) = &state.pull {
        lines.push(format!("pull request {}", self::pull_request_text(pull)));
    }
    if let Some((commit, green)) = &state.verified {
        let green = if *green { "verified" } else { "not green" };
        let tests = state.verified_tests;
        let tests = tests.map_or_else(String::new, |tests| format!(": {tests}"));
        lines.push(format!(
            "commit {} is {green} in a clean room{tests}",
            commit.short()
        ));
    }
    lines.extend(super::source_host::result_lines(state));
    if state.has_nothing_to_do() {
        lines.push("no model was asked and no pull request was opened".to_owned());
        return lines;
    }
    lines.push(format!(
        "{} of {} checked off",
        state.ticked.len(),
        format::plural(state.checkboxes as u64, "box", "boxes"),
    ));
    if let Some(sandbox) = state.sandbox.as_ref().filter(|_| state.status.is_final()) {
        lines.push(format!("sandbox `{sandbox}` is kept for inspection"));
    }
    lines
}

/// Formats a pull request: `#3 (draft) https://…`.
pub fn pull_request_text(pull: &PullRequest) -> String {
    format!("#{} ({}) {}", pull.number, state_name(pull.state), pull.url)
}

/// Formats the usage of a run: `3 iterations · 2m 10s · 12,345 tokens · $0.12`.
pub fn usage_summary(state: &RunState) -> String {
    format!(
        "{} · {} · {} · {}",
        format::plural(u64::from(state.iteration), "iteration", "iterations"),
        format::duration(state.active),
        format::plural(state.usage.total(), "token", "tokens"),
        state.cost,
    )
}

/// Returns the printed name of a pull request's state.
pub fn pull_state_name(state: PullState) -> &'static str {
    state_name(state)
}

fn next_steps(state: &RunState) -> Vec<String> {
    let run = &state.plan.run;
    if state.has_nothing_to_do() {
        return vec![
            "if work is missing, write checks that fail until it is done, or set `verification.baseline: false`"
                .to_owned(),
        ];
    }
    match &state.status {
        RunStatus::Paused(reason) if reason.answerable().is_ok() => {
            let what = match reason.question() {
                Some(_) => "answers and continues it",
                None => "continues it with a hint",
            };
            vec![
                format!("`ralph answer {run} TEXT` {what}"),
                format!("`ralph resume {run}` continues it as it is"),
            ]
        }
        RunStatus::Paused(_) | RunStatus::SandboxLost => {
            vec![format!("`ralph resume {run}` continues it")]
        }
        RunStatus::WaitingQuota(_) | RunStatus::WaitingProvider(_) => {
            vec![format!("`ralph resume {run}` asks the model immediately")]
        }
        RunStatus::WaitingCi(_) | RunStatus::WaitingHost(_) => {
            vec![format!(
                "`ralph resume {run}` asks the source host immediately"
            )]
        }
        RunStatus::Failed(reason) => {
            let raise = match reason {
                FailReason::Budget { budget } => {
                    let flag = budget_flag(*budget);
                    Some(format!("`ralph continue {run} {flag}` continues it"))
                }
                FailReason::Model { .. } | FailReason::Gutter { .. } | FailReason::Setup { .. } => {
                    None
                }
            };
            let logs = format!("`ralph logs {run}` shows what it did");
            let steps = raise.into_iter().chain([logs]);
            steps.chain(result_steps(state)).collect()
        }
        RunStatus::Succeeded | RunStatus::Stopped => result_steps(state),
        RunStatus::Created | RunStatus::Preparing | RunStatus::Running | RunStatus::Verifying => {
            Vec::new()
        }
    }
}

/// Returns the commands that show and merge the delivered branch.
fn result_steps(state: &RunState) -> Vec<String> {
    let run = &state.plan.run;
    if state.pushed.is_none() {
        return Vec::new();
    }
    let mut steps = vec![format!("`ralph diff {run}` shows the changes")];
    // A pull request on a source host is merged there.
    if state.status == RunStatus::Succeeded && state.plan.remote_repository().is_none() {
        let base = &state.plan.base_branch;
        steps.push(format!("`ralph merge {run}` merges them into `{base}`"));
    }
    if state.pull.is_some() {
        steps.push(format!("`ralph pr {run}` shows the pull request"));
    }
    steps
}

/// Returns the flag of `ralph continue` that raises a budget.
fn budget_flag(budget: Budget) -> &'static str {
    match budget {
        Budget::Iterations => "--max-iterations N",
        Budget::WallTime => "--max-time DURATION",
        Budget::Cost => "--max-cost USD",
        Budget::Tokens => "--max-tokens N",
    }
}
