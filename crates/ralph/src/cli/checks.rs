//! The output of `preflight` and `selftest`: a line per check and a summary.

use ralph_app::AppError;
use ralph_app::checks::{CheckCounts, CheckEntry, CheckOutcome, CheckSink, CheckSummary};
use ralph_core::secret::Redactor;

use super::context::Context;
use super::exit::ExitCode;
use super::output::CliOutput;
use crate::terminal::styled_line::{StyledLine, Tone};

/// The checks of a command, reported one by one.
#[derive(Debug)]
pub(super) struct CheckReport {
    command: &'static str,
    results: Vec<(&'static str, CheckOutcome)>,
    notes: Vec<String>,
    output: CliOutput,
    redactor: Redactor,
    is_json: bool,
}

impl CheckReport {
    /// Starts the report. Text output shows each check immediately.
    pub(super) fn new(command: &'static str, context: &Context, is_json: bool) -> Self {
        Self {
            command,
            results: Vec::new(),
            notes: Vec::new(),
            output: context.output(),
            redactor: context.app.redactor(),
            is_json,
        }
    }

    fn print(&self, lines: &[StyledLine]) -> Result<(), AppError> {
        if !self.is_json {
            self.output.print_lines(lines)?;
        }
        Ok(())
    }

    /// Prints the summary. A check that failed or did not run sets the exit code to 1.
    pub(super) fn finish(self) -> Result<ExitCode, AppError> {
        let counts = CheckCounts::from_outcomes(self.results.iter().map(|(_, outcome)| outcome));
        let is_green = counts.is_green();
        if self.is_json {
            let results = self.results.iter();
            self.output.print_json(&CheckSummary {
                ok: is_green,
                checks: results
                    .map(|(name, outcome)| CheckEntry::new(name, outcome))
                    .collect(),
                notes: self.notes,
            })?;
        } else {
            let summary = format!("ralph: {} complete — {counts}", self.command);
            self.print(&[StyledLine::from_text(&summary)])?;
        }
        Ok(if is_green {
            ExitCode::Success
        } else {
            ExitCode::Runtime
        })
    }
}

impl CheckSink for CheckReport {
    fn add(&mut self, name: &'static str, outcome: CheckOutcome) -> Result<(), AppError> {
        let outcome = outcome.redacted(&self.redactor);
        let lines = check_lines(name, &outcome);
        self.results.push((name, outcome));
        self.print(&lines)
    }

    fn note(&mut self, text: String) -> Result<(), AppError> {
        let line = StyledLine::from_text("  note: ").wrapped(Tone::Plain, &text);
        self.notes.push(text);
        self.print(&[line])
    }
}

fn check_lines(name: &str, outcome: &CheckOutcome) -> Vec<StyledLine> {
    let line = |tone, word: &str, text: &str| {
        StyledLine::from_text("  ")
            .span(tone, word)
            .plain(": ")
            .wrapped(Tone::Plain, &format!("{name} — {text}"))
    };
    match outcome {
        CheckOutcome::Passed(detail) => vec![line(Tone::Good, "PASS", detail)],
        CheckOutcome::Failed(problems) => problems
            .iter()
            .map(|error| {
                let text = format!("{} — {}", error.cause(), error.fix);
                line(Tone::Bad, "FAIL", &text)
            })
            .collect(),
        CheckOutcome::NotRun(why) => vec![line(Tone::Warn, "NOT RUN", why)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::styled_line::Colour;

    #[test]
    fn a_line_per_problem() {
        let problem = |what: &str| AppError::runtime(what, "", "fix it");
        let outcomes = [
            CheckOutcome::Passed("2.39".into()),
            CheckOutcome::Failed(vec![problem("one"), problem("two\n\u{1b}[31m")]),
            CheckOutcome::NotRun("no engine answers".into()),
        ];
        let text: Vec<String> = outcomes
            .iter()
            .flat_map(|outcome| check_lines("git", outcome))
            .map(|line| line.render(Colour::Unused, None))
            .collect();
        snapbox::assert_data_eq!(
            text.join("\n"),
            snapbox::str![[r"
  PASS: git — 2.39
  FAIL: git — one — fix it
  FAIL: git — two  — fix it
  NOT RUN: git — no engine answers
"]]
        );
    }
}
