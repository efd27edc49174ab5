//! The messages and changes of individual commits: a secret that one commit adds and the next
//! removes is still on the branch.

use ralph_core::action::{RunnerTrailer, runner_trailer};
use ralph_core::id::CommitId;

use super::program::{command_error, subcommand_name};
use super::{GitError, HostRepo, bounded};

/// Commits with their metadata and patches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Newest first.
    pub commits: Vec<Commit>,
    pub metadata: Vec<u8>,
    /// The commit objects with all their headers, including those that git does not show.
    pub objects: Vec<u8>,
    pub patches: Vec<u8>,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: CommitId,
    pub parents: Vec<CommitId>,
    /// The first line of its message.
    pub subject: String,
    /// The trailers of its message that only ralph's own commits have.
    pub trailers: Vec<RunnerTrailer>,
}

impl Commit {
    /// Returns the short id and the subject, as in a list of commits.
    pub fn title(&self) -> String {
        title(&self.id, &self.subject)
    }
}

pub(super) fn title(id: &CommitId, subject: &str) -> String {
    format!("{} {subject}", id.short())
}

impl History {
    /// Returns whether one of the commits has `known` as its parent. For all commits after `known`
    /// up to the end of a branch, this is true if the branch moved forward from it.
    pub fn continues(&self, known: &CommitId) -> bool {
        self.commits
            .iter()
            .any(|commit| commit.parents.contains(known))
    }
}

impl HostRepo {
    /// Reads the commits after `from` up to `to`; none if they are larger than `limit`.
    pub async fn history(
        &self,
        from: &CommitId,
        to: &CommitId,
        limit: u64,
    ) -> Result<Option<History>, GitError> {
        let (range, delimiters) = (format!("{from}..{to}"), HistoryDelimiters::for_commit(to));
        let format = format!(
            "--format={}%n%H%n%P%n%s%n%an%n%ae%n%cn%n%ce%n%B%n{}",
            delimiters.commit, delimiters.patch
        );
        let args = [
            "log",
            &format,
            // No conversion: another encoding could hide a secret.
            "--encoding=none",
            "--patch",
            "-m",
            "--text",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            &range,
        ];
        let Some(text) = self.read_output(&args, limit).await? else {
            return Ok(None);
        };
        let args = ["rev-list", "--header", "--encoding=none", &range];
        let objects = self.read_output(&args, limit).await?;
        Ok(objects.map(|objects| History {
            objects,
            ..parse_history(&text, &delimiters)
        }))
    }

    /// Returns the commits after `from` up to `to` as short id and message, newest first; none if
    /// they are larger than `limit`.
    pub async fn messages(
        &self,
        from: &CommitId,
        to: &CommitId,
        limit: u64,
    ) -> Result<Option<Vec<(String, String)>>, GitError> {
        let range = format!("{from}..{to}");
        let args = ["log", "-z", "--format=%h %B", &range];
        let Some(text) = self.read_output(&args, limit).await? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&text);
        let commits = text.split('\0').filter_map(|commit| commit.split_once(' '));
        Ok(Some(
            commits
                .map(|(id, message)| (id.to_owned(), message.to_owned()))
                .collect(),
        ))
    }

    /// Returns the output of a command; none if it exceeds `limit` bytes.
    pub(super) async fn read_output(
        &self,
        args: &[&str],
        limit: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let name = subcommand_name(args);
        let printed = bounded::output_up_to(self.command().args(args), &name, limit).await?;
        let Some(output) = printed else {
            return Ok(None);
        };
        if output.status.success() {
            return Ok(Some(output.stdout));
        }
        Err(command_error(&name, &output))
    }
}

/// The lines before each commit and before its patch. They contain the id of the last commit, which
/// neither that commit nor an earlier one can contain, so no commit can forge such a line.
struct HistoryDelimiters {
    commit: String,
    patch: String,
}

impl HistoryDelimiters {
    fn for_commit(last: &CommitId) -> Self {
        Self {
            commit: format!("{last} commit"),
            patch: format!("{last} patch"),
        }
    }
}

/// The part of a commit that a line belongs to.
enum CommitSection {
    Id,
    Parents,
    Subject,
    Metadata,
    Patch,
}

