//! An issue as a specification, checked and typed.

use std::collections::{BTreeSet, HashSet};

use super::document::{SpecDocument, SpecStep, StepUpdate, normalise_body};
use super::front::{FrontValue, IssueFront, parse_front};
use super::heading::StepMark;
use super::limit::MAX_ISSUE_CHARS;
use crate::lint::{LintFinding, LintSeverity, excerpt, sort_and_truncate, to_u32};
use crate::task::BranchName;

/// The most steps of a specification.
pub const MAX_STEPS: usize = 200;

/// The longest title that is used, in characters.
const MAX_TITLE: usize = 256;

/// A specification: an issue that ralph can work on.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The number of the issue.
    pub number: u64,
    /// Without the branch in brackets; one line.
    pub title: String,
    /// The branch of the work.
    pub branch: BranchName,
    /// The branch that the work starts from and is merged into; `None` means the default branch.
    pub base: Option<BranchName>,
    /// The issues that must be done first.
    pub depends: BTreeSet<u64>,
    pub document: SpecDocument,
    /// Findings that do not prevent the work.
    pub warnings: Vec<LintFinding>,
}

impl Spec {
    /// Parses an issue. The error contains everything that prevents the work, and the warnings.
    pub fn parse(number: u64, title: &str, body: &str) -> Result<Self, Vec<LintFinding>> {
        let mut findings = Vec::new();
        let body = normalise_body(body);
        let chars = body.chars().count();
        // A host with a higher limit must not make the work unbounded.
        if chars > MAX_ISSUE_CHARS * 2 {
            return Err(vec![LintFinding::error(
                "issue-too-large",
                format!(
                    "the issue has {chars} characters, limit {}",
                    MAX_ISSUE_CHARS * 2
                ),
                "move long material into files of the repository",
            )]);
        }
        let document = SpecDocument::parse(&body);
        let front = parse_front(&document.lines, &mut findings);
        let (prefix, title) = split_title(title);
        let branch = parse_branch(&front, prefix.as_deref(), &mut findings);
        let base = front
            .base
            .as_ref()
            .and_then(|base| named_branch("base", base, &mut findings));
        if branch.is_some() && branch == base {
            findings.push(LintFinding::error(
                "branch-is-base",
                "`branch` and `base` are the same branch",
                "choose another `branch`",
            ));
        }
        if front.depends.contains(&number) {
            findings.push(LintFinding::error(
                "depends-on-itself",
                format!("issue #{number} depends on itself"),
                format!("remove {number} from `depends`"),
            ));
        }
        lint_steps(&document, &mut findings);
        let has_error = findings
            .iter()
            .any(|finding| finding.severity == LintSeverity::Error);
        sort_and_truncate(&mut findings);
        match branch {
            Some(branch) if !has_error => Ok(Self {
                number,
                title,
                branch,
                base,
                depends: front.depends,
                document,
                warnings: findings,
            }),
            Some(_) | None => Err(findings),
        }
    }

    /// Returns the numbers of the steps that an earlier run marked as done.
    pub fn done_steps(&self) -> Vec<String> {
        let steps = self.document.steps().iter();
        let done = steps.filter(|step| step.mark == StepMark::Done);
        done.map(|step| step.number.clone()).collect()
    }

    /// Returns the text for a new run, in which all steps are open. A mark counts only in the run that verified
    /// it, because a new run starts without the commits of the earlier one. A human who makes a blocked issue
    /// ready has removed the obstacle, so its mark becomes a note.
    pub fn text_for_run(&self) -> String {
        let marked = self
            .document
            .steps()
            .iter()
            .filter_map(|step| match &step.mark {
                StepMark::Blocked(reason) => {
                    let mut notes = step.notes.clone();
                    notes.push(format!("Was blocked: {reason}"));
                    Some((step, notes))
                }
                StepMark::Done => Some((step, step.notes.clone())),
                StepMark::Open => None,
            });
        let open = |(step, notes): (&SpecStep, Vec<String>)| {
            let update = StepUpdate {
                mark: StepMark::Open,
                notes,
            };
            (step.number.clone(), update)
        };
        self.document.with_updates(&marked.map(open).collect())
    }

