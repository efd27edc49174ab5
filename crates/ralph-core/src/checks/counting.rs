//! Judges the number of tests in a green run: by a listing, and by the base commit.

use crate::verdict::{FindingKind, TestCount, VerifyFinding};

/// The result of the comparison between a run and a listing of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountCheck {
    /// The run has the tests that the listing has.
    Confirmed,
    /// No listing speaks for or against the number.
    Unconfirmed(String),
    /// The run reports more tests than the listing has.
    Exceeded(String),
    /// The run reports fewer tests than the listing has.
    Short(String),
    /// The run lacks the summary that its runner prints.
    MissingSummary(String),
}

/// The consequence of a number of tests for a green verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountVerdict {
    /// Nothing to report.
    Fine,
    /// A reviewer must know about it.
    Qualified(VerifyFinding),
    /// The run is clearly incomplete.
    Red(String),
}

impl CountCheck {
    /// Compares the number of tests that an unknown runner reports.
    pub fn for_unknown_runner(line: &str, tests: Option<TestCount>) -> Self {
        match tests {
            None => Self::Confirmed,
            Some(tests) => Self::Unconfirmed(format!(
                "`{line}` reports {tests}, and no listing confirms the number"
            )),
        }
    }

    /// Compares the run of a check whose output was too long to be kept: its number may be incomplete,
    /// and a missing summary may have been left out.
    pub fn for_truncated_output(line: &str) -> Self {
        Self::Unconfirmed(format!(
            "`{line}` prints too much to be kept, so the number of its tests is not confirmed"
        ))
    }

    /// Judges the run with the numbers of the same command now and at the base commit. Only a run
    /// that is short by both measures is red: honest suites differ from their listing, too.
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

/// Makes the finding about a command that runs fewer tests than `source` has.
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
    fn a_run_is_red_only_if_it_is_short_of_its_listing_and_of_the_base_commit() {
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
    fn numbers_without_a_listing_are_measured_by_the_base_commit() {
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
