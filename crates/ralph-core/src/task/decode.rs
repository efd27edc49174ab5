//! Decodes the YAML tree of the front matter into a contract.

use std::collections::BTreeMap;
use std::time::Duration;

use super::agent_choice::AgentChoice;
use super::branch::{self, BranchName, MAX_SLUG_CHARS};
use super::contract::{
    Contract, DoctorApply, OnActionError, OnTestChange, PullSettings, RunMode, SandboxKind,
    SandboxResources, VerificationSettings,
};
use super::fields::{FrontMatterSection, KeywordChoice, YamlText};
use super::keys::{self, KeyLines};
use super::repo_url::{RepoUrl, RepoUrlError};
use super::yaml::{YamlKey, YamlNode};
use crate::debug;
use crate::ecosystem::MAX_DEPENDENCY_FILES;
use crate::id::TaskId;
use crate::lint::{self, LintFinding, excerpt};
use crate::path::WorkspacePath;
use crate::plan::EngineKind;
use crate::publish::{CiOverrides, CiPolicy, OverlapAction};

/// The highest plausible number of iterations or minutes.
const MAX_COUNT: u32 = 1_000_000;
/// The highest plausible cost budget, in dollars.
const MAX_DOLLARS: u32 = 1_000_000;
/// The highest plausible number of tokens.
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// The highest plausible number of consecutive circling iterations.
const MAX_GUTTER: u32 = 1000;
/// The longest title of a pull request.
const MAX_TITLE_CHARS: usize = 256;
/// The longest pattern of protected files.
const MAX_PATTERN_CHARS: usize = 200;
/// The longest label of a pull request.
const MAX_LABEL_CHARS: usize = 50;

/// A decoded contract with metadata.
pub(super) struct DecodedContract {
    /// Rejected values are replaced by their defaults.
    pub(super) contract: Contract,
    pub(super) lines: KeyLines,
    /// Lint findings about ignored or unusual values.
    pub(super) remarks: Vec<LintFinding>,
}

/// Decodes all keys. If there are findings, the contract must not be used for a run.
pub(super) fn decode(
    entries: &[(YamlKey, YamlNode)],
    findings: &mut Vec<LintFinding>,
) -> DecodedContract {
    let lines = keys::root_lines(entries, findings);
    let mut remarks = Vec::new();
    let mut root = FrontMatterSection::new("", entries, findings);
    let contract = Contract {
        task_id: task_id(&mut root, &lines),
        repo_url: repo_url(&mut root),
        base_branch: base_branch(&mut root),
        target_branch_prefix: root
            .single_line("target_branch_prefix")
            .map(YamlText::owned),
        target_branch_slug: root.single_line("target_branch_slug").map(YamlText::owned),
        sandbox_provider: root.choice("sandbox_provider"),
        sandbox_image: option_safe_word(&mut root, "sandbox_image"),
        sandbox_resources: resources(&mut root),
        model_profile_default: option_safe_word(&mut root, "model_profile_default"),
        model_profile_fallback: option_safe_word(&mut root, "model_profile_fallback"),
        max_iterations: root.integer_u32("max_iterations", 1..=MAX_COUNT),
        max_wall_time_minutes: root.integer_u32("max_wall_time_minutes", 1..=MAX_COUNT),
        max_cost_usd_estimate: root.dollars("max_cost_usd_estimate", MAX_DOLLARS),
        max_tokens_total: root.integer("max_tokens_total", 1..=MAX_TOKENS),
        max_consecutive_gutter: root.integer_u32("max_consecutive_gutter", 1..=MAX_GUTTER),
        min_net_lines: root.integer_u32("min_net_lines", 1..=MAX_COUNT),
        doctor_every: root.integer_u32("doctor_every", 0..=MAX_COUNT),
        doctor_profile: option_safe_word(&mut root, "doctor_profile"),
        doctor_apply: root.choice("doctor_apply").unwrap_or_default(),
        debug_commands: debug_commands(&mut root),
        setup_command: setup_command(&mut root, &mut remarks),
        lockfiles: lockfiles(&mut root),
        test_command: test_command(&mut root, &mut remarks),
        verify_commands: verify_commands(&mut root, &mut remarks),
        verification: verification_settings(&mut root),
        pr: pull_settings(&mut root),
        ci: ci_overrides(&mut root),
        respond_to_reviews: respond_to_reviews(&mut root),
        overlap: overlap_action(&mut root),
        commit_state: root.flag("commit_state").unwrap_or(false),
        on_action_error: root.choice("on_action_error").unwrap_or_default(),
        allow_workflow_changes: root.flag("allow_workflow_changes").unwrap_or(false),
        engine: root.choice("engine").unwrap_or_default(),
        agent: option_safe_word(&mut root, "agent"),
        agent_fallback: agent_fallback(&mut root),
        mode: root.choice("mode").unwrap_or_default(),
    };
    check_branch(&contract, &mut root);
    DecodedContract {
        contract,
        lines,
        remarks,
    }
}

