//! The effect of rebuilding a lost run.

use std::time::Duration;

use super::RunState;
use crate::event::Adoption;

impl RunState {
    /// Applies the spending, the repository and the sandbox of the copy. The ticks and the pull request
    /// are unknown from here on.
    pub(super) fn apply_adoption(&mut self, adoption: &Adoption) {
        if let Some(claimed) = &adoption.claimed {
            self.iteration = self.iteration.max(claimed.iterations);
            self.active += Duration::from_millis(claimed.duration_ms);
            self.usage.add(claimed.usage);
            self.cost += claimed.cost_usd;
        }
        if let Some(repo) = &adoption.repo {
            self.plan.repo.clone_from(repo);
            if let Some(settings) = &mut self.plan.settings {
                settings.directory.clone_from(repo);
            }
        }
        self.ticked.clear();
        self.pull = None;
        self.sandbox.clone_from(&adoption.sandbox);
        self.clean_rooms.clear();
        self.workspace_ready = false;
        self.adoption = Some(Box::new(adoption.clone()));
    }

    /// Returns whether the sandbox is that of a lost run and still has to be prepared: its files are
    /// kept, its repository is replaced.
    pub fn has_adopted_sandbox(&self) -> bool {
        let adopted = self.adoption.as_ref().and_then(|a| a.sandbox.as_ref());
        !self.workspace_ready && adopted.is_some() && adopted == self.sandbox.as_ref()
    }
}
