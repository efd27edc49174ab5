//! What `preflight` and `selftest` print: a line per check, and one to sum up.

use ralph_core::ports::Problem;
use ralph_core::secret::Redactor;
use serde_json::{Value, json};

use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::output::Output;
use crate::terminal::line::{Line, Tone};

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything is as it should be, with what was seen.
    Passed(String),
    /// These things are wrong.
    Failed(Vec<Problem>),
    /// It could not be made, for this reason.
    NotRun(String),
}

impl Outcome {
    /// Makes the outcome of a check that finds problems, or none and then this.
    pub(super) fn of(problems: Vec<Problem>, seen: impl FnOnce() -> String) -> Self {
        if problems.is_empty() {
            Self::Passed(seen())
        } else {
            Self::Failed(problems)
        }
    }

    /// Makes the outcome of a check that found one problem.
    pub(super) fn failed(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Failed(vec![Problem {
            what: what.into(),
            fix: fix.into(),
        }])
    }

    /// Returns the outcome without secrets: what was typed or configured may hold one.
    fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text).into_owned();
        match self {
            Self::Passed(seen) => Self::Passed(clean(seen)),
            Self::Failed(problems) => Self::Failed(
                problems
                    .into_iter()
                    .map(|problem| Problem {
                        what: clean(problem.what),
                        fix: clean(problem.fix),
                    })
                    .collect(),
            ),
            Self::NotRun(why) => Self::NotRun(clean(why)),
        }
    }

    /// Tells whether something is wrong.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl From<Problem> for Outcome {
    fn from(problem: Problem) -> Self {
        Self::Failed(vec![problem])
    }
}

impl From<CliError> for Outcome {
    fn from(error: CliError) -> Self {
        let what = if error.why.is_empty() {
            error.what
        } else {
            format!("{}: {}", error.what, error.why)
        };
        Self::failed(what, error.fix)
    }
}

/// The checks of a command, told one by one.
#[derive(Debug)]
pub(super) struct Checks {
    command: &'static str,
    made: Vec<(&'static str, Outcome)>,
    notes: Vec<String>,
    output: Output,
    redactor: Redactor,
    is_json: bool,
}

impl Checks {
    /// Begins; for people each check is printed as soon as it was made.
    pub(super) fn begin(command: &'static str, context: &Context, is_json: bool) -> Self {
        Self {
            command,
            made: Vec::new(),
            notes: Vec::new(),
            output: context.output(),
            redactor: context.redactor(),
            is_json,
        }
    }

    /// Takes a check that was made.
    pub(super) fn add(&mut self, name: &'static str, outcome: Outcome) -> Result<(), CliError> {
        let outcome = outcome.redacted(&self.redactor);
        let lines = lines(name, &outcome);
        self.made.push((name, outcome));
        self.print(&lines)
    }

    /// Takes something that a reader should know.
    pub(super) fn note(&mut self, text: String) -> Result<(), CliError> {
        let line = Line::of("  note: ").folded(Tone::Plain, &text);
        self.notes.push(text);
        self.print(&[line])
    }

    fn print(&self, lines: &[Line]) -> Result<(), CliError> {
        if !self.is_json {
            self.output.lines(lines)?;
        }
        Ok(())
    }

    /// Sums up. A check that failed makes the exit code 1.
    pub(super) fn finish(self) -> Result<ExitCode, CliError> {
        let failed = self.made.iter().filter(|(_, outcome)| outcome.is_failure());
        let (failed, all) = (failed.count(), self.made.len());
        let not_run = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::NotRun(_));
        let is_green = failed == 0 && !self.made.iter().any(not_run);
        if self.is_json {
            self.output.json(&json!({
                "ok": is_green,
                "checks": self.made.iter().map(|(name, outcome)| value(name, outcome)).collect::<Vec<_>>(),
                "notes": self.notes,
            }))?;
        } else {
            let command = self.command;
            self.print(&[Line::of(&if is_green {
                format!("ralph: {command} complete — all {all} checks passed")
            } else {
                format!("ralph: {command} complete — {failed}/{all} checks failed")
            })])?;
        }
        Ok(if is_green {
            ExitCode::Success
        } else {
            ExitCode::Runtime
        })
    }
}

fn lines(name: &str, outcome: &Outcome) -> Vec<Line> {
    let line = |tone, word: &str, text: &str| {
        Line::of("  ")
            .with(tone, word)
            .plain(": ")
            .folded(Tone::Plain, &format!("{name} — {text}"))
    };
    match outcome {
        Outcome::Passed(seen) => vec![line(Tone::Good, "PASS", seen)],
        Outcome::Failed(problems) => problems
            .iter()
            .map(|problem| {
                let text = format!("{} — {}", problem.what, problem.fix);
                line(Tone::Bad, "FAIL", &text)
            })
            .collect(),
        Outcome::NotRun(why) => vec![line(Tone::Warn, "NOT RUN", why)],
    }
}

fn value(name: &str, outcome: &Outcome) -> Value {
    let problem = |problem: &Problem| json!({"what": problem.what, "fix": problem.fix});
    let (status, detail, problems) = match outcome {
        Outcome::Passed(seen) => ("pass", Some(seen), Vec::new()),
        Outcome::Failed(problems) => ("fail", None, problems.iter().map(problem).collect()),
        Outcome::NotRun(why) => ("not_run", Some(why), Vec::new()),
    };
    json!({"name": name, "status": status, "detail": detail, "problems": problems})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::line::Colour;

    #[test]
    fn a_line_per_problem() {
        let problem = |what: &str| Problem {
            what: what.into(),
            fix: "mend it".into(),
        };
        let outcomes = [
            Outcome::Passed("2.39".into()),
            Outcome::Failed(vec![problem("one"), problem("two\n\u{1b}[31m")]),
            Outcome::NotRun("no engine answers".into()),
        ];
        let text: Vec<String> = outcomes
            .iter()
            .flat_map(|outcome| lines("git", outcome))
            .map(|line| line.render(Colour::Unused, None))
            .collect();
        snapbox::assert_data_eq!(
            text.join("\n"),
            snapbox::str![[r"
  PASS: git — 2.39
  FAIL: git — one — mend it
  FAIL: git — two  — mend it
  NOT RUN: git — no engine answers
"]]
        );
        let values: Vec<Value> = outcomes
            .iter()
            .map(|outcome| value("git", outcome))
            .collect();
        assert_eq!(
            values[1]["problems"],
            json!([{"what": "one", "fix": "mend it"}, {"what": "two\n\u{1b}[31m", "fix": "mend it"}])
        );
        assert_eq!(values[2]["status"], "not_run");
    }
}