/// Returns the id, or a placeholder with a finding, in which case the contract is not used.
fn task_id(root: &mut FrontMatterSection<'_, '_>, lines: &KeyLines) -> TaskId {
    let mistyped = root.entry("task_id").is_none() && lines.contains_key("task_id");
    let Some(text) = root.text("task_id") else {
        let fix = "add a line such as `task_id: \"task-001\"` to the front matter";
        let finding = LintFinding::error("missing-task-id", "`task_id` is missing", fix);
        if !mistyped {
            root.report_missing("task_id", finding);
        }
        return unnamed_task();
    };
    match TaskId::parse(text.text) {
        Ok(id) => id,
        Err(why) => {
            let fix = "choose a short name such as `task-001`";
            let finding = LintFinding::error("invalid-task-id", format!("`task_id` {why}"), fix);
            root.report(finding, text.location);
            unnamed_task()
        }
    }
}

fn unnamed_task() -> TaskId {
    TaskId::parse("unnamed").expect("the id is valid")
}

/// The value is never repeated in a finding: it may contain a password.
fn repo_url(root: &mut FrontMatterSection<'_, '_>) -> Option<RepoUrl> {
    let text = root.single_line("repo_url")?;
    let mut refuse = |error| {
        let fix = if error == RepoUrlError::Credentials {
            "write `https://host/owner/name`; credentials come from the environment"
        } else {
            "write `https://host/owner/name`, `owner/name` or a path"
        };
        let finding = LintFinding::error("invalid-repo-url", format!("`repo_url` {error}"), fix);
        root.report(finding, text.location);
    };
    match RepoUrl::parse(text.text) {
        Ok(url) => Some(url),
        Err(error) => {
            refuse(error);
            None
        }
    }
}

fn base_branch(root: &mut FrontMatterSection<'_, '_>) -> Option<BranchName> {
    let text = root.single_line("base_branch")?;
    match BranchName::parse(text.text) {
        Ok(branch) => Some(branch),
        Err(why) => {
            root.report(invalid_branch("base_branch", &why), text.location);
            None
        }
    }
}

/// Checks the name formed by prefix and slug, and reports the part that is invalid on its own.
fn check_branch(contract: &Contract, root: &mut FrontMatterSection<'_, '_>) {
    const PREFIX: &str = "target_branch_prefix";
    const SLUG: &str = "target_branch_slug";
    let prefix = contract.target_branch_prefix.as_deref();
    // A slug derived from the title is at most this long.
    let prefix_alone = prefix.unwrap_or_default().to_owned() + &"x".repeat(MAX_SLUG_CHARS);
    let (key, name) = match (prefix, &contract.target_branch_slug) {
        (None, None) => return,
        (Some(_), None) => (PREFIX, prefix_alone),
        (Some(_), Some(_)) if branch::check(&prefix_alone).is_err() => (PREFIX, prefix_alone),
        (_, Some(_)) => (SLUG, contract.branch(None)),
    };
    if let (Err(why), Some((_, node))) = (branch::check(&name), root.entry(key)) {
        let why = format!("results in a branch name that {why}");
        root.report(invalid_branch(key, &why), node.location);
    }
}

fn invalid_branch(key: &str, why: &str) -> LintFinding {
    LintFinding::error(
        "invalid-branch",
        format!("`{key}` {why}"),
        "use letters, digits, `-`, `_` and `/`, such as `ralph/task-001/implement-foo`",
    )
}

/// Returns a name without whitespace that cannot be mistaken for an option.
fn option_safe_word(root: &mut FrontMatterSection<'_, '_>, key: &str) -> Option<String> {
    let text = root.single_line(key)?;
    if text.text.contains(char::is_whitespace) || text.text.starts_with('-') {
        let message = format!("`{key}` contains whitespace or starts with `-`");
        let finding = LintFinding::error("invalid-name", message, "write only the name");
        root.report(finding, text.location);
        return None;
    }
    Some(text.owned())
}

