//! Judges the checks of a commit at the source host.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::policy::CiPolicy;
use crate::ports::{CheckConclusion, CheckReport, HostCheck};

/// The start of the names of ralph's own statuses, which prove nothing.
const OWN_PREFIX: &str = "ralph/";

/// The result of the checks of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CiOutcome {
    /// All checks passed.
    Passed,
    /// At least one check failed.
    Failed,
    /// No check was started.
    Missing,
    /// The checks did not complete in time.
    TimedOut,
}

/// The consequence of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CiDecision {
    /// The run may succeed.
    Success,
    /// The run iterates again.
    Retry,
    /// The user has to act.
    Pause,
}

/// The number of checks in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CiCounts {
    pub passed: u64,
    pub failed: u64,
    pub pending: u64,
}

impl fmt::Display for CiCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} pending",
            self.passed, self.failed, self.pending
        )
    }
}

/// Collects the reports about one commit until they have a result.
#[derive(Debug, Clone, Default)]
pub struct CiWatch {
    /// The checks of the last report, if all of them had passed.
    passed: Option<BTreeSet<String>>,
}

impl CiWatch {
    /// Returns the result after waiting for this long; `None` if the wait continues.
    ///
    /// A host starts its checks one after the other, and the first one of a slow system can follow a
    /// status that is passed at once. So they have passed only if the next report contains the same
    /// ones, and not before the end of the grace time.
    pub fn judge(
        &mut self,
        report: &CheckReport,
        policy: &CiPolicy,
        waited: Duration,
    ) -> Option<CiOutcome> {
        let counts = count(report);
        let is_over = waited >= policy.timeout;
        let is_late = waited >= policy.grace || is_over;
        let was_passed = self.passed.take();
        if counts.pending > 0 {
            let failed = is_over && counts.failed > 0;
            return match (is_over, failed) {
                (_, true) => Some(CiOutcome::Failed),
                (true, false) => Some(CiOutcome::TimedOut),
                (false, false) => None,
            };
        }
        if counts.failed > 0 {
            return Some(CiOutcome::Failed);
        }
        if counts.passed == 0 {
            return is_late.then_some(CiOutcome::Missing);
        }
        let names: BTreeSet<String> = foreign_checks(report)
            .map(|check| check.name.clone())
            .collect();
        let is_stable = was_passed.as_ref() == Some(&names);
        self.passed = Some(names);
        (is_late && is_stable || is_over).then_some(CiOutcome::Passed)
    }
}

/// Returns the checks that are not ralph's own.
pub fn foreign_checks(report: &CheckReport) -> impl Iterator<Item = &HostCheck> {
    let checks = report.checks.iter();
    checks.filter(|check| !check.name.starts_with(OWN_PREFIX))
}

/// Returns the failed checks that are not ralph's own.
pub fn failed_checks(report: &CheckReport) -> impl Iterator<Item = &HostCheck> {
    foreign_checks(report).filter(|check| check.conclusion == Some(CheckConclusion::Failed))
}

/// Counts the checks that are not ralph's own.
pub fn count(report: &CheckReport) -> CiCounts {
    let mut counts = CiCounts::default();
    for check in foreign_checks(report) {
        match check.conclusion {
            Some(CheckConclusion::Passed) => counts.passed += 1,
            Some(CheckConclusion::Failed) => counts.failed += 1,
            None => counts.pending += 1,
        }
    }
    counts
}

/// Returns the consequence of a result. `failed_rounds` includes this one.
pub fn decide(outcome: CiOutcome, policy: &CiPolicy, failed_rounds: u32) -> CiDecision {
    match (outcome, policy.required) {
        (CiOutcome::Passed, _) | (_, false) => CiDecision::Success,
        (CiOutcome::Failed, true) if failed_rounds < policy.max_rounds => CiDecision::Retry,
        (CiOutcome::Failed | CiOutcome::Missing | CiOutcome::TimedOut, true) => CiDecision::Pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `a+ b- c?`: passed, failed, pending.
    fn report(text: &str) -> CheckReport {
        let checks = text.split_whitespace().map(|check| {
            let (name, state) = check.split_at(check.len() - 1);
            HostCheck {
                id: None,
                name: name.into(),
                url: None,
                conclusion: match state {
                    "+" => Some(CheckConclusion::Passed),
                    "-" => Some(CheckConclusion::Failed),
                    _ => None,
                },
                state: String::new(),
            }
        });
        CheckReport {
            checks: checks.collect(),
        }
    }

    #[test]
    fn a_sequence_of_reports_has_a_result() {
        use CiOutcome::{Failed, Missing, Passed, TimedOut};
        let policy = CiPolicy::default();
        // Reports with the minutes waited, and the result of the last one.
        for (reports, expected) in [
            (vec![("", 0)], None),
            (vec![("", 2)], Some(Missing)),
            (vec![("ralph/clean-room+", 2)], Some(Missing)),
            (vec![("a?", 3)], None),
            (vec![("a?", 30)], Some(TimedOut)),
            (vec![("a+", 1)], None),
            (vec![("a+", 1), ("a+", 2)], Some(Passed)),
            (vec![("a+", 1), ("a+ b+", 2)], None),
            (vec![("a+", 1), ("a+ b?", 2), ("a+ b+", 3)], None),
            (vec![("a+", 1), ("", 1), ("a+", 1)], None),
            (vec![("a+", 0), ("a+", 1)], None),
            (vec![("a+", 0), ("a+", 1), ("a+ b?", 2)], None),
            (
                vec![("a+", 0), ("a+", 1), ("a+ b?", 2), ("a+ b-", 3)],
                Some(Failed),
            ),
            (vec![("a+", 30)], Some(Passed)),
            (vec![("a-", 0)], Some(Failed)),
            (vec![("a- b?", 1)], None),
            (vec![("a- b?", 30)], Some(Failed)),
            (vec![("a+ b-", 1)], Some(Failed)),
            (vec![("ralph/x- a+", 1), ("ralph/x- a+", 2)], Some(Passed)),
        ] {
            let mut watch = CiWatch::default();
            let mut last = None;
            for (text, minutes) in &reports {
                last = watch.judge(&report(text), &policy, Duration::from_mins(*minutes));
            }
            assert_eq!(last, expected, "{reports:?}");
        }
    }

    #[test]
    fn only_required_checks_prevent_success() {
        use CiDecision::{Pause, Retry, Success};
        use CiOutcome::{Failed, Missing, Passed, TimedOut};
        for (outcome, required, rounds, expected) in [
            (Passed, true, 3, Success),
            (Failed, false, 9, Success),
            (Missing, false, 0, Success),
            (TimedOut, false, 0, Success),
            (Failed, true, 1, Retry),
            (Failed, true, 2, Retry),
            (Failed, true, 3, Pause),
            (Failed, true, 4, Pause),
            (Missing, true, 0, Pause),
            (TimedOut, true, 0, Pause),
        ] {
            let policy = CiPolicy {
                required,
                ..CiPolicy::default()
            };
            let decided = decide(outcome, &policy, rounds);
            assert_eq!(decided, expected, "{outcome:?} {required} {rounds}");
        }
    }
}
