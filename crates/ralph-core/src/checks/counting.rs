//! Judges the number of tests in a green run by comparing it with a listing and the base commit.

use crate::verdict::{FindingKind, TestCount, VerifyFinding};

/// The result of comparing a run with a listing of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountCheck {
    /// The number agrees with the listing, or there is no number to check.
    Confirmed,
    /// The number is missing or incomplete, or no listing confirms it.
    Unconfirmed(String),
    /// The run reports more tests than the listing.
    Exceeded(String),
    /// The run reports fewer tests than the listing.
    Short(String),
    /// The output lacks the summary that the test runner always prints.
    MissingSummary(String),
}

/// The consequence of the test count for a green verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountVerdict {
    /// Nothing to report.
    Fine,
    /// Green with a finding for the reviewer.
    Qualified(VerifyFinding),
    /// The run is clearly incomplete.
    Red(String),
}

impl CountCheck {
    /// Checks the number reported by an unknown runner, which has no listing.
    pub fn for_unknown_runner(line: &str, tests: Option<TestCount>) -> Self {
        match tests {
            None => Self::Confirmed,
            Some(tests) => Self::Unconfirmed(format!(
                "`{line}` reports {tests}, and no listing confirms the number"
            )),
        }
    }

    /// Checks a run with truncated output: the count may be incomplete and the summary missing.
    pub fn for_truncated_output(line: &str) -> Self {
        Self::Unconfirmed(format!(
            "the output of `{line}` was truncated, so its number of tests is not confirmed"
        ))
    }

    /// Judges the run by the counts of the same command now and at the base commit.
    ///
    /// A run with fewer tests than its listing is red, unless it has at least as many as at the
    /// base commit, because honest suites also differ from their listing. A run without a summary
    /// is red if the base commit has one.
    pub fn judge(
        self,
        line: &str,
        now: Option<TestCount>,
        base: Option<TestCount>,
    ) -> CountVerdict {
        let unconfirmed =
            |text| CountVerdict::Qualified(VerifyFinding::new(FindingKind::UnconfirmedCount, text));
        match self {
            Self::Confirmed => CountVerdict::Fine,
            Self::Unconfirmed(text) => match (now.map(TestCount::ran), base.map(TestCount::ran)) {
                (Some(now), Some(base)) if now < base => CountVerdict::Qualified(
                    fewer_tests_finding(line, now, base, "the base commit has"),
                ),
                (Some(_), Some(base)) if base > 0 => CountVerdict::Fine,
                _ => unconfirmed(text),
            },
            Self::Short(text) => {
                let total = now.map_or(0, TestCount::total);
                match base.map(TestCount::total) {
                    Some(base) if total >= base => unconfirmed(text),
                    Some(_) | None => CountVerdict::Red(text),
                }
            }
            Self::MissingSummary(text) if base.is_some() => {
                CountVerdict::Red(format!("{text}: it ended early"))
            }
            Self::MissingSummary(text) | Self::Exceeded(text) => unconfirmed(text),
        }
    }
}

/// Returns the finding for a command that runs fewer tests than `source`, a phrase such as "the
/// base commit has".
pub fn fewer_tests_finding(line: &str, now: u64, before: u64, source: &str) -> VerifyFinding {
    let text = format!("`{line}` runs {now} tests, {source} {before}");
    VerifyFinding::new(FindingKind::FewerTests, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(passed: u64) -> TestCount {
        TestCount {
            passed,
            ..TestCount::default()
        }
    }

    fn kind(verdict: CountVerdict) -> &'static str {
        match verdict {
            CountVerdict::Fine => "fine",
            CountVerdict::Qualified(finding) if finding.kind == FindingKind::FewerTests => "fewer",
            CountVerdict::Qualified(_) => "unconfirmed",
            CountVerdict::Red(_) => "red",
        }
    }

    #[test]
    fn a_run_is_red_only_if_it_has_fewer_tests_than_listing_and_base_commit() {
        for (base, expected) in [
            (None, "red"),
            (Some(passed(4)), "red"),
            (Some(passed(3)), "unconfirmed"),
            (Some(passed(1)), "unconfirmed"),
        ] {
            let short = CountCheck::Short("short".into());
            assert_eq!(
                kind(short.judge("x", Some(passed(3)), base)),
                expected,
                "{base:?}"
            );
        }
    }

    #[test]
    fn a_missing_summary_is_red_only_if_the_base_commit_has_one() {
        let silent = || CountCheck::MissingSummary("no summary".into());
        let ended = CountVerdict::Red("no summary: it ended early".into());
        assert_eq!(silent().judge("x", None, Some(passed(1))), ended);
        assert_eq!(kind(silent().judge("x", None, None)), "unconfirmed");
        let truncated = CountCheck::for_truncated_output("x");
        assert_eq!(
            kind(truncated.judge("x", None, Some(passed(1)))),
            "unconfirmed"
        );
    }

    #[test]
    fn counts_without_a_listing_are_compared_with_the_base_commit() {
        for (now, base, expected) in [
            (Some(passed(3)), Some(passed(3)), "fine"),
            (Some(passed(3)), Some(passed(4)), "fewer"),
            (Some(passed(3)), None, "unconfirmed"),
            (Some(passed(3)), Some(passed(0)), "unconfirmed"),
            (None, Some(passed(3)), "unconfirmed"),
        ] {
            let check = CountCheck::Unconfirmed("x".into());
            assert_eq!(
                kind(check.judge("x", now, base)),
                expected,
                "{now:?} {base:?}"
            );
        }
        let exceeded = CountCheck::Exceeded("more".into());
        assert_eq!(
            kind(exceeded.judge("x", Some(passed(9)), Some(passed(9)))),
            "unconfirmed"
        );
    }
}
