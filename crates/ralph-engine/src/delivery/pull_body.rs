//! The text of a pull request: the evidence for a reviewer, and the changes that need attention.

use std::fmt::Write as _;

use ralph_core::net::ProviderToolAction;
use ralph_core::ports::PullState;
use ralph_core::publish::ci::CiOutcome;
use ralph_core::publish::neutral::{neutralize_line, neutralize_title};
use ralph_core::state::RunState;
use ralph_core::surface::{self, Importance, Surface};
use ralph_core::task::TaskFile;
use ralph_core::verdict::CheckResult;

use super::ci::describe_outcome;
use super::surroundings::describe_overlap;

/// The input for the text of a pull request.
pub(crate) struct PullRequestFacts<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) task: &'a TaskFile,
    pub(crate) evidence: &'a [CheckResult],
    pub(crate) surface: &'a Surface,
    /// The commits that close other issues when they are merged.
    pub(crate) closes: &'a [String],
}

impl PullRequestFacts<'_> {
    /// Returns text of the task, a model or another user without effects at the source host.
    fn neutral(&self, text: &str) -> String {
        neutralize_line(text, self.state.plan.issue_number())
    }
}

/// The most changed files in the list.
const MAX_LISTED_FILES: usize = 50;

/// Returns the title.
pub(crate) fn title(facts: &PullRequestFacts<'_>) -> String {
    let plan = &facts.state.plan;
    let fallback = "[Ralph] {{title}}: {{task_id}}".to_owned();
    let template = facts.task.contract.pr.title_template.clone();
    let title = neutralize_title(&plan.title, plan.issue_number());
    fill_template(&template.unwrap_or(fallback), &title, facts)
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
        |text| fill_template(&text, &facts.neutral(&facts.state.plan.title), facts),
    );
    let own = match &facts.state.plan.issue {
        // Merging closes the issue; ralph never does.
        Some(issue) => format!("Closes #{}\n\n{own}", issue.number),
        None => own,
    };
    let mut body = format!("{}\n\n## Checklist\n\n{}", own.trim_end(), checklist(facts));
    body.push_str(&evidence(facts));
    body.push_str(&source_host(facts));
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
        let _ = writeln!(body, "- {}", facts.neutral(&adoption.to_string()));
    }
    body.push_str(&agent_and_hosts(facts));
    body.push_str(&changed_files(facts));
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
        let why: Vec<String> = finding.why.iter().map(|why| facts.neutral(why)).collect();
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
fn agent_and_hosts(facts: &PullRequestFacts<'_>) -> String {
    let state = facts.state;
    let mut text = String::new();
    if let Some(agent) = &state.plan.agent {
        let _ = writeln!(
            text,
            "- the agent `{}` did the work",
            escape_code(&agent.name)
        );
        if let (Some(fallback), Some(iteration)) = (&agent.fallback, state.fallback_agent_since()) {
            let fallback = escape_code(&fallback.label());
            let _ = writeln!(
                text,
                "- its fallback `{fallback}` did the work from iteration {iteration} on"
            );
        }
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
    text.push_str(&provider_tools(facts));
    text
}

/// Lists the provider's own tools that requests to models used.
fn provider_tools(facts: &PullRequestFacts<'_>) -> String {
    let mut text = String::new();
    for (action, what) in [
        (ProviderToolAction::Allowed, "allowed"),
        (ProviderToolAction::Removed, "removed from requests"),
        (ProviderToolAction::Refused, "refused"),
    ] {
        let tools = facts.state.provider_tools.iter();
        let tools = tools.filter(|tool| tool.action == action).take(50);
        let shown: Vec<String> = tools
            .map(|tool| {
                format!(
                    "{} at {}",
                    facts.neutral(&tool.what),
                    facts.neutral(&tool.provider)
                )
            })
            .collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "- provider-side tools, {what}: {}", shown.join(", "));
        }
    }
    text
}

/// Fills a template of the user, with a title that is already neutral.
fn fill_template(template: &str, title: &str, facts: &PullRequestFacts<'_>) -> String {
    template
        .replace("{{task_id}}", facts.state.plan.task_id.as_str())
        .replace("{{title}}", title)
        .replace("{{summary}}", title)
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
        let _ = writeln!(text, "- [{mark}] {}", facts.neutral(&checkbox.label()));
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
            facts.neutral(&check.name).replace('|', "\\|"),
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
        let _ = writeln!(text, "- {}", facts.neutral(&finding.text));
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

/// Lists the facts about the source host: checks, other pull requests, the base branch, issues.
fn source_host(facts: &PullRequestFacts<'_>) -> String {
    let (plan, host) = (&facts.state.plan, &facts.state.host);
    let mut lines = Vec::new();
    let ci = host.ci.as_ref().filter(|ci| ci.commit == facts.state.head);
    if let Some(ci) = ci {
        let note = match ci.outcome {
            CiOutcome::Passed => "",
            CiOutcome::Failed | CiOutcome::Missing | CiOutcome::TimedOut => ", **not required**",
        };
        let outcome = facts.neutral(&describe_outcome(ci.outcome, &ci.failed));
        lines.push(format!("checks: {outcome}{note}"));
    }
    let overlaps = host.overlaps.values().map(describe_overlap);
    lines.extend(overlaps.map(|text| format!("overlap: {}", facts.neutral(&text))));
    if let Some(head) = &host.base_moved {
        lines.push(format!(
            "the base branch `{}` moved to `{}` since the run started from `{}`: update this branch by a merge, its commits are never rebased",
            escape_code(&plan.base_branch),
            head.short(),
            plan.base.short()
        ));
    }
    if let Some(closed) = &host.closed_base {
        let branch = escape_code(&plan.base_branch);
        lines.push(match closed.state {
            PullState::Merged => format!(
                "pull request {} of the base branch `{branch}` was merged: change the base of this one",
                closed.number
            ),
            PullState::Closed | PullState::Draft | PullState::Open => format!(
                "pull request {} of the base branch `{branch}` was closed without a merge: this one contains its commits",
                closed.number
            ),
        });
    }
    let closes = facts.closes.iter();
    lines.extend(closes.map(|text| format!("**when merged, {}**", facts.neutral(text))));
    if lines.is_empty() {
        return String::new();
    }
    format!("\n## At the source host\n\n- {}\n", lines.join("\n- "))
}

/// Escapes text for backticks in a table.
fn escape_code(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    one_line.replace('`', "'").replace('|', "\\|")
}