    /// Returns the dependencies of an issue that may not be a valid specification.
    pub fn dependencies_in(body: &str) -> BTreeSet<u64> {
        let lines: Vec<String> = normalise_body(body)
            .lines()
            .take(200)
            .map(str::to_owned)
            .collect();
        parse_front(&lines, &mut Vec::new()).depends
    }
}

/// Splits `[branch] Title`. The title becomes one line without control characters.
fn split_title(title: &str) -> (Option<String>, String) {
    let words: Vec<&str> = title.split_whitespace().collect();
    let line: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_TITLE)
        .collect();
    let prefix = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match prefix {
        Some((branch, rest)) if !branch.trim().is_empty() => {
            (Some(branch.trim().to_owned()), rest.trim().to_owned())
        }
        Some(_) | None => (None, line),
    }
}

fn parse_branch(
    front: &IssueFront,
    prefix: Option<&str>,
    findings: &mut Vec<LintFinding>,
) -> Option<BranchName> {
    if let Some(branch) = &front.branch {
        return named_branch("branch", branch, findings);
    }
    let from_title = prefix.and_then(|name| BranchName::parse(name).into_iter().next());
    if from_title.is_none() {
        let why = match prefix {
            Some(name) => format!(
                "no branch is given, and `{}` in the title is not a valid one",
                excerpt(name)
            ),
            None => "no branch is given".to_owned(),
        };
        findings.push(
            LintFinding::error(
                "missing-branch",
                why,
                "start the issue with a line `branch: NAME`, or its title with `[NAME]`",
            )
            .on_line(1),
        );
    }
    from_title
}

fn named_branch(
    key: &str,
    value: &FrontValue,
    findings: &mut Vec<LintFinding>,
) -> Option<BranchName> {
    match BranchName::parse(&value.text) {
        Ok(branch) => Some(branch),
        Err(why) => {
            let name = excerpt(&value.text);
            findings.push(
                LintFinding::error(
                    "invalid-branch",
                    format!("`{key}` is `{name}`, which {why}"),
                    "choose a valid branch name, such as `fix/login`",
                )
                .on_line(value.line),
            );
            None
        }
    }
}

fn lint_steps(document: &SpecDocument, findings: &mut Vec<LintFinding>) {
    let steps = document.steps();
    for (line, text) in &document.unreadable {
        findings.push(
            LintFinding::error(
                "invalid-step",
                format!("the step `{}` has no valid number", excerpt(text)),
                "number steps like `### Step 3: title` or `### Step 3.1: title`",
            )
            .on_line(to_u32(line + 1)),
        );
    }
    if steps.is_empty() && document.unreadable.is_empty() {
        findings.push(LintFinding::error(
            "no-steps",
            "the issue has no steps",
            "add a heading `### Step 1: title` for each step",
        ));
    }
    if steps.len() > MAX_STEPS {
        findings.push(LintFinding::error(
            "too-many-steps",
            format!("the issue has {} steps, limit {MAX_STEPS}", steps.len()),
            "split it into several issues that depend on each other",
        ));
    }
    let mut seen = HashSet::new();
    for step in steps {
        let line = to_u32(step.heading + 1);
        if !seen.insert(step.number.as_str()) {
            findings.push(
                LintFinding::error(
                    "duplicate-step",
                    format!("there is more than one step {}", step.number),
                    "give each step its own number",
                )
                .on_line(line),
            );
        }
        if step.title.is_empty() {
            findings.push(
                LintFinding::error(
                    "step-without-title",
                    format!("step {} has no title", step.number),
                    "write the result of the step after its number",
                )
                .on_line(line),
            );
        }
    }
}
