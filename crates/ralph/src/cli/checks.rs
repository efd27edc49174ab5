//! The output of `preflight` and `selftest`: a line per check and a summary.

use std::fmt;

use ralph_app::AppError;
use ralph_app::checks::{CheckOutcome, CheckSink};
use ralph_core::secret::Redactor;
use serde_json::{Value, json};

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
            self.output.print_json(&json!({
                "ok": is_green,
                "checks": self.results.iter().map(|(name, outcome)| check_json(name, outcome)).collect::<Vec<_>>(),
                "notes": self.notes,
            }))?;
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

/// The numbers of checks by outcome.
#[derive(Debug, Default)]
struct CheckCounts {
    passed: usize,
    failed: usize,
    not_run: usize,
}

impl CheckCounts {
    fn from_outcomes<'a>(outcomes: impl Iterator<Item = &'a CheckOutcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            match outcome {
                CheckOutcome::Passed(_) => counts.passed += 1,
                CheckOutcome::Failed(_) => counts.failed += 1,
                CheckOutcome::NotRun(_) => counts.not_run += 1,
            }
        }
        counts
    }

    fn is_green(&self) -> bool {
        self.failed == 0 && self.not_run == 0
    }
}

impl fmt::Display for CheckCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            not_run,
        } = self;
        let all = passed + failed + not_run;
        if self.is_green() {
            return write!(f, "all {all} checks passed");
        }
        write!(f, "{failed}/{all} checks failed")?;
        match not_run {
            0 => Ok(()),
            not_run => write!(f, ", {not_run} not run"),
        }
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
                let text = format!("{} — {}", cause(error), error.fix);
                line(Tone::Bad, "FAIL", &text)
            })
            .collect(),
        CheckOutcome::NotRun(why) => vec![line(Tone::Warn, "NOT RUN", why)],
    }
}

/// Returns the problem and its cause in one text.
fn cause(error: &AppError) -> String {
    if error.why.is_empty() {
        error.what.clone()
    } else {
        format!("{}: {}", error.what, error.why)
    }
}

fn check_json(name: &str, outcome: &CheckOutcome) -> Value {
    let problem = |error: &AppError| json!({"what": cause(error), "fix": error.fix});
    let (status, detail, problems) = match outcome {
        CheckOutcome::Passed(detail) => ("pass", Some(detail), Vec::new()),
        CheckOutcome::Failed(problems) => ("fail", None, problems.iter().map(problem).collect()),
        CheckOutcome::NotRun(why) => ("not_run", Some(why), Vec::new()),
    };
    json!({"name": name, "status": status, "detail": detail, "problems": problems})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::styled_line::Colour;

    #[test]
    fn the_summary_counts_failures_and_checks_that_were_not_run() {
        let passed = || CheckOutcome::Passed(String::new());
        let failed = || CheckOutcome::Failed(Vec::new());
        let not_run = || CheckOutcome::NotRun(String::new());
        for (outcomes, summary) in [
            (vec![passed(), passed()], "all 2 checks passed"),
            (vec![passed(), failed()], "1/2 checks failed"),
            (vec![passed(), not_run()], "0/2 checks failed, 1 not run"),
            (
                vec![failed(), not_run(), not_run()],
                "1/3 checks failed, 2 not run",
            ),
        ] {
            let counts = CheckCounts::from_outcomes(outcomes.iter());
            assert_eq!(counts.to_string(), summary);
        }
    }

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
        let values: Vec<Value> = outcomes
            .iter()
            .map(|outcome| check_json("git", outcome))
            .collect();
        assert_eq!(
            values[1]["problems"],
            json!([{"what": "one", "fix": "fix it"}, {"what": "two\n\u{1b}[31m", "fix": "fix it"}])
        );
        assert_eq!(values[2]["status"], "not_run");
    }
}
