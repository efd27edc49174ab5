//! Commits: exactly one for each commit action, whatever happens in between.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ralph_core::action::{RunnerTrailer, clean_message, rules};
use ralph_core::id::CommitId;
use ralph_core::path::WorkspacePath;

use super::perform::Effect;
use crate::error::RunError;
use crate::git::{CommitOutcome, LeftOut, SandboxGit};
use crate::run::{Run, attend};
use crate::steps::{is_damage, not_committed};

/// How many nested repositories are named.
const MAX_NAMED: usize = 5;

impl Run {
    pub(super) async fn commit(
        &mut self,
        index: usize,
        message: &str,
        paths: &[WorkspacePath],
    ) -> Result<Effect, RunError> {
        if let Some(why) = paths.iter().find_map(rules::refuse_commit) {
            return Ok(Effect::refused(why));
        }
        let run = &self.state().plan.run;
        let message = format!(
            "{}\n\nRalph-Run: {run}\n{}\n",
            clean_message(message),
            self.trailer(index)
        );
        let findings = self.workspace.guard_git(&*self.sandbox).await?;
        self.tell_tampering(findings)?;
        let mut outcome = self.try_commit(&message, paths).await;
        if outcome.as_ref().is_err_and(is_damage) {
            // A look puts the repository back.
            self.look().await?;
            outcome = self.try_commit(&message, paths).await;
        }
        Ok(match outcome {
            Ok(CommitOutcome::Made(commit, left_out)) => Effect::done(made(&commit, &left_out)),
            Ok(CommitOutcome::Nothing(large)) if large.is_empty() => {
                Effect::done("nothing to commit")
            }
            Ok(CommitOutcome::Nothing(large)) => Effect::failed(not_committed(&large)),
            Ok(CommitOutcome::Rejected(why)) => Effect::failed(why),
            Err(RunError::Git(error)) => Effect::failed(error.to_string()),
            Err(error) => return Err(error),
        })
    }

    async fn try_commit(
        &mut self,
        message: &str,
        paths: &[WorkspacePath],
    ) -> Result<CommitOutcome, RunError> {
        let own = self.pinned.own_files();
        let git = SandboxGit::new(&*self.sandbox);
        let committing = git.commit(message, paths, own);
        attend(&mut self.journal, &mut self.control, committing).await?
    }

    /// The mark of a commit: no two commits of a run carry the same.
    fn trailer(&self, index: usize) -> String {
        RunnerTrailer::Action(self.mark(index)).to_string()
    }

    fn mark(&self, index: usize) -> String {
        let state = self.state();
        format!("{}/{}/{index}", state.plan.run, state.iteration)
    }

    /// Returns the marks of the commits that the actions of the open iteration made.
    pub(crate) fn made_commits(&self) -> BTreeSet<String> {
        let open = self.state().open.iter();
        let indices = open.flat_map(|open| open.commits.iter());
        indices.map(|index| self.mark(*index)).collect()
    }

    pub(super) async fn commit_before_restart(
        &self,
        index: usize,
    ) -> Result<Option<Effect>, RunError> {
        let made = SandboxGit::new(&*self.sandbox)
            .head_has(&self.trailer(index))
            .await?;
        Ok(made.map(|commit| Effect::done(format!("commit {commit} was made before the restart"))))
    }
}

/// Returns the result of a commit action, with everything that is not part of the commit.
fn made(commit: &CommitId, left_out: &LeftOut) -> String {
    let mut detail = format!("commit {commit}");
    if !left_out.large.is_empty() {
        detail.push_str("; ");
        detail.push_str(&not_committed(&left_out.large));
    }
    for path in left_out.nested.iter().take(MAX_NAMED) {
        let _ = write!(
            detail,
            "; the files in `{path}` are not committed: it is a repository of its own; remove its `.git` if they are part of the work"
        );
    }
    detail
}
