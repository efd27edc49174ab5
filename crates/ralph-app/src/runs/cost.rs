//! The cost of all runs, by run, day, repository or model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use ralph_core::event::{Event, JournalRecord, RunEvent};
use ralph_core::money::Usd;
use ralph_core::spending::{self, ModelCharge};
use ralph_engine::journal;
use serde::Serialize;
use utoipa::ToSchema;

use super::summary::TokenTotals;
use crate::app::App;
use crate::duration;
use crate::error::AppError;

/// How charges are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostGrouping {
    /// By run.
    Run,
    /// By day, in UTC.
    Day,
    /// By repository.
    Repo,
    /// By model.
    Model,
}

/// The start of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostStart {
    /// This long ago.
    Ago(Duration),
    /// The start of a day, in UTC.
    Day(Timestamp),
}

impl CostStart {
    /// Parses a time such as `7d`, or a date such as `2026-11-01`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(date) = text.parse::<Date>() {
            return match date.to_zoned(TimeZone::UTC) {
                Ok(start) => Ok(Self::Day(start.timestamp())),
                Err(error) => Err(error.to_string()),
            };
        }
        duration::parse(text).map(Self::Ago).map_err(|_| {
            "expected a time such as `7d` or `12h`, or a date such as `2026-11-01`".into()
        })
    }

    /// Returns the first moment of the period.
    pub fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Day(start) => start,
            // A time before the first possible one leaves out nothing.
            Self::Ago(time) => now.checked_sub(time).unwrap_or(Timestamp::MIN),
        }
    }
}

/// The cost of all runs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CostReport {
    pub by: CostGrouping,
    /// Older charges are left out.
    pub since: Option<Timestamp>,
    /// The most expensive first; days newest first.
    pub rows: Vec<CostRow>,
    pub total: CostTotals,
    /// The runs whose journals cannot be read.
    pub unreadable: Vec<String>,
}

/// The cost of one run, day, repository or model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CostRow {
    pub key: String,
    #[serde(flatten)]
    pub totals: CostTotals,
}

/// The sums of charges.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct CostTotals {
    /// The number of runs with a charge.
    pub runs: u64,
    /// The number of model calls.
    pub calls: u64,
    pub cost_usd: f64,
    pub tokens: TokenTotals,
}

/// Sums while charges are added.
#[derive(Default)]
struct CostSum {
    runs: BTreeSet<String>,
    calls: u64,
    cost: Usd,
    tokens: TokenTotals,
}

impl CostSum {
    fn add(&mut self, run: &str, charge: &ModelCharge) {
        if !self.runs.contains(run) {
            self.runs.insert(run.to_owned());
        }
        self.calls += 1;
        self.cost += charge.cost;
        self.tokens.input += charge.usage.input_tokens;
        self.tokens.output += charge.usage.output_tokens;
    }

    fn totals(&self) -> CostTotals {
        CostTotals {
            runs: self.runs.len() as u64,
            calls: self.calls,
            cost_usd: self.cost.dollars(),
            tokens: self.tokens,
        }
    }
}

/// Sums the charges of all runs since a time.
pub fn cost_report(
    by: CostGrouping,
    since: Option<Timestamp>,
    app: &App,
) -> Result<CostReport, AppError> {
    let state = app.state_dir()?;
    let mut groups: BTreeMap<String, CostSum> = BTreeMap::new();
    let mut total = CostSum::default();
    let mut unreadable = Vec::new();
    for id in state.runs()? {
        let records = match journal::read(&state.run(&id).journal()) {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(run = %id, %error, "the cost of a run is unknown");
                unreadable.push(id.to_string());
                continue;
            }
        };
        let Some(charges) = spending::charges(&records) else {
            unreadable.push(id.to_string());
            continue;
        };
        let repo = repository(&records);
        let recent = |charge: &&ModelCharge| since.is_none_or(|since| charge.at >= since);
        for charge in charges.iter().filter(recent) {
            let key = match by {
                CostGrouping::Run => id.to_string(),
                CostGrouping::Day => day(charge.at),
                CostGrouping::Repo => repo.to_owned(),
                CostGrouping::Model => charge.model.clone(),
            };
            groups.entry(key).or_default().add(id.as_str(), charge);
            total.add(id.as_str(), charge);
        }
    }
    Ok(CostReport {
        by,
        since,
        rows: sorted_rows(by, groups),
        total: total.totals(),
        unreadable,
    })
}

fn sorted_rows(by: CostGrouping, groups: BTreeMap<String, CostSum>) -> Vec<CostRow> {
    let mut groups: Vec<(String, CostSum)> = groups.into_iter().collect();
    match by {
        CostGrouping::Day => groups.reverse(),
        CostGrouping::Run | CostGrouping::Repo | CostGrouping::Model => {
            groups.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.cost));
        }
    }
    let row = |(key, sum): (String, CostSum)| CostRow {
        key,
        totals: sum.totals(),
    };
    groups.into_iter().map(row).collect()
}

fn repository(records: &[JournalRecord]) -> &str {
    match records.first().map(|record| &record.event) {
        Some(Event::Run(RunEvent::RunCreated { plan })) => &plan.repo,
        Some(_) | None => "",
    }
}

fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_starts_some_time_ago_or_on_a_day() {
        let week = Duration::from_hours(7 * 24);
        assert_eq!(CostStart::parse("7d"), Ok(CostStart::Ago(week)));
        let start = "2026-11-01T00:00:00Z".parse().unwrap();
        assert_eq!(CostStart::parse("2026-11-01"), Ok(CostStart::Day(start)));
        for text in ["", "yesterday", "2026-13-01", "7w"] {
            assert!(CostStart::parse(text).is_err(), "{text}");
        }
        let huge = CostStart::Ago(Duration::MAX);
        assert_eq!(huge.timestamp(start), Timestamp::MIN);
    }
}
