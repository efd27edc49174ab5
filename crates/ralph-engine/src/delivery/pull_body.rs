//! The text of a pull request: the evidence for a reviewer, and the changes that need attention.

use std::fmt::Write as _;

use ralph_core::net::ProviderToolAction;
use ralph_core::state::RunState;
use ralph_core::surface::{self, Importance, Surface};
use ralph_core::task::TaskFile;
use ralph_core::verdict::CheckResult;

/// The input for the text of a pull request.
pub(crate) struct PullRequestFacts<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) task: &'a TaskFile,
    pub(crate) evidence: &'a [CheckResult],
    pub(crate) surface: &'a Surface,
}

/// The most changed files in the list.
const MAX_LISTED_FILES: usize = 50;

const BEGIN_MARKER: &str = "<!-- ralph:begin -->";
const END_MARKER: &str = "<!-- ralph:end -->";

/// Returns the title.
pub(crate) fn title(facts: &PullRequestFacts<'_>) -> String {
    let plan = &facts.state.plan;
    let fallback = format!("[Ralph] {}: {}", plan.title, plan.task_id);
    let template = facts
        .task
        .contract
        .pr
        .title_template
        .clone()
        .unwrap_or(fallback);
    fill_template(&template, facts)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the body: the task's own text, then the facts between markers.
pub(crate) fn body(facts: &PullRequestFacts<'_>) -> String {
    let template = facts.task.contract.pr.body_template.clone();
    let own = template.map_or_else(
        || format!("Work on task `{}`.\n", facts.state.plan.task_id),
        |text| fill_template(&text, facts),
    );
    let own = match &facts.state.plan.issue {
        // Merging closes the issue; ralph never does.
        Some(issue) => format!("Closes #{}\n\n{own}", issue.number),
        None => own,
    };
    let mut body = format!(
        "{}\n\n{BEGIN_MARKER}\n## Checklist\n\n{}",
        own.trim_end(),
        checklist(facts)
    );
    body.push_str(&evidence(facts));
    let state = facts.state;
    let _ = write!(
        body,
        "\n## Run\n\n- run `{}`, {} {}, {} input and {} output tokens, {}\n- commit `{}`\n",
        state.plan.run,
        state.iteration,
        if state.iteration == 1 {
            "iteration"
        } else {
            "iterations"
        },
        state.usage.input_tokens,
        state.usage.output_tokens,
        state.cost,
        state.head
    );
    if let Some(adoption) = &state.adoption {
        let _ = writeln!(body, "- {adoption}");
    }
    body.push_str(&agent_and_hosts(state));
    body.push_str(&changed_files(facts));
    body.push_str(END_MARKER);
    body.push('\n');
    body
}

/// Lists changed files that deserve a reviewer's attention, the most important first.
fn changed_files(facts: &PullRequestFacts<'_>) -> String {
    let ranked = surface::rank_findings(facts.surface);
    if ranked.is_empty() {
        return String::new();
    }
    let mut text = "\n## Changes to review closely\n\n".to_owned();
    match facts.surface.deleted_tests.len() {
        0 => {}
        1 => text.push_str("**1 test file was removed.**\n\n"),
        number => {
            let _ = write!(text, "**{number} test files were removed.**\n\n");
        }
    }
    let (shown, rest) = ranked.split_at(ranked.len().min(MAX_LISTED_FILES));
    for finding in shown {
        let why: Vec<String> = finding.why.iter().map(|why| escape_inline(why)).collect();
        let _ = writeln!(
            text,
            "- `{}`: {}",
            escape_code(&finding.path),
            why.join("; ")
        );
    }
    if !rest.is_empty() {
        let counts = Importance::ALL.into_iter().filter_map(|importance| {
            let those = rest
                .iter()
                .filter(|finding| finding.importance == importance);
            let number = those.count();
            (number > 0).then(|| format!("{number} {importance}"))
        });
        let counts: Vec<String> = counts.collect();
        let _ = writeln!(
            text,
            "- and {} more, none more important than these: {}; `git diff --stat {}..{}` lists all",
            rest.len(),
            counts.join(", "),
            facts.state.plan.base.short(),
            facts.state.head.short()
        );
    }
    text
}

/// Describes the agent that did the work, and the hosts that it could and could not reach.
fn agent_and_hosts(state: &RunState) -> String {
    let mut text = String::new();
    if let Some(agent) = &state.plan.agent {
        let _ = writeln!(
            text,
            "- the agent `{}` did the work",
            escape_code(&agent.name)
        );
    }
    let hosts = [
        ("allowed by the user", &state.allowed_hosts),
        ("blocked", &state.blocked_hosts),
    ];
    for (what, hosts) in hosts {
        if !hosts.is_empty() {
            let shown: Vec<String> = hosts
                .iter()
                .take(50)
                .map(|host| escape_code(host))
                .collect();
            let _ = writeln!(text, "- hosts {what}: `{}`", shown.join("`, `"));
        }
    }
    if state.further_blocked > 0 {
        let count = state.further_blocked;
        let _ = writeln!(text, "- and {count} more blocked hosts");
    }
    text.push_str(&provider_tools(state));
    text
}

/// Lists the provider's own tools that requests to models used.
fn provider_tools(state: &RunState) -> String {
    let mut text = String::new();
    for (action, what) in [
        (ProviderToolAction::Allowed, "allowed"),
        (ProviderToolAction::Removed, "removed from requests"),
        (ProviderToolAction::Refused, "refused"),
    ] {
        let tools = state.provider_tools.iter();
        let tools = tools.filter(|tool| tool.action == action).take(50);
        let shown: Vec<String> = tools
            .map(|tool| {
                format!(
                    "{} at {}",
                    escape_inline(&tool.what),
                    escape_inline(&tool.provider)
                )
            })
            .collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "- provider-side tools, {what}: {}", shown.join(", "));
        }
    }
    text
}

