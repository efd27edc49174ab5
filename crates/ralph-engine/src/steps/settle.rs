//! What really happened in an iteration: tampering, the state of git, the commits, the tests.

use ralph_core::event::{DeliveryEvent, DiffSize, IterationEvent, SandboxEvent};
use ralph_core::gutter::CodeChange;
use ralph_core::id::{CommitId, Digest};

use ralph_core::verdict::CheckResult;

use crate::durable;
use crate::error::RunError;
use crate::git::{Commit, GitError, SandboxGit, WorkTree};
use crate::rules;
use crate::run::Run;
use crate::workspace::TamperFinding;

use super::recover::is_repository_damage;

/// The most of a diff that is kept.
const MAX_DIFF: usize = 8 << 20;
/// How many commits a prompt shows.
const MAX_LISTED_COMMITS: usize = 10;
/// What the model should do after its commits were refused.
const COMMIT_ON_TOP_HINT: &str = "commit on top of it instead of rewriting history";

impl Run {
    /// Looks at the workspace after the model's actions, takes its commits, writes down the diff.
    pub(crate) async fn settle_iteration(&mut self) -> Result<(), RunError> {
        let findings = self.workspace.inspect(&*self.sandbox, &self.files).await?;
        self.record_tampering(findings)?;
        let mut tree = self.inspect_work_tree().await?;
        let start = self
            .state()
            .open
            .as_ref()
            .map_or_else(|| self.state().head.clone(), |open| open.head.clone());
        let mut diff = self.work_tree_diff(&start, &mut tree).await?;
        let moved = tree
            .head
            .as_ref()
            .is_some_and(|head| *head != self.state().head);
        if !moved {
            self.record_dropped_commits(&[]).await?;
        } else if !self.import_commits().await? {
            tree = self.inspect_work_tree().await?;
        }
        self.workspace_view.diff_stat = self.work_tree_diff_stat(&tree).await?;
        let uncommitted = (!tree.entries.is_empty()).then(|| Digest::compute(&diff));
        self.scratch.changed = self.scratch.resumed
            || self.state().head != start
            || uncommitted != self.workspace_view.uncommitted;
        self.workspace_view.uncommitted = uncommitted;
        self.scratch.diff = diff_size(&diff);
        self.record_iteration_change(&start, &tree).await?;
        let changed = self.scratch.changed;
        self.scratch.code = changed.then(|| CodeChange::from_diff(&diff, &self.state().window));
        diff.truncate(MAX_DIFF);
        let clean = self.services.redactor.redact_bytes(&diff);
        durable::write_unsynced(
            &self
                .dir
                .open_iteration(self.state().iteration)
                .join("git_diff.patch"),
            &clean,
        )?;
        self.workspace_view.tree = tree;
        Ok(())
    }

    /// Looks at the workspace before the first iteration of this process.
    pub(crate) async fn load_workspace_view(&mut self) -> Result<(), RunError> {
        let tree = self.inspect_work_tree().await?;
        let state = self.state();
        let titles = self
            .repo
            .commit_titles(&state.plan.base, &state.head, MAX_LISTED_COMMITS)
            .await?;
        self.workspace_view.diff_stat = self.work_tree_diff_stat(&tree).await?;
        self.workspace_view.subjects = titles;
        self.workspace_view.tree = tree;
        Ok(())
    }

    /// Returns the diff of the work tree. If git fails, the repository is put back first.
    async fn work_tree_diff(
        &mut self,
        start: &CommitId,
        tree: &mut WorkTree,
    ) -> Result<Vec<u8>, RunError> {
        let git = SandboxGit::new(&*self.sandbox);
        match git.diff(start, tree).await {
            Err(error) if is_repository_damage(&error) => {}
            diff => return diff,
        }
        *tree = self.inspect_after_damage().await?;
        let git = SandboxGit::new(&*self.sandbox);
        match git.diff(start, tree).await {
            // A prompt without a diff is better than no run.
            Err(error) if is_repository_damage(&error) => Ok(Vec::new()),
            diff => diff,
        }
    }

    async fn work_tree_diff_stat(&self, tree: &WorkTree) -> Result<String, RunError> {
        match SandboxGit::new(&*self.sandbox).diff_stat(tree).await {
            Err(error) if is_repository_damage(&error) => Ok(String::new()),
            stat => stat,
        }
    }

    pub(crate) fn record_tampering(
        &mut self,
        findings: Vec<TamperFinding>,
    ) -> Result<(), RunError> {
        for TamperFinding { path, finding } in findings {
            self.log_error(&format!("tamper: `{path}`: {finding}"))?;
            let iteration = self.state().iteration;
            self.journal.append(SandboxEvent::Tamper {
                iteration,
                path,
                finding,
            })?;
        }
        Ok(())
    }

