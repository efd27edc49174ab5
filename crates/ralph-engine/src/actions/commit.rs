//! Commits: exactly one for each commit action, whatever happens in between.

use ralph_core::action::{clean_message, rules};
use ralph_core::path::WorkspacePath;

use super::perform::Effect;
use crate::error::RunError;
use crate::git::{CommitOutcome, SandboxGit};
use crate::run::{Run, attend};
use crate::steps::{is_damage, not_committed};

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
            Ok(CommitOutcome::Made(commit, large)) if large.is_empty() => {
                Effect::done(format!("commit {commit}"))
            }
            Ok(CommitOutcome::Made(commit, large)) => {
                Effect::done(format!("commit {commit}; {}", not_committed(&large)))
            }
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
        format!(
            "Ralph-Action: {}/{}/{index}",
            self.state().plan.run,
            self.state().iteration
        )
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
