//! `ralph lint`: says what a task file lacks before it is run.

use std::path::Path;

use ralph_core::lint::{self, Finding, Severity};
use ralph_core::task::TaskFile;
use serde_json::json;

use super::args::LintArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::planning;
use crate::config::{FileProblem, read_named};
use crate::terminal::format;
use crate::terminal::line::{Line, Tone};

/// More of a file is never read; the linter refuses it long before that.
const MAX_BYTES: u64 = 16 << 20;

/// Prints the findings. Errors make the exit code 1.
pub(super) fn run(args: &LintArgs, context: &Context) -> Result<ExitCode, CliError> {
    let shown = args.file.display().to_string();
    let findings = match read(&args.file, context) {
        Ok(bytes) => {
            let report = lint::check(&bytes);
            let mut findings = report.findings;
            findings.extend(report.task.and_then(|task| unknown_price(&task, context)));
            findings.sort_by_key(|finding| (finding.line, finding.column, finding.severity));
            findings
        }
        Err(error) if error.is_missing() => {
            if !args.json {
                return Err(CliError::runtime(
                    format!("there is no task file `{shown}`"),
                    "nothing has that name",
                    "name another file, or write one with `ralph init`",
                ));
            }
            vec![Finding::missing_task_file(&shown)]
        }
        Err(error) => {
            return Err(CliError::runtime(
                format!("cannot read `{shown}`"),
                error.to_string(),
                match &error {
                    FileProblem::Io(_) | FileProblem::NotRegular { .. } => {
                        "name a task file that you can read"
                    }
                    FileProblem::LeadsOut { .. } => error.hint(),
                },
            ));
        }
    };
    let errors = count(&findings, Severity::Error);
    if args.json {
        let report = json!({"ok": errors == 0, "findings": findings});
        context.output().json(&report)?;
    } else {
        context.output().lines(&report(&shown, &findings))?;
    }
    Ok(if errors == 0 {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

/// Looks whether the task's model has a price. A profile that is not here says nothing about the task.
fn unknown_price(task: &TaskFile, context: &Context) -> Option<Finding> {
    let choice = planning::model_choice(None, None, Some(task), context).ok()?;
    lint::unknown_price(task, &choice.model, choice.price.as_ref())
}

/// Returns the start of a task file, which must be a regular file of the repository that it is named in.
pub(super) fn read(file: &Path, context: &Context) -> Result<Vec<u8>, FileProblem> {
    let directory = context.environment().directory();
    Ok(read_named(file, directory, MAX_BYTES)?.bytes)
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

/// Returns the findings for people, with where they are and what to do.
pub(super) fn report(file: &str, findings: &[Finding]) -> Vec<Line> {
    let mut lines = Vec::new();
    for finding in findings {
        let place = [finding.line, finding.column]
            .into_iter()
            .flatten()
            .fold(file.to_owned(), |place, number| format!("{place}:{number}"));
        let (word, tone) = match finding.severity {
            Severity::Error => ("error", Tone::Bad),
            Severity::Warning => ("warning", Tone::Warn),
        };
        lines.push(
            Line::new()
                .strong(&format!("{place}: "))
                .with(tone, word)
                .quiet(&format!("[{}]", finding.code))
                .plain(" ")
                .folded(Tone::Plain, &finding.message),
        );
        lines.push(
            Line::of("    ")
                .quiet("fix: ")
                .folded(Tone::Plain, &finding.fix),
        );
    }
    lines.push(total(file, findings));
    lines
}

fn total(file: &str, findings: &[Finding]) -> Line {
    let errors = count(findings, Severity::Error);
    let warnings = count(findings, Severity::Warning);
    let warned = format::plural(warnings as u64, "warning", "warnings");
    if errors > 0 {
        let errors = format::plural(errors as u64, "error", "errors");
        Line::of(&format!("{file}: "))
            .with(Tone::Bad, &errors)
            .plain(&format!(", {warned}"))
    } else {
        let line = Line::of(&format!("{file}: ")).with(Tone::Good, "ok");
        if warnings > 0 {
            line.plain(&format!(", {warned}"))
        } else {
            line
        }
    }
}