fn parse_history(text: &[u8], delimiters: &HistoryDelimiters) -> History {
    let mut history = History::default();
    let mut part = CommitSection::Patch;
    let mut is_first = true;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        if bare == delimiters.commit.as_bytes() {
            part = CommitSection::Id;
            continue;
        }
        if bare == delimiters.patch.as_bytes() {
            part = CommitSection::Patch;
            continue;
        }
        let decoded = || String::from_utf8_lossy(bare);
        part = match part {
            CommitSection::Id => {
                is_first = history.push_commit(CommitId::parse(&decoded()));
                CommitSection::Parents
            }
            CommitSection::Parents => {
                let parents = decoded().split(' ').filter_map(CommitId::parse).collect();
                if let Some(commit) = history.commits.last_mut() {
                    commit.parents = parents;
                }
                CommitSection::Subject
            }
            CommitSection::Subject => {
                if let Some(commit) = history.commits.last_mut() {
                    commit.subject = decoded().into_owned();
                }
                CommitSection::Metadata
            }
            CommitSection::Metadata => {
                history.metadata.extend_from_slice(line);
                if let Some(commit) = history.commits.last_mut().filter(|_| is_first) {
                    commit.trailers.extend(runner_trailer(&decoded()));
                }
                CommitSection::Metadata
            }
            CommitSection::Patch => {
                history.patches.extend_from_slice(line);
                CommitSection::Patch
            }
        };
    }
    history
}

impl History {
    /// Adds a commit, unless it is repeated: a merge is shown against each of its parents. Returns
    /// whether it is new.
    fn push_commit(&mut self, id: Option<CommitId>) -> bool {
        let Some(id) = id.filter(|id| self.commits.last().is_none_or(|last| last.id != *id)) else {
            return false;
        };
        self.commits.push(Commit {
            id,
            parents: Vec::new(),
            subject: String::new(),
            trailers: Vec::new(),
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: &str) -> CommitId {
        CommitId::parse(&digit.repeat(40)).unwrap()
    }

    #[test]
    fn delimiters_separate_commits_from_their_content() {
        let (last, merged, first, known) = (id("a"), id("b"), id("c"), id("d"));
        let text = format!(
            "{last} commit\n{last}\n{first} {merged}\nMerge\nAnn\nann@x\nBob\nbob@x\nMerge\n\nmore\n\n{last} patch\n\n\
             diff --git a/x b/x\n@@ -1 +1 @@\n-{first} commit\n+y\n\
             {last} commit\n{last}\n{first} {merged}\nMerge\nAnn\nann@x\nBob\nbob@x\nMerge\n\n{last} patch\n\
             {last} commit\n{first}\n{known}\n\nAnn\n\n\n\n\n{last} patch\n\ndiff --git a/z b/z\n"
        );
        let commit = |id: &CommitId, parents: &[&CommitId], subject: &str| Commit {
            id: id.clone(),
            parents: parents.iter().copied().cloned().collect(),
            subject: subject.to_owned(),
            trailers: Vec::new(),
        };
        let history = parse_history(text.as_bytes(), &HistoryDelimiters::for_commit(&last));
        assert_eq!(
            history,
            History {
                commits: vec![
                    commit(&last, &[&first, &merged], "Merge"),
                    commit(&first, &[&known], ""),
                ],
                objects: Vec::new(),
                metadata: b"Ann\nann@x\nBob\nbob@x\nMerge\n\nmore\n\n\
                         Ann\nann@x\nBob\nbob@x\nMerge\n\nAnn\n\n\n\n\n"
                    .to_vec(),
                patches: format!(
                    "\ndiff --git a/x b/x\n@@ -1 +1 @@\n-{first} commit\n+y\n\ndiff --git a/z b/z\n"
                )
                .into_bytes(),
            }
        );
        let text = text.replace("Merge\n\n", "Merge\n\nRalph-Run : x\nralph-action: x/1/0\n");
        let marked = parse_history(text.as_bytes(), &HistoryDelimiters::for_commit(&last));
        assert_eq!(
            marked.commits[0].trailers,
            [
                RunnerTrailer::Run("x".into()),
                RunnerTrailer::Action("x/1/0".into()),
            ]
        );
        assert_eq!(marked.commits[1].trailers, []);
        assert_eq!(history.commits[0].title(), "aaaaaaaaaa Merge");
        assert!(history.continues(&known) && !history.continues(&last));
        assert_eq!(
            parse_history(b"", &HistoryDelimiters::for_commit(&last)),
            History::default()
        );
    }
}
