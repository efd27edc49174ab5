//! `ralph prune-sandboxes`: removes stale sandboxes and lists them.

use std::time::Duration;

use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::providers::LocalOrDocker;
use ralph_app::prune::{OrphanPolicy, PruneEntry, PruneReport, PruneRequest, prune_sandboxes};

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};
use ralph_app::duration;

/// Arguments of `prune-sandboxes`.
#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Remove only sandboxes of this provider
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub provider: Option<ProviderName>,
    /// Also remove sandboxes of runs that were not resumed for this long, such as 2d or 12h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub max_age: Option<Duration>,
    /// Also remove orphaned sandboxes, which may contain the last copy of a run's work
    #[arg(long)]
    pub orphaned: bool,
    /// List the sandboxes and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The sandbox providers that `prune-sandboxes` and `selftest` accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ProviderName {
    /// Containers of a Docker Engine
    Docker,
    /// Directories and processes of this machine
    Local,
}

impl From<ProviderName> for LocalOrDocker {
    fn from(name: ProviderName) -> Self {
        match name {
            ProviderName::Docker => Self::Docker,
            ProviderName::Local => Self::Local,
        }
    }
}

/// Removes stale sandboxes. A failed removal sets the exit code to 1.
pub(super) async fn run(args: PruneArgs, context: &Context) -> Result<ExitCode, AppError> {
    let request = PruneRequest {
        provider: args.provider.map(LocalOrDocker::from),
        max_age: args.max_age,
        orphans: if args.orphaned {
            OrphanPolicy::Remove
        } else {
            OrphanPolicy::Keep
        },
        dry_run: args.dry_run,
    };
    let report = prune_sandboxes(request, &context.app).await?;
    let notes = report.notes.iter();
    let notes: Vec<StyledLine> = notes
        .map(|note| StyledLine::from_text(&format!("note: {note}")))
        .collect();
    context.output().print_stderr_lines(&notes);
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&report_lines(&report))?;
    }
    Ok(if report.failed.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}

fn report_lines(report: &PruneReport) -> Vec<StyledLine> {
    let verb = if report.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let removed = report.removed.iter();
    let removed = removed.map(|entry| entry_line(entry, Tone::Good, verb));
    let failed = report.failed.iter();
    let failed = failed.map(|entry| entry_line(entry, Tone::Bad, "could not remove"));
    let orphaned = report.orphaned.iter();
    let orphaned = orphaned.map(|entry| entry_line(entry, Tone::Warn, "orphaned"));
    let mut lines: Vec<StyledLine> = removed.chain(failed).chain(orphaned).collect();
    if lines.is_empty() {
        lines.push(StyledLine::from_text("ralph: no stale sandboxes found"));
    }
    if !report.orphaned.is_empty() {
        lines.push(StyledLine::from_text(
            "ralph: rescue the work with `ralph adopt RUN`, or remove these sandboxes with `--orphaned`",
        ));
    }
    lines
}

fn entry_line(entry: &PruneEntry, tone: Tone, verb: &str) -> StyledLine {
    let run = entry.run.as_ref();
    let run = run.map_or_else(String::new, |run| format!(" of run {run}"));
    let rest = match (&entry.problem, &entry.fix) {
        (Some(problem), Some(fix)) => format!("{}: {problem} — {fix}", entry.why),
        (_, _) => entry.why.clone(),
    };
    StyledLine::new()
        .span(tone, verb)
        .strong(&format!(" {}", entry.id))
        .plain(&run)
        .plain(" — ")
        .wrapped(Tone::Plain, &rest)
}
