//! Finds other open pull requests that change the files of a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ports::OpenPull;

/// The number of shared files that is always an overlap.
const MANY_FILES: usize = 3;
/// The most shared files that are named.
const MAX_NAMED_FILES: usize = 20;
/// The longest recorded title, in characters.
const MAX_TITLE_CHARS: usize = 120;

/// Another open pull request that changes files of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PullOverlap {
    pub number: u64,
    pub url: String,
    pub title: String,
    /// The first shared files.
    pub files: Vec<String>,
    /// The number of shared files.
    pub shared: usize,
    /// The number of files that the run changes.
    pub changed: usize,
}

impl PullOverlap {
    /// Describes the shared part of the run's files, such as `2 of the 3 files`.
    pub fn shared_part(&self) -> String {
        match self.changed {
            1 => "the only file".to_owned(),
            changed => format!("{} of the {changed} files", self.shared),
        }
    }
}

/// The branches of a run's pull request.
#[derive(Debug, Clone, Copy)]
pub struct RunBranches<'a> {
    /// The branch of the run.
    pub head: &'a str,
    /// The branch that it is merged into.
    pub base: &'a str,
}

/// Returns the pull requests that change at least three files of the run, or 30 % of them. The
/// run's own pull request is ignored, and so are those that it is stacked on or that are stacked on
/// it.
pub fn find_overlaps(
    changed: &BTreeSet<String>,
    branches: RunBranches<'_>,
    pulls: &[OpenPull],
) -> Vec<PullOverlap> {
    let others = pulls.iter().filter(|pull| {
        pull.head != branches.head && pull.head != branches.base && pull.base != branches.head
    });
    others
        .filter_map(|pull| {
            let shared: BTreeSet<&String> = pull
                .files
                .iter()
                .filter(|path| changed.contains(*path))
                .collect();
            is_overlap(shared.len(), changed.len()).then(|| PullOverlap {
                number: pull.number,
                url: pull.url.clone(),
                title: pull.title.chars().take(MAX_TITLE_CHARS).collect(),
                files: shared
                    .iter()
                    .take(MAX_NAMED_FILES)
                    .copied()
                    .cloned()
                    .collect(),
                shared: shared.len(),
                changed: changed.len(),
            })
        })
        .collect()
}

fn is_overlap(shared: usize, changed: usize) -> bool {
    shared >= MANY_FILES || (shared > 0 && shared * 10 >= changed * 3)
}

impl PullOverlap {
    /// Returns whether this is a change of a known overlap that the user should learn about.
    pub fn is_news(&self, known: Option<&Self>) -> bool {
        known.is_none_or(|known| known.files != self.files || known.shared != self.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(number: u64, head: &str, base: &str, files: &str) -> OpenPull {
        OpenPull {
            number,
            url: format!("https://host/pull/{number}"),
            title: "t".into(),
            head: head.into(),
            base: base.into(),
            files: files.split_whitespace().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn shared_files_are_compared_with_the_files_of_the_run() {
        let branches = RunBranches {
            head: "ralph/t",
            base: "ralph/base",
        };
        // The files of the run, of the other pull request, and the number of shared ones.
        for (own, other, shared) in [
            ("a b c d e f g h i j", "a b c", Some(3)),
            ("a b c d e f g h i j", "a b", None),
            ("a b c d e f", "a b x", Some(2)),
            ("a b c d e f g", "a b x", None),
            ("a", "a", Some(1)),
            ("a b c", "a", Some(1)),
            ("a b c d", "a", None),
            ("a", "b", None),
            ("", "a", None),
        ] {
            let changed = own.split_whitespace().map(str::to_owned).collect();
            let found = find_overlaps(&changed, branches, &[pull(7, "x", "main", other)]);
            let number = found.first().map(|overlap| overlap.shared);
            assert_eq!(number, shared, "{own} | {other}");
        }
    }

    #[test]
    fn its_own_and_stacked_pull_requests_are_ignored() {
        let branches = RunBranches {
            head: "ralph/t",
            base: "ralph/base",
        };
        let changed = BTreeSet::from(["a".to_owned()]);
        let pulls = [
            pull(1, "ralph/t", "ralph/base", "a"),
            pull(2, "ralph/base", "main", "a"),
            pull(3, "ralph/next", "ralph/t", "a"),
            pull(4, "other", "main", "a"),
        ];
        let found = find_overlaps(&changed, branches, &pulls);
        assert_eq!(found.iter().map(|o| o.number).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn an_overlap_is_news_once_and_after_a_change() {
        let known = PullOverlap {
            number: 1,
            url: String::new(),
            title: "old".into(),
            files: vec!["a".into()],
            shared: 1,
            changed: 1,
        };
        let renamed = PullOverlap {
            title: "new".into(),
            changed: 3,
            ..known.clone()
        };
        let more = PullOverlap {
            files: vec!["a".into(), "b".into()],
            shared: 2,
            ..known.clone()
        };
        assert!(known.is_news(None));
        assert!(!renamed.is_news(Some(&known)));
        assert!(more.is_news(Some(&known)));
    }
}
