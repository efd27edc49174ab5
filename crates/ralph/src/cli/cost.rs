//! `ralph cost`: shows the cost of all runs, by run, day, repository or model.

use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{CostGrouping, CostReport, CostStart, CostTotals, cost_report};
use ralph_core::money::Usd;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Arguments of `cost`.
#[derive(Debug, Args)]
pub(super) struct CostArgs {
    /// Leave out older charges: a time such as 7d or 12h, or a date such as 2026-11-01
    #[arg(long, value_name = "TIME|DATE", value_parser = CostStart::parse)]
    pub since: Option<CostStart>,
    /// Sum by this
    #[arg(long, value_enum, default_value = "run")]
    pub by: CostBy,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The groups of charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CostBy {
    /// Each run
    Run,
    /// Each day, in UTC
    Day,
    /// Each repository
    Repo,
    /// Each model
    Model,
}

/// Prints the sums.
pub(super) fn run(args: &CostArgs, context: &Context) -> Result<ExitCode, AppError> {
    let by = match args.by {
        CostBy::Run => CostGrouping::Run,
        CostBy::Day => CostGrouping::Day,
        CostBy::Repo => CostGrouping::Repo,
        CostBy::Model => CostGrouping::Model,
    };
    let now = context.app.clock().now();
    let since = args.since.map(|since| since.timestamp(now));
    let report = cost_report(by, since, &context.app)?;
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context.output().print_lines(&report_lines(&report))?;
    }
    Ok(ExitCode::Success)
}

fn report_lines(report: &CostReport) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if report.rows.is_empty() {
        let period = if report.since.is_some() {
            " since then"
        } else {
            ""
        };
        lines.push(StyledLine::from_text(&format!("no model calls{period}")));
    } else {
        let name = match report.by {
            CostGrouping::Run => "RUN",
            CostGrouping::Day => "DAY",
            CostGrouping::Repo => "REPOSITORY",
            CostGrouping::Model => "MODEL",
        };
        let header = columns(&["COST", "INPUT", "OUTPUT", "CALLS", "RUNS"].map(str::to_owned));
        lines.push(StyledLine::new().quiet(&header).quiet(name));
        let rows = report.rows.iter();
        lines.extend(
            rows.map(|row| {
                StyledLine::from_text(&cells(&row.totals)).wrapped(Tone::Plain, &row.key)
            }),
        );
        lines.push(StyledLine::from_text(&cells(&report.total)).strong("total"));
    }
    if !report.unreadable.is_empty() {
        let count = report.unreadable.len() as u64;
        let runs = format::plural(count, "run cannot be read", "runs cannot be read");
        let text = format!("{runs}: {}", report.unreadable.join(", "));
        lines.push(StyledLine::from_text("note: ").wrapped(Tone::Warn, &text));
    }
    lines
}

fn cells(totals: &CostTotals) -> String {
    let cost = Usd::from_dollars(totals.cost_usd).unwrap_or_default();
    columns(&[
        cost.to_string(),
        format::count(totals.tokens.input),
        format::count(totals.tokens.output),
        format::count(totals.calls),
        format::count(totals.runs),
    ])
}

/// Aligns the numbers of a row to the right.
fn columns(cells: &[String; 5]) -> String {
    let widths = [10, 13, 11, 6, 5];
    let aligned = cells.iter().zip(widths);
    let aligned: Vec<String> = aligned
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    format!("{}  ", aligned.join(" "))
}
