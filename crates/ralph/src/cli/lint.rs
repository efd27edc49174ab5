//! `ralph lint`: checks a task file before it is run.

use std::path::PathBuf;

use clap::Args;
use ralph_app::AppError;
use ralph_app::config::RegularFileError;
use ralph_app::format;
use ralph_app::planning::TASK_FILE;
use ralph_app::planning::{lint_task, read_task_bytes};
use ralph_core::lint::{LintFinding, LintSeverity};
use serde_json::json;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `lint`.
#[derive(Debug, Args)]
pub(super) struct LintArgs {
    /// The task file
    #[arg(default_value = TASK_FILE)]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the findings. Errors set the exit code to 1.
pub(super) fn run(args: &LintArgs, context: &Context) -> Result<ExitCode, AppError> {
    let name = args.file.display().to_string();
    let findings = match read_task_bytes(&args.file, &context.app) {
        Ok(bytes) => lint_task(&bytes, &context.app),
        Err(error) if error.is_missing() => {
            if !args.json {
                return Err(AppError::runtime(
                    format!("there is no task file `{name}`"),
                    "",
                    "name another file, or create one with `ralph init`",
                ));
            }
            vec![LintFinding::missing_task_file(&name)]
        }
        Err(error) => {
            return Err(AppError::runtime(
                format!("cannot read `{name}`"),
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
            .print_lines(&finding_lines(&name, &findings))?;
    }
    Ok(if errors == 0 {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

fn count_severity(findings: &[LintFinding], severity: LintSeverity) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

/// Formats the findings with their positions and fixes.
pub(super) fn finding_lines(file: &str, findings: &[LintFinding]) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for finding in findings {
        let position = [finding.line, finding.column]
            .into_iter()
            .flatten()
            .fold(file.to_owned(), |position, number| {
                format!("{position}:{number}")
            });
        let (word, tone) = match finding.severity {
            LintSeverity::Error => ("error", Tone::Bad),
            LintSeverity::Warning => ("warning", Tone::Warn),
        };
        lines.push(
            StyledLine::new()
                .strong(&format!("{position}: "))
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
    let warning_count = format::plural(warnings as u64, "warning", "warnings");
    if errors > 0 {
        let errors = format::plural(errors as u64, "error", "errors");
        StyledLine::from_text(&format!("{file}: "))
            .span(Tone::Bad, &errors)
            .plain(&format!(", {warning_count}"))
    } else {
        let line = StyledLine::from_text(&format!("{file}: ")).span(Tone::Good, "ok");
        if warnings > 0 {
            line.plain(&format!(", {warning_count}"))
        } else {
            line
        }
    }
}
