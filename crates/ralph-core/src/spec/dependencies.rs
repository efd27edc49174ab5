//! Decides whether the issues that an issue depends on are done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The state of an issue that another one depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyState {
    /// It has the label for done issues.
    Done,
    /// It is not done.
    Open,
    /// The repository has no such issue.
    Unknown,
}

/// Returns the dependencies that are not done, in order.
pub fn unmet_dependencies(
    depends: &BTreeSet<u64>,
    state: impl Fn(u64) -> DependencyState,
) -> Vec<u64> {
    let is_unmet = |number: &u64| match state(*number) {
        DependencyState::Done => false,
        DependencyState::Open | DependencyState::Unknown => true,
    };
    depends.iter().copied().filter(is_unmet).collect()
}

/// Returns a cycle that contains an issue: the issues on the way back to it, starting and ending with it.
pub fn find_cycle(start: u64, depends: &BTreeMap<u64, BTreeSet<u64>>) -> Option<Vec<u64>> {
    let mut came_from: BTreeMap<u64, u64> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(number) = queue.pop_front() {
        for next in depends.get(&number).into_iter().flatten() {
            if *next == start {
                let mut cycle = vec![start];
                let mut at = number;
                while at != start {
                    cycle.push(at);
                    at = *came_from.get(&at)?;
                }
                cycle.push(start);
                cycle.reverse();
                return Some(cycle);
            }
            if !came_from.contains_key(next) {
                came_from.insert(*next, number);
                queue.push_back(*next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u64, &[u64])]) -> BTreeMap<u64, BTreeSet<u64>> {
        let set = |numbers: &[u64]| numbers.iter().copied().collect();
        edges
            .iter()
            .map(|(number, on)| (*number, set(on)))
            .collect()
    }

    #[test]
    fn a_cycle_starts_and_ends_with_the_issue() {
        for (edges, expected) in [
            (&[(1, &[2][..]), (2, &[3]), (3, &[])][..], None),
            (&[(1, &[1])], Some(vec![1, 1])),
            (&[(1, &[2]), (2, &[1])], Some(vec![1, 2, 1])),
            (
                &[(1, &[4, 2]), (2, &[3]), (3, &[1]), (4, &[])],
                Some(vec![1, 2, 3, 1]),
            ),
            // A cycle that does not contain the issue is reported for its own issues.
            (&[(1, &[2]), (2, &[3]), (3, &[2])], None),
        ] {
            assert_eq!(find_cycle(1, &graph(edges)), expected, "{edges:?}");
        }
    }

    #[test]
    fn an_unknown_issue_is_unmet() {
        let state = |number| match number {
            1 => DependencyState::Done,
            2 => DependencyState::Open,
            _ => DependencyState::Unknown,
        };
        assert_eq!(unmet_dependencies(&[3, 2, 1].into(), state), [2, 3]);
        assert!(unmet_dependencies(&BTreeSet::new(), state).is_empty());
    }
}
