//! One iteration of an agent: it is started with a prompt, watched, and what it did is settled.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget;
use ralph_core::event::{Event, IterationOutcome};
use ralph_core::id::Digest;
use ralph_core::ports::{
    Agent, AgentEnd, AgentReport, Allowance, Ended, Exec, Program, SandboxError,
};
use ralph_core::run::{PauseReason, RunStatus};
use serde::Serialize;

use super::sink::{AgentSink, Pulse};
use super::watch::{Cut, Watched, channel};
use crate::actions::Performed;
use crate::capture::Capture;
use crate::durable;
use crate::error::RunError;
use crate::git::SandboxGit;
use crate::journal::millis;
use crate::redaction;
use crate::run::{Run, attend};

/// Tries while the provider is not available or the sandbox was interrupted.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(15);
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// How long a usage limit is waited for when the provider does not say.
const USUAL_QUOTA_WAIT: Duration = Duration::from_mins(15);

/// After so many iterations in a row without any change a person should look.
const IDLE_LIMIT: u32 = 3;

/// What is kept of an agent's work; `response.json`.
#[derive(Serialize)]
struct Kept<'a> {
    agent: &'a str,
    #[serde(flatten)]
    end: &'a AgentEnd,
    report: &'a AgentReport,
}

impl Run {
    /// Lets the agent work and returns its last words with how it went.
    pub(crate) async fn work_with_agent(
        &mut self,
        agent: Arc<dyn Agent>,
    ) -> Result<(String, Performed), RunError> {
        let mut tries = 0;
        let mut wait = FIRST_WAIT;
        loop {
            let limits = self.pinned.contract().limits();
            if budget::exhausted(&limits, &self.spent()).is_some() {
                let none = Performed::nothing(IterationOutcome::OutOfBudget);
                return Ok((String::new(), none));
            }
            tries += 1;
            let (end, report) = self.let_work(&*agent).await?;
            self.warn_about_budgets()?;
            let pause = match &end {
                AgentEnd::Quota { wait, .. } => Some(wait.unwrap_or(USUAL_QUOTA_WAIT)),
                AgentEnd::Overloaded { .. } if tries < MAX_TRIES => Some(wait),
                AgentEnd::Overloaded { .. }
                | AgentEnd::Finished
                | AgentEnd::GaveUp { .. }
                | AgentEnd::Unauthorized { .. }
                | AgentEnd::OutOfBudget
                | AgentEnd::Stalled
                | AgentEnd::TimedOut
                | AgentEnd::Crashed { .. } => None,
            };
            let Some(pause) = pause else {
                return self.settle_agent(end, report).await;
            };
            let seconds = pause.as_secs();
            let message =
                format!("the provider asks to wait; the agent is started again in {seconds} s");
            self.journal.append(Event::Notice { message })?;
            let sleeping = tokio::time::sleep(pause.min(self.time_left()));
            attend(&mut self.journal, &mut self.control, sleeping).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Starts the agent once and sees it to its end.
    async fn let_work(&mut self, agent: &dyn Agent) -> Result<(AgentEnd, AgentReport), RunError> {
        let prompt = self.agent_prompt()?;
        durable::write_unsynced(&self.open_agent_file("prompt.md"), prompt.as_bytes())?;
        let attempt = self.agent_attempts() + 1;
        self.journal.append(Event::AgentStarted {
            iteration: self.state().iteration,
            attempt,
            agent: agent.name().to_owned(),
            prompt: Digest::of(prompt.as_bytes()),
            prompt_bytes: prompt.len(),
        })?;
        self.set_allowance();
        let started = self.outside.clock.monotonic();
        let pulse = Pulse::new();
        let (sender, events) = channel();
        let capture = Capture::new(&self.outside.redactor);
        let mut sink = AgentSink::new(agent.reader(), capture, pulse.clone(), sender);
        let exec = self.agent_exec(agent, &prompt);
        let watched = self.watch(agent, exec, &mut sink, (pulse, events)).await?;
        let took = self.outside.clock.monotonic().saturating_sub(started);
        let (end, report) = self.judge_agent(watched, &mut sink)?;
        let output = sink.capture.finish();
        let ended = match end {
            AgentEnd::Finished => Ended::Exited(0),
            AgentEnd::TimedOut | AgentEnd::Stalled => Ended::TimedOut,
            AgentEnd::GaveUp { .. }
            | AgentEnd::Unauthorized { .. }
            | AgentEnd::Quota { .. }
            | AgentEnd::Overloaded { .. }
            | AgentEnd::OutOfBudget
            | AgentEnd::Crashed { .. } => Ended::Exited(1),
        };
        self.add_output(agent.name(), &output, ended)?;
        self.keep_agents_words(agent.name(), &end, &report)?;
        self.charge_unmetered(agent.name(), &report)?;
        self.journal.append(Event::AgentFinished {
            iteration: self.state().iteration,
            attempt,
            end: end.clone(),
            report: report.clone(),
            duration_ms: millis(took),
        })?;
        Ok((end, report))
    }

    fn agent_exec(&self, agent: &dyn Agent, prompt: &str) -> Exec {
        let command = agent.command(prompt);
        let timeout = agent.patience().total.min(self.time_left());
        Exec {
            program: Program::Argv(command.argv),
            env: command.env,
            ..Exec::shell("", timeout)
        }
        .with_stdin(command.stdin)
    }

    /// Says how it went, by what was seen from outside before what the agent says itself.
    fn judge_agent(
        &mut self,
        watched: Watched,
        sink: &mut AgentSink,
    ) -> Result<(AgentEnd, AgentReport), RunError> {
        let stderr = sink.capture.stderr_tail();
        let (cut, ended) = match watched {
            Watched::Ended(Ok(outcome)) => (None, outcome.ended),
            Watched::Ended(Err(SandboxError::Interrupted { why })) => {
                self.log_error(&format!("the agent was interrupted: {why}"))?;
                let (_, report) = sink.reader.finish(Ended::Signalled(9), &stderr);
                return Ok((AgentEnd::Crashed { why }, report));
            }
            Watched::Ended(Err(error)) => return Err(error.into()),
            Watched::Cut(Cut::Stalled) => (Some(AgentEnd::Stalled), Ended::TimedOut),
            Watched::Cut(Cut::Lingering) => (None, Ended::Exited(0)),
        };
        let (end, report) = sink.reader.finish(ended, &stderr);
        let end = match ended {
            Ended::TimedOut if cut.is_none() => AgentEnd::TimedOut,
            Ended::TimedOut
            | Ended::Exited(_)
            | Ended::Signalled(_)
            | Ended::OutputLimit
            | Ended::DiskLimit
            | Ended::OutOfMemory => cut.unwrap_or(end),
        };
        Ok((end, report))
    }

    /// Tells the gate what may still be spent.
    fn set_allowance(&self) {
        let Some(gate) = &self.outside.gate else {
            return;
        };
        let limits = self.pinned.contract().limits();
        let spent = self.spent();
        gate.allow_spending(Allowance {
            cost: limits.max_cost.map(|most| most.saturating_sub(spent.cost)),
            tokens: limits
                .max_tokens
                .map(|most| most.saturating_sub(spent.tokens)),
        });
    }

    /// Where no gate meters its calls, an agent is charged by what it says itself.
    fn charge_unmetered(&mut self, agent: &str, report: &AgentReport) -> Result<(), RunError> {
        if self.outside.gate.is_some() || report.usage.total() == 0 {
            return Ok(());
        }
        let by_price = ralph_core::price::cost(&self.outside.price, &report.usage);
        self.journal.append(Event::AgentCharged {
            iteration: self.state().iteration,
            model: agent.to_owned(),
            usage: report.usage,
            cost_usd: report.cost_usd.unwrap_or(by_price),
        })?;
        Ok(())
    }

    /// Looks at what the agent says is done, and says where the run goes from here.
    async fn settle_agent(
        &mut self,
        end: AgentEnd,
        report: AgentReport,
    ) -> Result<(String, Performed), RunError> {
        let mut claims = self.agent_claims().await?;
        if end == AgentEnd::Finished && claims.checkboxes_checked.is_empty() {
            let tree = SandboxGit::new(&*self.sandbox).status().await?;
            if tree.head.as_ref() == Some(&self.state().head) && tree.entries.is_empty() {
                claims = self.claim_of_everything();
            }
        }
        self.check_claims(&claims).await?;
        let stopped = |why: &str| IterationOutcome::AgentStopped {
            why: why.to_owned(),
        };
        let outcome = match &end {
            AgentEnd::Finished => IterationOutcome::Completed,
            AgentEnd::OutOfBudget => IterationOutcome::OutOfBudget,
            AgentEnd::GaveUp { why }
            | AgentEnd::Unauthorized { why }
            | AgentEnd::Quota { why, .. }
            | AgentEnd::Overloaded { why }
            | AgentEnd::Crashed { why } => stopped(why),
            AgentEnd::Stalled => stopped("the agent did nothing any more"),
            AgentEnd::TimedOut => stopped("the agent's time was up"),
        };
        let done = usize::from(end == AgentEnd::Finished);
        let performed = Performed {
            total: 1,
            succeeded: done,
            ..Performed::nothing(outcome)
        };
        Ok((report.summary, performed))
    }

    fn keep_agents_words(
        &self,
        agent: &str,
        end: &AgentEnd,
        report: &AgentReport,
    ) -> Result<(), RunError> {
        let path = self.open_agent_file("response.json");
        let kept = Kept { agent, end, report };
        let text = redaction::to_pretty(&self.outside.redactor, &kept, &path)?;
        durable::write_unsynced(&path, &text)?;
        Ok(())
    }

    /// Returns the agent that works on this run, if one does.
    pub(crate) fn agent(&self) -> Option<Arc<dyn Agent>> {
        self.outside.agent.clone()
    }

    /// Returns why a person has to look after the agent before the next iteration, if that is so.
    pub(crate) fn agents_reason_to_pause(&self) -> Option<RunStatus> {
        let agent = self.outside.agent.as_ref()?;
        let end = self
            .state()
            .open
            .as_ref()
            .and_then(|open| open.agent_end.as_ref());
        if let Some(AgentEnd::Unauthorized { why }) = end {
            return Some(broken(
                format!("the credential of `{}` was refused: {why}", agent.name()),
                format!(
                    "store a valid one with `ralph store-token --agent {}`, then `ralph resume`",
                    agent.name()
                ),
            ));
        }
        let is_idle = !self.now.changed && self.now.newly_ticked == 0;
        (is_idle && self.state().idle + 1 >= IDLE_LIMIT).then(|| {
            broken(
                format!(
                    "`{}` changed nothing in {IDLE_LIMIT} iterations",
                    agent.name()
                ),
                "look at `ralph logs`, make the task clearer, then `ralph resume`".into(),
            )
        })
    }

    fn open_agent_file(&self, name: &str) -> std::path::PathBuf {
        self.dir.open_iteration(self.state().iteration).join(name)
    }

    fn agent_attempts(&self) -> u32 {
        self.state().open.as_ref().map_or(0, |open| open.attempts)
    }
}

fn broken(what: String, fix: String) -> RunStatus {
    RunStatus::Paused(PauseReason::Broken { what, fix })
}
