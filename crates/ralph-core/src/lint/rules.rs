//! The rules that a task must follow before a run starts.

use super::{LintFinding, to_u32};
use crate::plan::EngineKind;
use crate::price::Price;
use crate::task::{SandboxKind, TaskFile};
use crate::templates;

/// Checks a parsed task and returns its errors and warnings.
pub fn lint(task: &TaskFile) -> Vec<LintFinding> {
    let mut findings = task.remarks.clone();
    findings.extend(test_command(task));
    findings.extend(budgets(task));
    findings.extend(checkbox_count(task));
    findings.extend(branch_conflict(task));
    findings.extend(checkbox_warnings(task));
    findings.extend(contract_warnings(task));
    findings.extend(examples_left(task));
    findings.extend(direction_characters(task));
    findings.sort_by_key(|finding| (finding.line, finding.column, finding.severity));
    findings
}

/// Returns the line of a key, or the line of the closing `---` above which it should be added.
fn key_line(task: &TaskFile, key: &str) -> u32 {
    task.key_lines
        .get(key)
        .copied()
        .unwrap_or(task.closing_line)
}

fn test_command(task: &TaskFile) -> Option<LintFinding> {
    if task.contract.test_command.is_some() {
        return None;
    }
    let finding = LintFinding::error(
        "missing-test-command",
        "`test_command` is missing or empty",
        "add a line such as `test_command: \"npm test\"` to the front matter",
    );
    Some(finding.on_line(key_line(task, "test_command")))
}

fn budgets(task: &TaskFile) -> Vec<LintFinding> {
    let contract = &task.contract;
    let mut findings = Vec::new();
    if contract.max_iterations.is_none() {
        let missing = missing_budget("missing-max-iterations", "max_iterations", 30);
        findings.push(missing.on_line(key_line(task, "max_iterations")));
    }
    if contract.max_wall_time_minutes.is_none() {
        let key = "max_wall_time_minutes";
        let missing = missing_budget("missing-max-wall-time-minutes", key, 120);
        findings.push(missing.on_line(key_line(task, key)));
    }
    if contract.max_cost_usd_estimate.is_none() && contract.max_tokens_total.is_none() {
        let finding = LintFinding::error(
            "missing-cost-or-token-budget",
            "neither `max_cost_usd_estimate` nor `max_tokens_total` is set",
            "add the line `max_cost_usd_estimate: 10` to the front matter",
        );
        let tokens = task.key_lines.get("max_tokens_total").copied();
        let line = tokens.unwrap_or_else(|| key_line(task, "max_cost_usd_estimate"));
        findings.push(finding.on_line(line));
    }
    findings
}

/// Returns an error if the task limits spending only by cost but the price of its model is unknown,
/// so that the limit cannot be enforced.
pub fn unenforceable_cost_limit(
    task: &TaskFile,
    model: &str,
    price: Option<&Price>,
) -> Option<LintFinding> {
    let contract = &task.contract;
    let only_money =
        contract.max_cost_usd_estimate.is_some() && contract.max_tokens_total.is_none();
    if price.is_some() || !only_money {
        return None;
    }
    let finding = LintFinding::error(
        "unknown-price",
        format!(
            "no price is known for model `{model}`, so `max_cost_usd_estimate` cannot be enforced"
        ),
        "give its profile `input_cost_per_token` and `output_cost_per_token` in config/models.yaml, or add a line such as `max_tokens_total: 2000000` to the front matter",
    );
    Some(finding.on_line(key_line(task, "max_cost_usd_estimate")))
}

/// Returns a warning if the task's sandbox provider is not one of the available ones. A flag can
/// still choose another.
pub fn unavailable_sandbox(task: &TaskFile, available: &[&str]) -> Option<LintFinding> {
    let name = task.contract.sandbox_provider?.name();
    if available.contains(&name) {
        return None;
    }
    let finding = LintFinding::warning(
        "unavailable-sandbox",
        format!(
            "sandbox `{name}` is not available: this version has {}",
            available.join(", ")
        ),
        "choose one of these, or name one with `--sandbox` when you start the run",
    );
    Some(finding.on_line(key_line(task, "sandbox_provider")))
}

fn missing_budget(code: &'static str, key: &str, default: u32) -> LintFinding {
    LintFinding::error(
        code,
        format!("`{key}` is missing"),
        format!("add the line `{key}: {default}` to the front matter"),
    )
}

fn checkbox_count(task: &TaskFile) -> Option<LintFinding> {
    let finding = LintFinding::error(
        "too-few-checkboxes",
        "the task has no checkbox",
        "describe the goal in a line such as `- [ ] M1.1 the tests pass`",
    );
    task.checkboxes.is_empty().then_some(finding)
}