fn agent_fallback(root: &mut FrontMatterSection<'_, '_>) -> Option<AgentChoice> {
    let text = root.single_line("agent_fallback")?;
    match AgentChoice::parse(text.text) {
        Ok(choice) => Some(choice),
        Err(why) => {
            let message = format!("`agent_fallback` {why}");
            let finding = LintFinding::error("invalid-name", message, AgentChoice::EXAMPLE);
            root.report(finding, text.location);
            None
        }
    }
}

fn resources(root: &mut FrontMatterSection<'_, '_>) -> Option<SandboxResources> {
    let mut section = root.section("sandbox_resources", "sandbox_resources.")?;
    section.reject_unknown_keys(&keys::RESOURCES);
    Some(SandboxResources {
        vcpu: section.integer_u32("vcpu", 1..=1024),
        memory_gib: section.integer_u32("memory_gib", 1..=65_536),
        disk_gib: section.integer_u32("disk_gib", 1..=1_048_576),
    })
}

fn pull_settings(root: &mut FrontMatterSection<'_, '_>) -> PullSettings {
    let defaults = PullSettings::default();
    let Some(mut section) = root.section("pr", "pr.") else {
        return defaults;
    };
    section.reject_unknown_keys(&keys::PR);
    PullSettings {
        enabled: section.flag("enabled").unwrap_or(defaults.enabled),
        draft: section.flag("draft").unwrap_or(defaults.draft),
        ready_on_success: section
            .flag("ready_on_success")
            .unwrap_or(defaults.ready_on_success),
        labels: section.short_lines("labels", MAX_LABEL_CHARS),
        title_template: section
            .short_line("title_template", MAX_TITLE_CHARS)
            .map(YamlText::owned),
        body_template: section.text("body_template").map(YamlText::owned),
    }
}

fn ci_overrides(root: &mut FrontMatterSection<'_, '_>) -> CiOverrides {
    let Some(mut section) = root.section("ci", "ci.") else {
        return CiOverrides::default();
    };
    section.reject_unknown_keys(&keys::CI);
    let (shortest, longest) = (CiPolicy::MIN_INTERVAL, CiPolicy::MAX_TIME);
    CiOverrides {
        required: section.flag("required"),
        max_rounds: section.integer_u32("max_rounds", 1..=CiPolicy::MAX_ROUNDS),
        interval: section.span("interval", shortest..=longest),
        timeout: section.span("timeout", shortest..=longest),
        grace: section.span("grace", Duration::ZERO..=longest),
    }
}

fn respond_to_reviews(root: &mut FrontMatterSection<'_, '_>) -> Option<bool> {
    let mut section = root.section("reviews", "reviews.")?;
    section.reject_unknown_keys(&keys::REVIEWS);
    section.flag("respond")
}

fn overlap_action(root: &mut FrontMatterSection<'_, '_>) -> Option<OverlapAction> {
    let mut section = root.section("overlap", "overlap.")?;
    section.reject_unknown_keys(&keys::OVERLAP);
    section.choice("action")
}

fn verification_settings(root: &mut FrontMatterSection<'_, '_>) -> VerificationSettings {
    let defaults = VerificationSettings::default();
    let Some(mut section) = root.section("verification", "verification.") else {
        return defaults;
    };
    section.reject_unknown_keys(&keys::VERIFICATION);
    VerificationSettings {
        baseline: section.flag("baseline").unwrap_or(defaults.baseline),
        on_test_change: section.choice("on_test_change").unwrap_or_default(),
        protected: section.short_lines("protected", MAX_PATTERN_CHARS),
    }
}

/// Decodes the command that installs the dependencies. Unlike `test_command`, an empty one is an
/// error: the line says that there is something to install.
fn setup_command(
    root: &mut FrontMatterSection<'_, '_>,
    remarks: &mut Vec<LintFinding>,
) -> Option<String> {
    let text = root.text("setup_command")?;
    let command = text.text.trim();
    if command.is_empty() {
        let message = "`setup_command` is empty";
        let fix = "write the command that installs the dependencies, or remove the line";
        root.report(
            LintFinding::error("empty-command", message, fix),
            text.location,
        );
        return None;
    }
    warn_multiline("setup_command", &text, remarks);
    Some(command.to_owned())
}

