//! Makes a contract from the front matter's tree.

use std::collections::BTreeMap;

use super::branch::{self, BranchName, MAX_SLUG_CHARS};
use super::contract::{
    Contract, DoctorApply, Mode, OnActionError, OnTestChange, PullSettings, SandboxKind,
    SandboxResources, VerificationSettings,
};
use super::fields::{Choice, Section, Text};
use super::keys::{self, Lines};
use super::repo_url::{RepoUrl, RepoUrlError};
use super::yaml::{Key, Node};
use crate::debug;
use crate::id::TaskId;
use crate::lint::{self, Finding, excerpt};
use crate::plan::Engine;

/// The highest number of iterations or minutes that can be meant seriously.
const MAX_COUNT: u32 = 1_000_000;
/// The highest number of dollars that can be meant seriously.
const MAX_DOLLARS: u32 = 1_000_000;
/// The highest number of tokens that can be meant seriously.
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// The highest number of gutters in a row that can be meant seriously.
const MAX_GUTTER: u32 = 1000;
/// How long a title of a pull request may be.
const MAX_TITLE_CHARS: usize = 256;
/// How long a pattern of protected files may be.
const MAX_PATTERN_CHARS: usize = 200;
/// How long a label of a pull request may be.
const MAX_LABEL_CHARS: usize = 50;

/// A contract and what else the front matter says.
pub(super) struct Decoded {
    /// The contract. Where a value was refused it holds the default.
    pub(super) contract: Contract,
    /// Where the keys stand.
    pub(super) lines: Lines,
    /// What the linter should say about values that are left out or odd.
    pub(super) remarks: Vec<Finding>,
}

/// Reads all keys. With any finding the contract must not be used for a run.
pub(super) fn decode(entries: &[(Key, Node)], findings: &mut Vec<Finding>) -> Option<Decoded> {
    let lines = keys::root_lines(entries, findings);
    let mut remarks = Vec::new();
    let mut root = Section::new("", entries, findings);
    let contract = Contract {
        task_id: task_id(&mut root, &lines)?,
        repo_url: repo_url(&mut root),
        base_branch: base_branch(&mut root),
        target_branch_prefix: root.line("target_branch_prefix").map(Text::owned),
        target_branch_slug: root.line("target_branch_slug").map(Text::owned),
        sandbox_provider: root.choice("sandbox_provider"),
        sandbox_image: word(&mut root, "sandbox_image"),
        sandbox_resources: resources(&mut root),
        model_profile_default: word(&mut root, "model_profile_default"),
        model_profile_fallback: word(&mut root, "model_profile_fallback"),
        max_iterations: root.small("max_iterations", 1..=MAX_COUNT),
        max_wall_time_minutes: root.small("max_wall_time_minutes", 1..=MAX_COUNT),
        max_cost_usd_estimate: root.dollars("max_cost_usd_estimate", MAX_DOLLARS),
        max_tokens_total: root.whole("max_tokens_total", 1..=MAX_TOKENS),
        max_consecutive_gutter: root.small("max_consecutive_gutter", 1..=MAX_GUTTER),
        min_net_lines: root.small("min_net_lines", 1..=MAX_COUNT),
        doctor_every: root.small("doctor_every", 0..=MAX_COUNT),
        doctor_profile: word(&mut root, "doctor_profile"),
        doctor_apply: root.choice("doctor_apply").unwrap_or_default(),
        debug_commands: debug_commands(&mut root),
        test_command: test_command(&mut root, &mut remarks),
        verify_commands: verify_commands(&mut root, &mut remarks),
        verification: verification_settings(&mut root),
        pr: pull_settings(&mut root),
        commit_state: root.flag("commit_state").unwrap_or(false),
        on_action_error: root.choice("on_action_error").unwrap_or_default(),
        allow_workflow_changes: root.flag("allow_workflow_changes").unwrap_or(false),
        engine: root.choice("engine").unwrap_or_default(),
        agent: word(&mut root, "agent"),
        mode: root.choice("mode").unwrap_or_default(),
    };
    check_branch(&contract, &mut root);
    Some(Decoded {
        contract,
        lines,
        remarks,
    })
}