fn fill_template(template: &str, facts: &PullRequestFacts<'_>) -> String {
    let plan = &facts.state.plan;
    template
        .replace("{{task_id}}", plan.task_id.as_str())
        .replace("{{title}}", &plan.title)
        .replace("{{summary}}", &plan.title)
        .replace("{{checklist}}", &checklist(facts))
}

fn checklist(facts: &PullRequestFacts<'_>) -> String {
    let mut text = String::new();
    for checkbox in &facts.task.checkboxes {
        let mark = if facts.state.ticked.contains(&checkbox.id) {
            'x'
        } else {
            ' '
        };
        let _ = writeln!(text, "- [{mark}] {}", escape_inline(&checkbox.label()));
    }
    text
}

fn evidence(facts: &PullRequestFacts<'_>) -> String {
    if facts.evidence.is_empty() {
        return "\n## Evidence\n\nNot verified in a clean room yet.\n".into();
    }
    let mut text = findings(facts);
    let _ = write!(
        text,
        "\n## Evidence\n\nEach check ran in a fresh sandbox with a clean checkout of `{}`:\n\n| check | command | result | duration |\n|---|---|---|---|\n",
        facts.state.head
    );
    for check in facts.evidence {
        let tests = check
            .tests
            .map(|count| format!(", {count}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | `{}` | {}{tests} | {} ms |",
            escape_cell(&check.name),
            escape_code(&check.command),
            check.ended,
            check.duration_ms
        );
    }
    text
}

/// Returns the findings that qualify the verdict, the most important first.
fn findings(facts: &PullRequestFacts<'_>) -> String {
    const SHOWN: usize = 50;
    let findings = &facts.state.findings;
    if findings.is_empty() {
        return String::new();
    }
    let mut text = "\n## Read this before you merge\n\n".to_owned();
    for finding in findings.iter().take(SHOWN) {
        let _ = writeln!(text, "- {}", escape_inline(&finding.text));
    }
    if findings.len() > SHOWN {
        let _ = writeln!(
            text,
            "- and {} more of lower importance",
            findings.len() - SHOWN
        );
    }
    text
}

/// Escapes text so that it cannot notify users, hide itself or leave its line.
fn escape_inline(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    one_line
        .replace('@', "@\u{200b}")
        .replace("<!--", "&lt;!--")
        .replace("-->", "--&gt;")
}

fn escape_cell(text: &str) -> String {
    escape_inline(text).replace('|', "\\|")
}

/// Escapes text for backticks in a table.
fn escape_code(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    one_line.replace('`', "'").replace('|', "\\|")
}
