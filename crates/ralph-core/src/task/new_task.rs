//! The text of a new task file, for `ralph init` and `ralph run -p`.

use std::fmt::Write as _;

use super::branch::{self, BranchName};
use super::contract::SandboxKind;
use super::sentence::TaskSentence;
use crate::ecosystem::TestCommand;
use crate::id::TaskId;
use crate::lint::{self, LintFinding, LintSeverity};
use crate::printable;

/// The id of the only box of a new task.
const BOX_ID: &str = "T1";

/// The longest id of a task that is derived from its title, in characters.
const MAX_ID_CHARS: usize = 32;

/// The finding that a task without a test command is written with.
const NO_TEST_COMMAND: &str = "missing-test-command";

/// The worker that a new task names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewTaskWorker {
    /// The agent engine with this agent.
    Agent(String),
    /// The actions engine with this model profile.
    Profile(String),
    /// The actions engine with the model of a flag or of the configuration.
    Unnamed,
    /// None: neither a credential nor a key was found.
    Missing,
}

/// The spending limit of a new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendingLimit {
    /// In dollars; requires a known price.
    Cost,
    /// In tokens.
    Tokens,
}

/// The values of a new task file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// `None` for the task to make the tests pass.
    pub sentence: Option<TaskSentence>,
    /// A comment at the start of the file.
    pub comment: Option<String>,
    pub base_branch: Option<BranchName>,
    /// The first one is used, the others are listed in a comment.
    pub test_commands: Vec<TestCommand>,
    /// Proposed in a comment.
    pub setup_command: Option<String>,
    /// `None` for the provider of the configuration.
    pub sandbox: Option<SandboxKind>,
    pub worker: NewTaskWorker,
    pub spending: SpendingLimit,
}

impl NewTask {
    /// Returns the text of the task file. The linter accepts it, except that the test command is
    /// missing if none is known. Returns the first error for values that would be read differently.
    pub fn to_text(&self) -> Result<String, LintFinding> {
        let text = format!("---\n{}---\n\n{}", self.front_matter(), self.body());
        let report = lint::check(text.as_bytes());
        let is_expected = |finding: &LintFinding| {
            finding.severity == LintSeverity::Warning
                || (finding.code == NO_TEST_COMMAND && self.test_commands.is_empty())
        };
        if let Some(error) = report.findings.iter().find(|it| !is_expected(it)) {
            return Err(error.clone());
        }
        let boxes = report.task.map_or_else(Vec::new, |task| task.checkboxes);
        match boxes.as_slice() {
            // A dash between the id and the text is not part of the text.
            [only] if only.id == BOX_ID && self.box_text().ends_with(&only.text) => Ok(text),
            _ => Err(LintFinding::error(
                "ambiguous-sentence",
                "the sentence would be read as more than one checkbox",
                "describe the result in plain words",
            )),
        }
    }

    fn title(&self) -> String {
        let sentence = self.sentence.as_ref();
        sentence.map_or_else(|| "Make the tests pass".to_owned(), TaskSentence::title)
    }

    fn box_text(&self) -> &str {
        let sentence = self.sentence.as_ref();
        sentence.map_or("All tests pass", TaskSentence::as_str)
    }

    fn task_id(&self) -> String {
        let slug = branch::slug(&self.title());
        let short = match slug.get(..MAX_ID_CHARS) {
            None => &*slug,
            Some(start) => start.rsplit_once('-').map_or(start, |(words, _)| words),
        };
        match TaskId::parse(short) {
            Ok(id) => id.to_string(),
            Err(_) => "task".to_owned(),
        }
    }

    fn front_matter(&self) -> String {
        let mut front = String::new();
        if let Some(comment) = &self.comment {
            push_comment(&mut front, comment);
        }
        push_line(&mut front, &format!("task_id: {}", quoted(&self.task_id())));
        if let Some(branch) = &self.base_branch {
            push_comment(&mut front, "the branch that the work starts from");
            push_line(
                &mut front,
                &format!("base_branch: {}", quoted(branch.as_str())),
            );
        }
        if let Some(sandbox) = self.sandbox {
            front.push('\n');
            push_comment(
                &mut front,
                "where commands run: `docker` (containers) or `local` (on this machine, as you)",
            );
            let name = quoted(sandbox.name());
            push_line(&mut front, &format!("sandbox_provider: {name}"));
        }
        front.push('\n');
        self.push_worker(&mut front);
        front.push('\n');
        push_comment(
            &mut front,
            "the run ends when one of these limits is reached",
        );
        front.push_str("max_iterations: 30\nmax_wall_time_minutes: 120\n");
        front.push_str(match self.spending {
            SpendingLimit::Cost => "max_cost_usd_estimate: 10\n",
            SpendingLimit::Tokens => "max_tokens_total: 2000000\n",
        });
        front.push('\n');
        self.push_setup(&mut front);
        self.push_tests(&mut front);
        front
    }