/// Returns the id, or one that stands for it: then there is a finding and the contract is not used.
fn task_id(root: &mut Section<'_, '_>, lines: &Lines) -> Option<TaskId> {
    let mistyped = root.entry("task_id").is_none() && lines.contains_key("task_id");
    let Some(text) = root.text("task_id") else {
        let fix = "write a line such as `task_id: \"task-001\"` into the front matter";
        let finding = Finding::error("missing-task-id", "`task_id` is missing", fix);
        if !mistyped {
            root.report_missing("task_id", finding);
        }
        return TaskId::parse("unnamed").ok();
    };
    match TaskId::parse(text.text) {
        Ok(id) => Some(id),
        Err(why) => {
            let fix = "choose a short name such as `task-001`";
            let finding = Finding::error("invalid-task-id", format!("`task_id` {why}"), fix);
            root.report(finding, text.place);
            TaskId::parse("unnamed").ok()
        }
    }
}

/// The value is never repeated in a finding: it may hold a password.
fn repo_url(root: &mut Section<'_, '_>) -> Option<RepoUrl> {
    let text = root.line("repo_url")?;
    let refuse = |error| {
        let fix = if error == RepoUrlError::Credentials {
            "write `https://host/owner/name`; credentials come from the environment"
        } else {
            "write `https://host/owner/name` or a path"
        };
        let finding = Finding::error("invalid-repo-url", format!("`repo_url` {error}"), fix);
        root.report(finding, text.place);
    };
    RepoUrl::parse(text.text).map_err(refuse).ok()
}

fn base_branch(root: &mut Section<'_, '_>) -> Option<BranchName> {
    let text = root.line("base_branch")?;
    BranchName::parse(text.text)
        .map_err(|why| root.report(invalid_branch("base_branch", &why), text.place))
        .ok()
}

/// Checks the name that prefix and slug make together, and blames the one that is wrong by itself.
fn check_branch(contract: &Contract, root: &mut Section<'_, '_>) {
    const PREFIX: &str = "target_branch_prefix";
    const SLUG: &str = "target_branch_slug";
    let prefix = contract.target_branch_prefix.as_deref();
    // A slug that is made from the title is at most this long.
    let prefix_alone = prefix.unwrap_or_default().to_owned() + &"x".repeat(MAX_SLUG_CHARS);
    let (key, name) = match (prefix, &contract.target_branch_slug) {
        (None, None) => return,
        (Some(_), None) => (PREFIX, prefix_alone),
        (Some(_), Some(_)) if branch::check(&prefix_alone).is_err() => (PREFIX, prefix_alone),
        (_, Some(_)) => (SLUG, contract.branch(None)),
    };
    if let (Err(why), Some((_, node))) = (branch::check(&name), root.entry(key)) {
        let why = format!("makes a branch name that {why}");
        root.report(invalid_branch(key, &why), node.place);
    }
}

fn invalid_branch(key: &str, why: &str) -> Finding {
    Finding::error(
        "invalid-branch",
        format!("`{key}` {why}"),
        "use letters, digits, `-`, `_` and `/`, such as `ralph/task-001/implement-foo`",
    )
}

/// Returns a name without blanks that nothing can take for an option.
fn word(root: &mut Section<'_, '_>, key: &str) -> Option<String> {
    let text = root.line(key)?;
    if text.text.contains(char::is_whitespace) || text.text.starts_with('-') {
        let message = format!("`{key}` contains a blank or starts with `-`");
        let finding = Finding::error("invalid-name", message, "write the name alone");
        root.report(finding, text.place);
        return None;
    }
    Some(text.owned())
}

fn resources(root: &mut Section<'_, '_>) -> Option<SandboxResources> {
    let mut section = root.section("sandbox_resources", "sandbox_resources.")?;
    section.only(&keys::RESOURCES);
    Some(SandboxResources {
        vcpu: section.small("vcpu", 1..=1024),
        memory_gib: section.small("memory_gib", 1..=65_536),
        disk_gib: section.small("disk_gib", 1..=1_048_576),
    })
}

