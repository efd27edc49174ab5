//! The results of the checks at the base commit, before any work.

use std::collections::BTreeSet;

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
    /// Returns whether every check is green.
    pub fn is_all_green(&self) -> bool {
        let mut checks = self.checks.iter();
        !self.checks.is_empty() && checks.all(|check| self.green.contains(&check.name))
    }

    /// Returns the number of checkboxes that have their own check.
    fn checked_boxes(&self) -> usize {
        let names = self.checks.iter().map(|check| check.name.as_str());
        let boxes: BTreeSet<&str> = names
            .filter(|name| *name != "test_command" && !name.starts_with("verify_commands["))
            .collect();
        boxes.len()
    }
}

impl RunState {
    /// Returns whether the run had nothing to do: every check was green before any work, and every
    /// checkbox has its own check. A box without one may require work that no check covers.
    pub fn has_nothing_to_do(&self) -> bool {
        let is_done = |baseline: &Baseline| {
            baseline.is_all_green() && baseline.checked_boxes() >= self.checkboxes
        };
        self.iteration == 0 && self.baseline.as_ref().is_some_and(is_done)
    }

    /// Returns the reason of the status in one line, if it has one.
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
