//! `ralph cost`: shows the cost of all runs, by run, day, repository or model.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{CostGrouping, CostReport, CostTotals, cost_report};
use ralph_core::money::Usd;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};
use ralph_app::duration;

/// Arguments of `cost`.
#[derive(Debug, Args)]
pub(super) struct CostArgs {
    /// Leave out older charges: a time such as 7d or 12h, or a date such as 2026-11-01
    #[arg(long, value_name = "TIME|DATE", value_parser = parse_since)]
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

/// The start of the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CostStart {
    /// This long ago.
    Ago(std::time::Duration),
    /// The start of a day, in UTC.
    Day(Timestamp),
}

fn parse_since(text: &str) -> Result<CostStart, String> {
    if let Ok(date) = text.parse::<Date>() {
        let start = date.to_zoned(TimeZone::UTC);
        return match start {
            Ok(start) => Ok(CostStart::Day(start.timestamp())),
            Err(error) => Err(error.to_string()),
        };
    }
    let ago = duration::parse(text);
    ago.map(CostStart::Ago)
        .map_err(|_| "expected a time such as `7d` or `12h`, or a date such as `2026-11-01`".into())
}

/// Prints the sums.
pub(super) fn run(args: &CostArgs, context: &Context) -> Result<ExitCode, AppError> {
    let by = match args.by {
        CostBy::Run => CostGrouping::Run,
        CostBy::Day => CostGrouping::Day,
        CostBy::Repo => CostGrouping::Repo,
        CostBy::Model => CostGrouping::Model,
    };
    let since = args.since.map(|since| match since {
        CostStart::Day(start) => start,
        // A time before the first possible one leaves out nothing.
        CostStart::Ago(time) => {
            let now = context.app.clock().now();
            now.checked_sub(time).unwrap_or(Timestamp::MIN)
        }
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_starts_some_time_ago_or_on_a_day() {
        let week = std::time::Duration::from_hours(7 * 24);
        assert_eq!(parse_since("7d"), Ok(CostStart::Ago(week)));
        let start = "2026-11-01T00:00:00Z".parse().unwrap();
        assert_eq!(parse_since("2026-11-01"), Ok(CostStart::Day(start)));
        for text in ["", "yesterday", "2026-13-01", "7w"] {
            assert!(parse_since(text).is_err(), "{text}");
        }
    }
}