fn pull_settings(root: &mut Section<'_, '_>) -> PullSettings {
    let defaults = PullSettings::default();
    let Some(mut section) = root.section("pr", "pr.") else {
        return defaults;
    };
    section.only(&keys::PR);
    PullSettings {
        enabled: section.flag("enabled").unwrap_or(defaults.enabled),
        draft: section.flag("draft").unwrap_or(defaults.draft),
        ready_on_success: section
            .flag("ready_on_success")
            .unwrap_or(defaults.ready_on_success),
        labels: section.short_lines("labels", MAX_LABEL_CHARS),
        title_template: section
            .short_line("title_template", MAX_TITLE_CHARS)
            .map(Text::owned),
        body_template: section.text("body_template").map(Text::owned),
    }
}

fn verification_settings(root: &mut Section<'_, '_>) -> VerificationSettings {
    let defaults = VerificationSettings::default();
    let Some(mut section) = root.section("verification", "verification.") else {
        return defaults;
    };
    section.only(&keys::VERIFICATION);
    VerificationSettings {
        baseline: section.flag("baseline").unwrap_or(defaults.baseline),
        on_test_change: section.choice("on_test_change").unwrap_or_default(),
        protected: section.short_lines("protected", MAX_PATTERN_CHARS),
    }
}

fn test_command(root: &mut Section<'_, '_>, remarks: &mut Vec<Finding>) -> Option<String> {
    let text = root.text("test_command")?;
    let command = text.text.trim();
    warn_of_several_lines("test_command", &text, remarks);
    if command.is_empty() {
        return None;
    }
    remarks.extend(lint::doubt(command).map(|finding| finding.at(text.place)));
    Some(command.to_owned())
}

fn verify_commands(root: &mut Section<'_, '_>, remarks: &mut Vec<Finding>) -> Vec<String> {
    let mut commands = Vec::new();
    for text in root.list("verify_commands") {
        let command = text.text.trim();
        if command.is_empty() {
            let message = "`verify_commands` holds an empty command";
            let fix = "write the command, or remove the line";
            remarks.push(Finding::error("empty-command", message, fix).at(text.place));
        } else {
            warn_of_several_lines("verify_commands", &text, remarks);
            remarks.extend(lint::doubt(command).map(|finding| finding.at(text.place)));
            commands.push(command.to_owned());
        }
    }
    commands
}

/// Reads the commands of the mode `debug`. An id must not stand for something else already.
fn debug_commands(root: &mut Section<'_, '_>) -> BTreeMap<String, String> {
    let mut commands = BTreeMap::new();
    let Some(mut section) = root.section("debug_commands", "debug_commands.") else {
        return commands;
    };
    for (id, text) in section.lines() {
        if debug::is_free_id(&id) {
            commands.insert(id, text.owned());
            continue;
        }
        let message = format!("`debug_commands.{}` is no usable id", excerpt(&id));
        let fix = "use 1 to 32 of a-z, 0-9 and `-`, and none of the ids that are always there";
        section.report(Finding::error("invalid-name", message, fix), text.place);
    }
    commands
}

fn warn_of_several_lines(key: &str, text: &Text<'_>, remarks: &mut Vec<Finding>) {
    if text.text.trim().contains('\n') {
        let message = format!("`{key}` holds a command of several lines; its last line decides");
        let fix = "join the lines with `&&`, so that every one of them counts";
        remarks.push(Finding::warning("multi-line-command", message, fix).at(text.place));
    }
}

impl Choice for SandboxKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("local", Self::Local),
        ("docker", Self::Docker),
        ("docker-sandbox", Self::DockerSandbox),
        ("tart", Self::Tart),
        ("daytona", Self::Daytona),
    ];
}

impl Choice for Engine {
    const WORDS: &'static [(&'static str, Self)] =
        &[("actions", Self::Actions), ("agent", Self::Agent)];
}

impl Choice for DoctorApply {
    const WORDS: &'static [(&'static str, Self)] = &[("ask", Self::Ask), ("auto", Self::Auto)];
}

impl Choice for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("autonomous", Self::Autonomous),
        ("guided", Self::Guided),
        ("debug", Self::Debug),
    ];
}

impl Choice for OnTestChange {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("warn", Self::Warn),
        ("pause", Self::Pause),
        ("refuse", Self::Refuse),
    ];
}

impl Choice for OnActionError {
    const WORDS: &'static [(&'static str, Self)] =
        &[("stop", Self::Stop), ("continue", Self::Continue)];
}
