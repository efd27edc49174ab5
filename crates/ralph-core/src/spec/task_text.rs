//! Converts a specification to a task file, so that the work on an issue is an ordinary run.

use super::issue_spec::Spec;
use crate::lint::{self, LintFinding, LintSeverity};
use crate::money::Usd;
use crate::plan::EngineKind;
use crate::task::{code_span, push_comment, push_line, quoted};

/// The settings of a run that a specification does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecTask {
    pub engine: EngineKind,
    /// `None` selects the default agent.
    pub agent: Option<String>,
    /// `None` if the steps have commands of their own.
    pub test_command: Option<String>,
    pub max_iterations: u32,
    pub max_wall_time_minutes: u32,
    pub max_cost: Option<Usd>,
    pub max_tokens: Option<u64>,
    /// A comment at the start of the file.
    pub comment: String,
}

/// Returns the id of the box of a step.
pub fn step_box_id(number: &str) -> String {
    format!("S{number}")
}

/// Returns the text of the task file. Returns the first finding of a text that the linter rejects, or that
/// would have other boxes than the specification has steps.
pub fn spec_task(spec: &Spec, task: &SpecTask) -> Result<String, LintFinding> {
    let text = format!(
        "---\n{}---\n\n{}",
        front_matter(spec, task),
        body(spec, task.engine)
    );
    let report = lint::check(text.as_bytes());
    let mut findings = report.findings.into_iter();
    if let Some(error) = findings.find(|finding| finding.severity == LintSeverity::Error) {
        return Err(error);
    }
    let boxes = report.task.map_or_else(Vec::new, |task| task.checkboxes);
    let expected: Vec<String> = expected_boxes(spec);
    if boxes.iter().map(|it| &it.id).ne(&expected) {
        return Err(LintFinding::error(
            "ambiguous-steps",
            "the titles of the steps would be read as something else than one checkbox each",
            "write the titles of the steps in plain words",
        ));
    }
    Ok(text)
}

fn expected_boxes(spec: &Spec) -> Vec<String> {
    let steps = spec.document.steps().iter();
    steps.map(|step| step_box_id(&step.number)).collect()
}

fn front_matter(spec: &Spec, task: &SpecTask) -> String {
    let mut front = String::new();
    push_comment(&mut front, &task.comment);
    push_line(&mut front, &format!("task_id: \"issue-{}\"", spec.number));
    if let Some(base) = &spec.base {
        push_line(
            &mut front,
            &format!("base_branch: {}", quoted(base.as_str())),
        );
    }
    let branch = spec.branch.as_str();
    // Neither part of a task's branch name can be empty.
    let first = branch.chars().next().map_or(0, char::len_utf8);
    let slug_start = branch.rfind('/').map_or(first, |slash| slash + 1);
    let (prefix, slug) = branch.split_at(slug_start);
    push_line(
        &mut front,
        &format!("target_branch_prefix: {}", quoted(prefix)),
    );
    push_line(&mut front, &format!("target_branch_slug: {}", quoted(slug)));
    match task.engine {
        EngineKind::Agent => push_line(&mut front, "engine: \"agent\""),
        EngineKind::Actions => push_line(&mut front, "engine: \"actions\""),
    }
    if let Some(agent) = &task.agent {
        push_line(&mut front, &format!("agent: {}", quoted(agent)));
    }
    push_line(
        &mut front,
        &format!("max_iterations: {}", task.max_iterations),
    );
    push_line(
        &mut front,
        &format!("max_wall_time_minutes: {}", task.max_wall_time_minutes),
    );
    if let Some(cost) = task.max_cost {
        push_line(
            &mut front,
            &format!("max_cost_usd_estimate: {}", cost.dollars()),
        );
    }
    if let Some(tokens) = task.max_tokens {
        push_line(&mut front, &format!("max_tokens_total: {tokens}"));
    }
    if let Some(command) = &task.test_command {
        push_line(&mut front, &format!("test_command: {}", quoted(command)));
    }
    front
}

fn body(spec: &Spec, engine: EngineKind) -> String {
    let mut text = format!(
        "# Task: {}\n\nThe specification is `.ralph/spec.md`, from issue #{}. Work on its steps in order.\n\n\
         ## Success criteria\n\n",
        plain(&spec.title),
        spec.number
    );
    for step in spec.document.steps() {
        let id = step_box_id(&step.number);
        push_line(&mut text, &format!("- [ ] {id} {}", plain(&step.title)));
        for command in &step.commands {
            push_line(&mut text, &format!("  - verify: {}", code_span(command)));
        }
    }
    if engine == EngineKind::Actions {
        // A model that ralph calls itself has no tools to read the file before it replies.
        push_specification(&mut text, &spec.text_for_run());
    }
    text
}

/// Adds the specification as code, so that neither its headings nor its checkboxes count.
fn push_specification(text: &mut String, specification: &str) {
    let longest = specification
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    text.push_str("\n## Specification\n\n");
    push_line(text, &format!("{fence}markdown"));
    text.push_str(specification);
    push_line(text, &fence);
}

/// Returns a title on one line, without characters that start other Markdown.
fn plain(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    let line = words.join(" ");
    line.chars().filter(|c| !c.is_control()).collect()
}