    /// Takes the sandbox's commits into the host's repository. Tells whether they were taken.
    async fn import_commits(&mut self) -> Result<bool, RunError> {
        let branch = self.state().plan.branch.clone();
        let known = self.state().head.clone();
        let git = SandboxGit::new(&*self.sandbox);
        let taken = match git.bundle(&branch, &known).await {
            Ok(bundle) => self.import_bundle(&bundle, &known).await,
            Err(error) => Err(error),
        };
        let why = match taken {
            Ok(Err(why)) => why,
            Ok(Ok((head, history))) => {
                // Before the record of those that were taken: a later look must not excuse these.
                let ids: Vec<CommitId> = history.iter().map(|commit| commit.id.clone()).collect();
                self.record_dropped_commits(&ids).await?;
                let titles: Vec<String> = history.iter().map(Commit::title).collect();
                let commits = titles.len() as u64;
                self.journal
                    .append(DeliveryEvent::CommitsImported { head, commits })?;
                self.workspace_view.subjects =
                    [titles, std::mem::take(&mut self.workspace_view.subjects)].concat();
                self.workspace_view.subjects.truncate(MAX_LISTED_COMMITS);
                return Ok(true);
            }
            Err(RunError::Git(
                error @ (GitError::Failed { .. }
                | GitError::TimedOut { .. }
                | GitError::InSandbox { .. }),
            )) => format!("{error}; {COMMIT_ON_TOP_HINT}"),
            Err(RunError::Git(error @ GitError::TooLarge { .. })) => {
                format!("{error}; leave it out of the commits, and out of their history")
            }
            Err(error) => return Err(error),
        };
        self.log_error(&format!(
            "the commits were not taken, the branch is back at {}, the files are as they were: {why}",
            known.short()
        ))?;
        self.journal.append(DeliveryEvent::ImportRefused { why })?;
        let git = SandboxGit::new(&*self.sandbox);
        match git
            .reset_to_branch(&branch, &known, self.pinned.own_files())
            .await
        {
            // The next look finds the damage.
            Err(error) if is_repository_damage(&error) => {}
            put_back => put_back?,
        }
        Ok(false)
    }

    /// Takes commits from a bundle, unless they break a rule: then they never enter the repository.
    /// Returns the last one and all of them, in the host's own words.
    async fn import_bundle(
        &self,
        bundle: &[u8],
        known: &CommitId,
    ) -> Result<Result<(CommitId, Vec<Commit>), String>, RunError> {
        let objects = self.dir.root().join("incoming");
        let branch = &self.state().plan.branch;
        let incoming = self.repo.receive(bundle, branch, objects).await?;
        let history = incoming.history(known, rules::MAX_SEARCHED).await?;
        let (redactor, own) = (&self.services.redactor, self.pinned.own_files());
        if let Some(why) = rules::refuse_commits(redactor, history.as_ref(), known, own) {
            return Ok(Err(why));
        }
        let history = history.unwrap_or_default();
        let run = self.state().plan.run.as_str();
        if let Some(why) = rules::refuse_marks(&history, run, &self.commit_marks()) {
            return Ok(Err(why));
        }
        if !history.continues(known) {
            return Ok(Err(format!(
                "the branch does not continue {} (non-fast-forward); {COMMIT_ON_TOP_HINT}",
                known.short()
            )));
        }
        let head = incoming.head().clone();
        incoming.accept(known).await?;
        Ok(Ok((head, history.commits)))
    }

    /// Runs the test command if the files changed and the model did not run it on them itself.
    pub(crate) async fn run_tests_if_changed(&mut self) -> Result<(), RunError> {
        let Some(command) = self.pinned.contract().test_command.clone() else {
            return Ok(());
        };
        let known = self.scratch.checks.get(&command).cloned();
        if known.is_none() && !self.scratch.changed {
            return Ok(());
        }
        let check = if let Some(check) = known {
            CheckResult {
                name: "test_command".into(),
                ..check
            }
        } else {
            let check = self.run_check("test_command", &command).await?;
            // What the tests run is the model's, too.
            let findings = self.workspace.inspect(&*self.sandbox, &self.files).await?;
            self.record_tampering(findings)?;
            check
        };
        let verb = if check.is_green() { "green" } else { "red" };
        let count = check
            .tests
            .map_or_else(String::new, |tests| format!(", {tests}"));
        self.log_activity(&format!("tests are {verb}: {}{count}", check.ended))?;
        let iteration = self.state().iteration;
        self.scratch.tests = Some(check.clone());
        self.journal
            .append(IterationEvent::TestsRun { iteration, check })?;
        Ok(())
    }
}

/// Counts files and lines of a diff.
fn diff_size(diff: &[u8]) -> DiffSize {
    let mut size = DiffSize::default();
    let mut in_hunk = false;
    for line in diff.split(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            size.files += 1;
            in_hunk = false;
        } else if line.starts_with(b"@@ ") {
            in_hunk = true;
        } else if in_hunk && line.starts_with(b"+") {
            size.added += 1;
        } else if in_hunk && line.starts_with(b"-") {
            size.removed += 1;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_measured_by_its_hunks() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n+--- more\n same\n\
                     diff --git a/y b/y\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n";
        assert_eq!(
            diff_size(diff),
            DiffSize {
                files: 2,
                added: 3,
                removed: 1
            }
        );
        assert_eq!(diff_size(b""), DiffSize::default());
    }
}
