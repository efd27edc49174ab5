//! The beginning of an iteration, and the warnings about budgets that come with spending.

use std::path::PathBuf;

use ralph_core::event::{Event, IterationEvent, ModelEvent, RunEvent};
use ralph_core::ports::TokenUsage;
use ralph_core::{budget, price};

use crate::error::RunError;
use crate::run::Run;

/// How many bytes of a prompt make a token, where nobody has counted.
const BYTES_PER_TOKEN: usize = 4;

impl Run {
    /// Begins an iteration, or goes on with the one that a restart left open.
    pub(crate) fn begin_iteration(&mut self) -> Result<(), RunError> {
        if self.state().open.is_some() {
            return self.resume_iteration();
        }
        let iteration = self.state().iteration + 1;
        let head = self.state().head.clone();
        // The record first: a directory that the journal does not know belongs to nobody.
        self.journal
            .append(IterationEvent::IterationStarted { iteration, head })?;
        self.dir.reopen_iteration(iteration)?;
        self.warn_about_budgets()?;
        self.log_activity(&format!("iteration {iteration} starts"))
    }

    fn resume_iteration(&mut self) -> Result<(), RunError> {
        let iteration = self.state().iteration;
        self.dir.reopen_iteration(iteration)?;
        self.scratch.resumed = true;
        self.log_activity(&format!(
            "iteration {iteration} goes on after an interruption"
        ))?;
        self.charge_abandoned_call()
    }

    /// A provider bills a call whose answer nobody heard, too.
    pub(crate) fn charge_abandoned_call(&mut self) -> Result<(), RunError> {
        let Some(open) = self.state().open.as_ref().filter(|open| open.waiting) else {
            return Ok(());
        };
        let estimate = TokenUsage {
            input_tokens: (open.prompt_bytes / BYTES_PER_TOKEN) as u64,
            ..TokenUsage::default()
        };
        self.record_abandoned_call(open.reserved.unwrap_or(estimate))
    }

    /// Charges a call of the open iteration that did not come to its end.
    pub(super) fn record_abandoned_call(&mut self, usage: TokenUsage) -> Result<(), RunError> {
        let event = Event::Model(ModelEvent::ModelAbandoned {
            iteration: self.state().iteration,
            attempt: self.model_attempts(),
            usage,
            cost_usd: price::cost(&self.services.price, &usage),
        });
        self.journal.append(event)?;
        self.warn_about_budgets()
    }

    /// Warns about each mark that spending has passed since the last time this was asked.
    pub(crate) fn warn_about_budgets(&mut self) -> Result<(), RunError> {
        let limits = self.pinned.contract().limits();
        let now = self.spent();
        let due = budget::warnings(&limits, &self.spent_at_last_warning, &now);
        self.spent_at_last_warning = now;
        for (budget, percent) in due {
            self.log_activity(&format!(
                "{percent} % of the budget `{}` are used",
                budget.key()
            ))?;
            self.journal
                .append(RunEvent::BudgetWarning { budget, percent })?;
        }
        Ok(())
    }

    /// Returns a file of the open iteration.
    pub(super) fn open_iteration_file(&self, name: &str) -> PathBuf {
        self.dir.open_iteration(self.state().iteration).join(name)
    }
}