fn lockfiles(root: &mut FrontMatterSection<'_, '_>) -> Vec<String> {
    let mut paths = Vec::new();
    for text in root.list("lockfiles") {
        match WorkspacePath::parse(text.text) {
            Ok(path) => paths.push(path.as_str().to_owned()),
            Err(why) => {
                let message = format!("`lockfiles` contains an invalid path: {why}");
                let fix = "write paths of files relative to the root of the repository";
                root.report(
                    LintFinding::error("invalid-path", message, fix),
                    text.location,
                );
            }
        }
    }
    if paths.len() > MAX_DEPENDENCY_FILES {
        let (count, limit) = (paths.len(), MAX_DEPENDENCY_FILES);
        let message = format!("`lockfiles` has {count} paths, limit {limit}");
        let finding = LintFinding::error("too-many", message, "name only lockfiles");
        if let Some((key, _)) = root.entry("lockfiles") {
            root.report(finding, key.location);
        }
    }
    paths.truncate(MAX_DEPENDENCY_FILES);
    paths
}

fn test_command(
    root: &mut FrontMatterSection<'_, '_>,
    remarks: &mut Vec<LintFinding>,
) -> Option<String> {
    let text = root.text("test_command")?;
    let command = text.text.trim();
    warn_multiline("test_command", &text, remarks);
    if command.is_empty() {
        return None;
    }
    remarks.extend(lint::lint_command(command).map(|finding| finding.at_location(text.location)));
    Some(command.to_owned())
}

fn verify_commands(
    root: &mut FrontMatterSection<'_, '_>,
    remarks: &mut Vec<LintFinding>,
) -> Vec<String> {
    let mut commands = Vec::new();
    for text in root.list("verify_commands") {
        let command = text.text.trim();
        if command.is_empty() {
            let message = "`verify_commands` contains an empty command";
            let fix = "write the command, or remove the line";
            remarks
                .push(LintFinding::error("empty-command", message, fix).at_location(text.location));
        } else {
            warn_multiline("verify_commands", &text, remarks);
            remarks.extend(
                lint::lint_command(command).map(|finding| finding.at_location(text.location)),
            );
            commands.push(command.to_owned());
        }
    }
    commands
}

/// Decodes the commands of the mode `debug`. An id must not shadow a built-in one.
fn debug_commands(root: &mut FrontMatterSection<'_, '_>) -> BTreeMap<String, String> {
    let mut commands = BTreeMap::new();
    let Some(mut section) = root.section("debug_commands", "debug_commands.") else {
        return commands;
    };
    for (id, text) in section.lines() {
        if debug::is_valid_custom_id(&id) {
            commands.insert(id, text.owned());
            continue;
        }
        let message = format!("`debug_commands.{}` is not a valid id", excerpt(&id));
        let fix = "use 1 to 32 of a-z, 0-9 and `-`, and none of the built-in ids";
        section.report(
            LintFinding::error("invalid-name", message, fix),
            text.location,
        );
    }
    commands
}

fn warn_multiline(key: &str, text: &YamlText<'_>, remarks: &mut Vec<LintFinding>) {
    if text.text.trim().contains('\n') {
        let message =
            format!("`{key}` has several lines, but only the last one determines the result");
        let fix = "join the lines with `&&`, so that each of them counts";
        remarks.push(
            LintFinding::warning("multi-line-command", message, fix).at_location(text.location),
        );
    }
}

impl KeywordChoice for SandboxKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("local", Self::Local),
        ("docker", Self::Docker),
        ("docker-sandbox", Self::DockerSandbox),
        ("tart", Self::Tart),
        ("daytona", Self::Daytona),
    ];
}

impl KeywordChoice for EngineKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("actions", Self::Actions), ("agent", Self::Agent)];
}

impl KeywordChoice for DoctorApply {
    const WORDS: &'static [(&'static str, Self)] = &[("ask", Self::Ask), ("auto", Self::Auto)];
}

impl KeywordChoice for RunMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("autonomous", Self::Autonomous),
        ("guided", Self::Guided),
        ("debug", Self::Debug),
    ];
}

impl KeywordChoice for OverlapAction {
    const WORDS: &'static [(&'static str, Self)] = &[("warn", Self::Warn), ("pause", Self::Pause)];
}

impl KeywordChoice for OnTestChange {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("warn", Self::Warn),
        ("pause", Self::Pause),
        ("refuse", Self::Refuse),
    ];
}

impl KeywordChoice for OnActionError {
    const WORDS: &'static [(&'static str, Self)] =
        &[("stop", Self::Stop), ("continue", Self::Continue)];
}
