//! `ralph lint`: says what a task file lacks before it is run.

use std::path::Path;

use ralph_core::lint::{self, LintFinding, LintSeverity};
use ralph_core::task::TaskFile;
use serde_json::json;

use super::args::LintArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::planning;
use crate::config::{RegularFileError, read_user_named};
use crate::terminal::format;
use crate::terminal::styled_line::{StyledLine, Tone};

/// More of a file is never read; the linter refuses it long before that.
const MAX_TASK_BYTES: u64 = 16 << 20;

/// Prints the findings. Errors make the exit code 1.
pub(super) fn run(args: &LintArgs, context: &Context) -> Result<ExitCode, CliError> {
    let shown = args.file.display().to_string();
    let findings = match read_task_bytes(&args.file, context) {
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
            vec![LintFinding::missing_task_file(&shown)]
        }
        Err(error) => {
            return Err(CliError::runtime(
                format!("cannot read `{shown}`"),
                error.to_string(),
                match &error {
                    RegularFileError::Io(_) | RegularFileError::NotRegular { .. } => {
                        "name a task file that you can read"
                    }
                    RegularFileError::OutsideRoot { .. } => error.hint(),
                },
            ));
        }
    };
    let errors = count_severity(&findings, LintSeverity::Error);
    if args.json {
        let report = json!({"ok": errors == 0, "findings": findings});
        context.output().print_json(&report)?;
    } else {
        context
            .output()
            .print_lines(&finding_lines(&shown, &findings))?;
    }
    Ok(if errors == 0 {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

/// Looks whether the task's model has a price. A profile that is not here says nothing about the task.
fn unknown_price(task: &TaskFile, context: &Context) -> Option<LintFinding> {
    let choice = planning::model_choice(None, None, Some(task), context).ok()?;
    lint::unenforceable_cost_limit(task, &choice.model, choice.price.as_ref())
}

/// Returns the start of a task file, which must be a regular file of the repository that it is named in.
pub(super) fn read_task_bytes(file: &Path, context: &Context) -> Result<Vec<u8>, RegularFileError> {
    let directory = context.environment().working_dir();
    Ok(read_user_named(file, directory, MAX_TASK_BYTES)?.bytes)
}

fn count_severity(findings: &[LintFinding], severity: LintSeverity) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

/// Returns the findings for people, with where they are and what to do.
pub(super) fn finding_lines(file: &str, findings: &[LintFinding]) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for finding in findings {
        let place = [finding.line, finding.column]
            .into_iter()
            .flatten()
            .fold(file.to_owned(), |place, number| format!("{place}:{number}"));
        let (word, tone) = match finding.severity {
            LintSeverity::Error => ("error", Tone::Bad),
            LintSeverity::Warning => ("warning", Tone::Warn),
        };
        lines.push(
            StyledLine::new()
                .strong(&format!("{place}: "))
                .span(tone, word)
                .quiet(&format!("[{}]", finding.code))
                .plain(" ")
                .wrapped(Tone::Plain, &finding.message),
        );
        lines.push(
            StyledLine::from_text("    ")
                .quiet("fix: ")
                .wrapped(Tone::Plain, &finding.fix),
        );
    }
    lines.push(summary_line(file, findings));
    lines
}

fn summary_line(file: &str, findings: &[LintFinding]) -> StyledLine {
    let errors = count_severity(findings, LintSeverity::Error);
    let warnings = count_severity(findings, LintSeverity::Warning);
    let warned = format::plural(warnings as u64, "warning", "warnings");
    if errors > 0 {
        let errors = format::plural(errors as u64, "error", "errors");
        StyledLine::from_text(&format!("{file}: "))
            .span(Tone::Bad, &errors)
            .plain(&format!(", {warned}"))
    } else {
        let line = StyledLine::from_text(&format!("{file}: ")).span(Tone::Good, "ok");
        if warnings > 0 {
            line.plain(&format!(", {warned}"))
        } else {
            line
        }
    }
}