    fn push_worker(&self, front: &mut String) {
        match &self.worker {
            NewTaskWorker::Agent(agent) => {
                push_comment(
                    front,
                    "the worker: a coding agent (`agent`), or a model that ralph calls (`actions`)",
                );
                push_line(front, "engine: \"agent\"");
                push_line(front, &format!("agent: {}", quoted(agent)));
            }
            NewTaskWorker::Profile(profile) => {
                push_comment(
                    front,
                    "the worker: a model that ralph calls (`actions`), or a coding agent (`agent`)",
                );
                push_line(front, "engine: \"actions\"");
                push_line(
                    front,
                    &format!("model_profile_default: {}", quoted(profile)),
                );
            }
            NewTaskWorker::Unnamed => push_line(front, "engine: \"actions\""),
            NewTaskWorker::Missing => {
                push_comment(
                    front,
                    "no credential of an agent and no key of a model was found: store one with",
                );
                push_comment(
                    front,
                    "`ralph store-token`, then remove the `#` of these lines",
                );
                push_comment(front, "engine: \"agent\"");
                push_comment(front, "agent: \"claude\"");
            }
        }
    }

    fn push_setup(&self, front: &mut String) {
        if let Some(command) = &self.setup_command {
            push_comment(
                front,
                "installs the dependencies before the work and before each check:",
            );
            push_comment(front, &format!("setup_command: {}", quoted(command)));
            if let Some(test) = self.test_in_virtual_environment(command) {
                push_comment(front, "with it, the tests need its programs:");
                push_comment(front, &format!("test_command: {}", quoted(&test)));
            }
        }
    }

    /// Returns the test command with the Python of the virtual environment that set-up creates.
    fn test_in_virtual_environment(&self, setup: &str) -> Option<String> {
        let test = &self.test_commands.first()?.command;
        let arguments = test.strip_prefix("python3 ")?;
        let is_created = setup.contains("-m venv .venv");
        is_created.then(|| format!(".venv/bin/python {arguments}"))
    }

    fn push_tests(&self, front: &mut String) {
        push_comment(
            front,
            "must succeed in a fresh checkout, so it also installs what it needs; it also verifies",
        );
        push_comment(front, "every box without a `verify:` line");
        let Some((first, others)) = self.test_commands.split_first() else {
            push_comment(
                front,
                "no test command was found: write the one of this project and remove the `#`",
            );
            push_comment(front, "test_command: \"make test\"");
            return;
        };
        push_line(front, &format!("test_command: {}", quoted(&first.command)));
        for other in others {
            push_comment(
                front,
                &format!("also found: {} ({})", other.command, other.origin),
            );
        }
    }

    fn body(&self) -> String {
        let title = self.title();
        let hint = "<!-- One checkbox per result. A line `- verify: COMMAND`, indented below a box, verifies that box\n\
                    alone; `test_command` verifies a box without one. -->\n";
        let Some(sentence) = &self.sentence else {
            let command = self.test_commands.first();
            let verify = command.map_or_else(String::new, |test| {
                format!("  - verify: {}\n", code_span(&test.command))
            });
            return format!(
                "# Task: {title}\n\n\
                 <!-- Replace the title and the box with what you want. As it is, this task repairs failing tests,\n\
                 and ends at once if all tests pass. -->\n\n\
                 ## Success criteria\n\n{hint}\n- [ ] {BOX_ID} {}\n{verify}",
                self.box_text()
            );
        };
        format!(
            "# Task: {title}\n\n\
             Goal: {sentence}\n\n\
             If a test can show the result, write or extend one that fails without the change.\n\n\
             ## Success criteria\n\n{hint}\n- [ ] {BOX_ID} {sentence}\n"
        )
    }
}

pub(crate) fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Adds a comment of one line.
pub(crate) fn push_comment(text: &mut String, comment: &str) {
    let line = comment.replace(['\n', '\r', '\t'], " ");
    push_line(text, &format!("# {}", printable::escape_text(&line)));
}

/// Returns a string in double quotes, as YAML reads it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a Markdown code span, with a fence that the code does not contain.
pub(crate) fn code_span(code: &str) -> String {
    if code.contains('`') {
        format!("`` {code} ``")
    } else {
        format!("`{code}`")
    }
}

#[cfg(test)]
mod tests;
