//! Reads the issues that an issue depends on, and decides whether it can start.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ralph_core::spec::{DependencyState, IssueStatus, Spec, find_cycle, unmet_dependencies};

use super::front_end::UnmetDependencies;
use super::repository::IssueRepository;
use crate::error::AppError;

/// The most issues that are read for one issue.
const MAX_ISSUES: usize = 200;

/// Whether the dependencies of an issue are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DependencyGate {
    /// The issue can start.
    Open,
    /// Others are not done.
    Waiting(UnmetDependencies),
    /// The issue waits for itself: the issues on the way, starting and ending with it.
    Cycle(Vec<u64>),
}

/// The issues that were read, shared by the issues of one look.
#[derive(Debug, Default)]
pub(super) struct KnownIssues {
    states: BTreeMap<u64, DependencyState>,
    depends: BTreeMap<u64, BTreeSet<u64>>,
}

impl KnownIssues {
    /// Checks the dependencies of an issue. Those of issues that are done do not count.
    pub(super) async fn check(
        &mut self,
        number: u64,
        depends: &BTreeSet<u64>,
        repository: &IssueRepository,
    ) -> Result<DependencyGate, AppError> {
        let mut queue: VecDeque<u64> = depends.iter().copied().collect();
        let mut seen = BTreeSet::from([number]);
        while let Some(next) = queue.pop_front() {
            if !seen.insert(next) || seen.len() > MAX_ISSUES {
                continue;
            }
            self.read(next, repository).await?;
            if self.states.get(&next) == Some(&DependencyState::Open) {
                queue.extend(self.depends.get(&next).into_iter().flatten());
            }
        }
        let mut graph = self.depends.clone();
        graph.insert(number, depends.clone());
        if let Some(cycle) = find_cycle(number, &graph) {
            return Ok(DependencyGate::Cycle(cycle));
        }
        let state = |number| {
            self.states
                .get(&number)
                .copied()
                .unwrap_or(DependencyState::Unknown)
        };
        let unmet = unmet_dependencies(depends, state);
        Ok(if unmet.is_empty() {
            DependencyGate::Open
        } else {
            let is_unknown = |number: &u64| state(*number) == DependencyState::Unknown;
            let unknown = unmet.iter().copied().filter(is_unknown).collect();
            DependencyGate::Waiting(UnmetDependencies { on: unmet, unknown })
        })
    }

    async fn read(&mut self, number: u64, repository: &IssueRepository) -> Result<(), AppError> {
        if self.states.contains_key(&number) {
            return Ok(());
        }
        let (state, depends) = match repository.issue(number).await? {
            None => (DependencyState::Unknown, BTreeSet::new()),
            Some(issue)
                if repository.labels().find_status(&issue.labels) == Some(IssueStatus::Done) =>
            {
                (DependencyState::Done, BTreeSet::new())
            }
            Some(issue) => (DependencyState::Open, Spec::dependencies_in(&issue.body)),
        };
        self.states.insert(number, state);
        self.depends.insert(number, depends);
        Ok(())
    }
}
