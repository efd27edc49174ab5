//! `ralph diff`: prints the changes of a run or of one iteration.

use std::io::IsTerminal as _;

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::results::{iteration_diff, run_diff};
use ralph_core::diff::{self, FileDiff};
use ralph_core::event::DiffSize;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::sanitize;
use crate::terminal::styled_line::{Colour, StyledLine, Tone, paint};

/// The longest diff of an iteration that is stored.
const MAX_STORED_DIFF: usize = 8 << 20;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print the changes of this iteration, committed or not
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,
    /// Print a line per file instead of the changes
    #[arg(long)]
    pub stat: bool,
}

/// Prints the changes: unchanged if standard output is no terminal, so that `git apply` reads them.
pub(super) async fn run(args: DiffArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let state = dir.state()?;
    let changes = match args.iteration {
        Some(number) => iteration_diff(&dir, &state, number)?,
        None => run_diff(&dir, &state, &context.app).await?,
    };
    let output = context.output();
    if args.iteration.is_some() && changes.len() >= MAX_STORED_DIFF {
        let note = "note: the diff of an iteration is cut at 8 MiB";
        output.print_stderr_lines(&[StyledLine::from_text(note)]);
    }
    if args.stat {
        output.print_lines(&stat_lines(&changes))?;
    } else if changes.is_empty() {
        let what = match args.iteration {
            Some(number) => format!("iteration {number} changed nothing"),
            None => "no commits yet".to_owned(),
        };
        output.print_stderr_lines(&[StyledLine::from_text("ralph: ").plain(&what)]);
    } else if std::io::stdout().is_terminal() {
        output.print_text(&coloured(&changes, output.style().colour()))?;
    } else {
        output.print_bytes(&changes)?;
    }
    Ok(ExitCode::Success)
}

/// Returns a diff that is safe for a terminal, with coloured lines.
pub(super) fn coloured(changes: &[u8], colour: Colour) -> String {
    let text = sanitize::text(&String::from_utf8_lossy(changes));
    let mut in_hunk = false;
    let lines = text.lines().map(|line| {
        let tone = if line.starts_with("diff --git ") {
            in_hunk = false;
            Tone::Strong
        } else if line.starts_with("@@ ") {
            in_hunk = true;
            Tone::Accent
        } else if in_hunk && line.starts_with('+') {
            Tone::Good
        } else if in_hunk && line.starts_with('-') {
            Tone::Bad
        } else {
            Tone::Plain
        };
        paint(line, tone, colour) + "\n"
    });
    lines.collect()
}

/// Returns a line per file, and the total.
pub(super) fn stat_lines(changes: &[u8]) -> Vec<StyledLine> {
    let files = diff::file_diffs(changes);
    let mut lines: Vec<StyledLine> = files.iter().map(file_line).collect();
    let size = diff::diff_size(changes);
    let total = format::plural(size.files, "file", "files");
    lines.push(StyledLine::from_text(&total).plain(&format!(" · {}", counts(size))));
    lines
}

fn file_line(file: &FileDiff) -> StyledLine {
    let size = DiffSize {
        files: 1,
        added: file.added,
        removed: file.removed,
    };
    let change = if file.binary {
        "binary".to_owned()
    } else {
        counts(size)
    };
    StyledLine::from_text("  ")
        .plain(&file.path)
        .quiet(&format!(" · {change}"))
}

fn counts(size: DiffSize) -> String {
    format!("+{} −{}", size.added, size.removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_coloured_by_its_hunks_and_safe_for_a_terminal() {
        let changes =
            b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\told\n+n\x1b[31mew\n same\n";
        let shown = coloured(changes, Colour::Unused);
        assert_eq!(
            shown,
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\told\n+new\n same\n"
        );
        let shown = coloured(changes, Colour::Used);
        assert!(
            shown.contains("\u{1b}[32m+new\u{1b}[0m\n same\n"),
            "{shown:?}"
        );
        assert!(shown.contains("\n+++ b/x\n"), "{shown:?}");
    }
}