/// The run's branch must differ from the base branch and must not conflict with it: git cannot
/// store both `a` and `a/b`, which would be a file and a directory of the same name.
fn branch_conflict(task: &TaskFile) -> Option<LintFinding> {
    let base = task.contract.base_branch.as_ref()?.as_str();
    let branch = task.contract.branch(task.title.as_deref());
    let inside = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !inside(&branch, base) && !inside(base, &branch) {
        return None;
    }
    let finding = LintFinding::error(
        "branch-meets-base",
        format!("the run's branch `{branch}` cannot coexist with the base branch `{base}`"),
        "choose another `target_branch_prefix`, such as `ralph/`",
    );
    Some(finding.on_line(key_line(task, "base_branch")))
}

fn checkbox_warnings(task: &TaskFile) -> Vec<LintFinding> {
    let is_milestone = |id: &str| task.milestones.iter().any(|milestone| milestone.id == id);
    let mut findings = Vec::new();
    for checkbox in &task.checkboxes {
        let id = &checkbox.id;
        let mut warn = |code, message, fix| {
            findings.push(LintFinding::warning(code, message, fix).on_line(checkbox.line));
        };
        if checkbox.checked {
            let message = format!("checkbox `{id}` is already ticked");
            warn(
                "already-ticked",
                message,
                "nothing to do: it will be verified again",
            );
        }
        if checkbox.text.is_empty() {
            let message = format!("checkbox `{id}` has no text");
            warn(
                "empty-checkbox",
                message,
                "describe the condition to verify",
            );
        }
        let group = id.split_once('.').map_or("", |(group, _)| group);
        if let Some(milestone) = &checkbox.milestone
            && group != milestone
            && is_milestone(group)
        {
            let message = format!("checkbox `{id}` is listed under milestone `{milestone}`");
            warn("misplaced-checkbox", message, "move it or rename it");
        }
    }
    findings
}

fn contract_warnings(task: &TaskFile) -> Vec<LintFinding> {
    let contract = &task.contract;
    let mut findings = Vec::new();
    let fallback = contract.model_profile_fallback.as_ref();
    if fallback.is_some() && fallback == contract.model_profile_default.as_ref() {
        let finding = LintFinding::warning(
            "fallback-is-default",
            "`model_profile_fallback` is the same profile as `model_profile_default`",
            "name another profile, or remove the line: switching to it would change nothing",
        );
        findings.push(finding.on_line(key_line(task, "model_profile_fallback")));
    }
    findings.extend(agent_fallback_warning(task));
    let local = contract.sandbox_provider == Some(SandboxKind::Local);
    if local && contract.sandbox_image.is_some() {
        let finding = LintFinding::warning(
            "image-without-use",
            "`sandbox_image` has no effect with `sandbox_provider: local`",
            "remove the line, or choose a provider that uses images",
        );
        findings.push(finding.on_line(key_line(task, "sandbox_image")));
    }
    findings
}

/// Reports a fallback agent that has no effect.
fn agent_fallback_warning(task: &TaskFile) -> Option<LintFinding> {
    let contract = &task.contract;
    let fallback = contract.agent_fallback.as_ref()?;
    let finding = match (contract.engine, &contract.agent) {
        (EngineKind::Actions, _) => LintFinding::warning(
            "agent-fallback-without-use",
            "`agent_fallback` has no effect with `engine: actions`",
            "use `model_profile_fallback`, or set `engine: agent`",
        ),
        (EngineKind::Agent, Some(agent)) if *agent == fallback.to_string() => LintFinding::warning(
            "fallback-is-default",
            "`agent_fallback` is the same agent as `agent`",
            "name another agent, or a model such as `claude:haiku`: switching to it would change nothing",
        ),
        (EngineKind::Agent, _) => return None,
    };
    Some(finding.on_line(key_line(task, "agent_fallback")))
}

/// Reports the texts of the template that were not replaced, one finding per line.
fn examples_left(task: &TaskFile) -> Vec<LintFinding> {
    let lines = (1..).zip(task.text.lines());
    let found = lines.filter_map(|(number, line)| {
        let mut examples = templates::TASK_EXAMPLES.iter();
        let example = examples.find(|example| line.contains(**example))?;
        let finding = LintFinding::warning(
            "example-left",
            format!("`{example}` is an example of the template"),
            "replace it with a text about your task, or remove the line",
        );
        Some(finding.on_line(number))
    });
    found.collect()
}

/// Characters that change the text direction can disguise a command.
fn direction_characters(task: &TaskFile) -> Option<LintFinding> {
    let is_direction_control =
        |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let (before, _) = task.text.split_once(is_direction_control)?;
    let finding = LintFinding::warning(
        "direction-character",
        "this line has an invisible character that changes the direction of text",
        "remove it: the displayed command may differ from the executed one",
    );
    Some(finding.on_line(to_u32(before.split('\n').count())))
}
