//! The checks at the base commit, before any work.

use super::RunState;
use crate::id::CommitId;
use crate::run::RunStatus;
use crate::verdict::CheckResult;

/// The results of the checks at the base commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// The base commit.
    pub commit: CommitId,
    /// All checks, in the order of the contract.
    pub checks: Vec<CheckResult>,
    /// The names of those that are green.
    pub green: Vec<String>,
}

impl Baseline {
    /// Tells whether every check is green, so that there is nothing to do.
    pub fn is_all_green(&self) -> bool {
        let mut checks = self.checks.iter();
        !self.checks.is_empty() && checks.all(|check| self.green.contains(&check.name))
    }
}

impl RunState {
    /// Tells whether the run found nothing to do: every check was green before any work.
    pub fn has_nothing_to_do(&self) -> bool {
        self.iteration == 0 && self.baseline.as_ref().is_some_and(Baseline::is_all_green)
    }

    /// Returns the reason of the status in one line, where there is one.
    pub fn reason(&self) -> Option<String> {
        if self.status == RunStatus::Succeeded && self.has_nothing_to_do() {
            let base = self.plan.base.short();
            return Some(format!(
                "nothing to do: every check is green at {base} before any work"
            ));
        }
        self.status.reason()
    }
}
