//! One session of an agent's program, from its prompt to how it ended.

use std::time::Duration;

use ralph_core::event::{Event, MessageState};
use ralph_core::id::Digest;
use ralph_core::ports::{
    Agent, AgentEnd, AgentReport, Allowance, Ended, Exec, Problem, Program, ProviderFailure,
    SandboxError,
};
use serde::Serialize;

use super::sink::{AgentSink, Pulse};
use super::watch::{Cut, Watched, channel};
use crate::capture::Capture;
use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::redaction;
use crate::run::Run;

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Worked {
    pub(super) end: AgentEnd,
    pub(super) report: AgentReport,
    /// Whether it was cut off in the middle by something that is not its doing.
    pub(super) broke_off: bool,
}

/// What is kept of an agent's work; `response.json`.
#[derive(Serialize)]
struct Kept<'a> {
    agent: &'a str,
    #[serde(flatten)]
    end: &'a AgentEnd,
    report: &'a AgentReport,
}

impl Run {
    /// Starts the agent once and sees it to its end.
    pub(super) async fn let_work(&mut self, agent: &dyn Agent) -> Result<Worked, RunError> {
        self.deliver_messages()?;
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
        // What is not written down yet would be granted twice.
        self.hear_gate()?;
        self.set_allowance();
        let started = self.outside.clock.monotonic();
        let pulse = Pulse::new(self.outside.clock.clone());
        let (sender, events) = channel();
        let capture = Capture::new(&self.outside.redactor);
        let mut sink = AgentSink::new(agent.reader(), capture, pulse.clone(), sender);
        let exec = self.agent_exec(agent, &prompt);
        let watched = self.watch(agent, exec, &mut sink, (pulse, events)).await;
        let gate = self.outside.gate.as_ref();
        let is_short = gate.is_some_and(|gate| gate.short_of().is_some());
        let failure = gate.and_then(|gate| gate.provider_failure());
        // Nothing but the agent spends: not a test, and nothing that it left behind.
        if let Some(gate) = &self.outside.gate {
            gate.allow_spending(Allowance::none());
        }
        let watched = watched?;
        let took = self.outside.clock.monotonic().saturating_sub(started);
        let mut worked = judge(watched, &mut sink)?;
        if is_short && is_failure(&worked.end) {
            // Its own words about a refused call are as many as there are agents.
            worked.end = AgentEnd::OutOfBudget;
        }
        let untrusted = see_failure(&mut worked, failure);
        if let Some(trouble) = trouble(&worked) {
            self.log_error(&format!("{}: {trouble}", agent.name()))?;
        }
        self.log_session(agent.name(), &sink.tools, &worked, took)?;
        let output = sink.capture.finish();
        self.add_output(agent.name(), &output, as_command(&worked.end))?;
        self.keep_agents_words(agent.name(), &worked)?;
        self.charge_unmetered(agent.name(), &worked.report)?;
        // After a power cut the agent does not start again: its work must still be there.
        self.sandbox.sync().await?;
        let finished = Event::AgentFinished {
            iteration: self.state().iteration,
            attempt,
            end: worked.end.clone(),
            report: worked.report.clone(),
            duration_ms: millis(took),
        };
        let taken_up = has_read_its_prompt(&worked.end).then(|| self.messages_taken_up());
        let taken_up = taken_up.unwrap_or_default();
        self.journal
            .append_all(std::iter::once(finished).chain(taken_up))?;
        untrusted.map_or(Ok(worked), |problem| Err(RunError::Unfit(problem)))
    }

    /// Writes what the agent did into the activity log.
    fn log_session(
        &mut self,
        agent: &str,
        tools: &[String],
        worked: &Worked,
        took: Duration,
    ) -> Result<(), RunError> {
        for tool in tools {
            self.log_activity(&format!("{agent} uses {tool}"))?;
        }
        let usage = &worked.report.usage;
        self.log_activity(&format!(
            "{agent} ends: {} after {} s, {} tools, {} input and {} output tokens by its own count",
            worked.end.word(),
            took.as_secs(),
            tools.len(),
            usage.input_tokens,
            usage.output_tokens,
        ))
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
        let is_metered = self.outside.gate.as_ref().is_some_and(|gate| gate.meters());
        if is_metered || report.usage.total() == 0 {
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

    fn keep_agents_words(&self, agent: &str, worked: &Worked) -> Result<(), RunError> {
        let path = self.open_agent_file("response.json");
        let Worked { end, report, .. } = worked;
        let kept = Kept { agent, end, report };
        let text = redaction::to_pretty(&self.outside.redactor, &kept, &path)?;
        durable::write_unsynced(&path, &text)?;
        Ok(())
    }

    fn open_agent_file(&self, name: &str) -> std::path::PathBuf {
        self.dir.open_iteration(self.state().iteration).join(name)
    }

    fn agent_attempts(&self) -> u32 {
        self.state().open.as_ref().map_or(0, |open| open.attempts)
    }

    /// Notes that messages are in the prompt that is sent next.
    pub(crate) fn deliver_messages(&mut self) -> Result<(), RunError> {
        let state = self.state();
        let moved = |message: &ralph_core::state::Message| Event::MessageMoved {
            id: message.id.clone(),
            text: message.text.clone(),
            to: MessageState::Delivered,
        };
        let queued = state
            .messages_for_prompt()
            .filter(|message| message.state == MessageState::Queued);
        let moved: Vec<Event> = queued.map(moved).collect();
        if !moved.is_empty() {
            self.journal.append_all(moved)?;
        }
        Ok(())
    }

    /// Returns that the messages of the last prompt were taken up.
    pub(crate) fn messages_taken_up(&self) -> Vec<Event> {
        let waiting = self.state().waiting_messages();
        waiting
            .filter(|message| message.is_in_prompt)
            .map(|message| Event::MessageMoved {
                id: message.id.clone(),
                text: message.text.clone(),
                to: MessageState::Acknowledged,
            })
            .collect()
    }
}

/// Says how it went, by what was seen from outside before what the agent says itself.
fn judge(watched: Watched, sink: &mut AgentSink) -> Result<Worked, RunError> {
    let stderr = sink.capture.stderr_tail();
    let (ended, cut, broken) = match watched {
        Watched::Ended(Ok(outcome)) => (outcome.ended, None, None),
        Watched::Ended(Err(SandboxError::Interrupted { why })) => {
            (Ended::Signalled(9), None, Some(why))
        }
        Watched::Ended(Err(error)) => return Err(error.into()),
        Watched::Cut(Cut::Stalled) => (Ended::TimedOut, Some(Cut::Stalled), None),
        Watched::Cut(Cut::Halted) => (Ended::Signalled(15), Some(Cut::Halted), None),
        Watched::Cut(cut @ Cut::Refused(_)) => (Ended::Signalled(15), Some(cut), None),
        Watched::Cut(Cut::Lingering) => (Ended::Exited(0), None, None),
    };
    let (said, report) = sink.reader.finish(ended, &stderr);
    let is_killed = cut.is_none() && matches!(ended, Ended::Signalled(_));
    let broke_off = is_killed && matches!(said, AgentEnd::Crashed { .. });
    let end = match (cut, said) {
        (Some(Cut::Halted | Cut::Refused(_)), AgentEnd::Finished) => AgentEnd::Finished,
        (Some(Cut::Refused(status)), _) => AgentEnd::Unauthorized {
            why: format!("the provider answers with status {status}"),
        },
        (Some(Cut::Halted), _) => AgentEnd::Halted,
        // Trouble that it was in explains the silence better.
        (Some(Cut::Stalled), AgentEnd::Crashed { .. } | AgentEnd::TimedOut) => AgentEnd::Stalled,
        (None, AgentEnd::Crashed { why }) => AgentEnd::Crashed {
            why: broken.unwrap_or(why),
        },
        (Some(Cut::Stalled | Cut::Lingering) | None, said) => said,
    };
    Ok(Worked {
        end,
        report,
        broke_off,
    })
}

/// Returns what kept an agent from its work, for the log of errors.
fn trouble(worked: &Worked) -> Option<String> {
    match &worked.end {
        // An outage is in the activity log. The log of errors is a part of prompts, and a long outage would fill it.
        AgentEnd::Finished | AgentEnd::Halted | AgentEnd::Overloaded { .. } => None,
        AgentEnd::Crashed { why } if worked.broke_off => Some(format!("interrupted: {why}")),
        AgentEnd::Crashed { why } => Some(format!("broke down: {why}")),
        AgentEnd::GaveUp { why } => Some(format!("gave up: {why}")),
        AgentEnd::Unauthorized { why } => Some(format!("its credential was refused: {why}")),
        AgentEnd::Quota { why, .. } => Some(format!("its usage limit is reached: {why}")),
        AgentEnd::OutOfBudget => Some("the budget is used up".into()),
        AgentEnd::Stalled => Some("nothing came from it any more".into()),
        AgentEnd::TimedOut => Some("its time was up".into()),
    }
}

/// Explains an agent's failure by the failure of its provider that the gate saw: the agent's own words about it
/// are not always understood. Returns the problem that only another setting solves.
fn see_failure(worked: &mut Worked, failure: Option<ProviderFailure>) -> Option<Problem> {
    if !may_be_an_outage(&worked.end) {
        return None;
    }
    match failure? {
        ProviderFailure::Unavailable { why } => {
            // Words of the agent about an outage say more than a status.
            if !matches!(worked.end, AgentEnd::Overloaded { .. }) {
                worked.end = AgentEnd::Overloaded { why };
                worked.broke_off = false;
            }
            None
        }
        ProviderFailure::Untrusted { host } => Some(Problem {
            what: format!("the certificate of `{host}` is not trusted"),
            fix: "if it is your own server or a proxy, set `SSL_CERT_FILE` to a file with the certificate of its authority".into(),
        }),
    }
}

/// Reports whether a provider that is not available can be the cause of an end.
fn may_be_an_outage(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::GaveUp { .. }
        | AgentEnd::Crashed { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::Stalled
        | AgentEnd::TimedOut => true,
        AgentEnd::Quota { .. }
        | AgentEnd::Finished
        | AgentEnd::OutOfBudget
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Halted => false,
    }
}

/// Tells whether an agent failed at its work, and was not stopped.
fn is_failure(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::GaveUp { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::Crashed { .. } => true,
        AgentEnd::Finished
        | AgentEnd::OutOfBudget
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted => false,
    }
}

/// Tells whether an agent that ended like that has done something with its prompt.
fn has_read_its_prompt(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::Finished | AgentEnd::GaveUp { .. } => true,
        AgentEnd::Unauthorized { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::OutOfBudget
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted
        | AgentEnd::Crashed { .. } => false,
    }
}

/// Returns how a command would have ended that went like that.
fn as_command(end: &AgentEnd) -> Ended {
    match end {
        AgentEnd::Finished => Ended::Exited(0),
        AgentEnd::TimedOut | AgentEnd::Stalled => Ended::TimedOut,
        AgentEnd::Halted => Ended::Signalled(15),
        AgentEnd::GaveUp { .. }
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::OutOfBudget
        | AgentEnd::Crashed { .. } => Ended::Exited(1),
    }
}

#[cfg(test)]
mod tests {

    use ralph_core::ports::{AgentEvent, AgentReader, ExecOutcome};
    use ralph_core::secret::Redactor;

    use super::*;

    /// Says what it was told to say; without that, what the end of the process tells.
    struct Says(Option<AgentEnd>);

    impl AgentReader for Says {
        fn line(&mut self, _: &str) -> Vec<AgentEvent> {
            Vec::new()
        }

        fn is_done(&self) -> bool {
            self.0.is_some()
        }

        fn finish(&mut self, ended: Ended, _: &str) -> (AgentEnd, AgentReport) {
            let by_end = match ended {
                Ended::TimedOut => AgentEnd::TimedOut,
                Ended::Exited(_)
                | Ended::Signalled(_)
                | Ended::OutputLimit
                | Ended::DiskLimit
                | Ended::OutOfMemory => AgentEnd::Crashed {
                    why: ended.to_string(),
                },
            };
            (self.0.take().unwrap_or(by_end), AgentReport::default())
        }
    }

    fn exits(ended: Ended) -> Watched {
        Watched::Ended(Ok(ExecOutcome {
            ended,
            duration: Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit: false,
        }))
    }

    /// A clock that stands still.
    struct Still;

    impl ralph_core::ports::Clock for Still {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn judged(watched: Watched, says: Option<&AgentEnd>) -> (AgentEnd, bool) {
        let (sender, _events) = channel();
        let capture = Capture::new(&Redactor::new(Vec::new()));
        let reader = Box::new(Says(says.cloned()));
        let mut sink = AgentSink::new(
            reader,
            capture,
            Pulse::new(std::sync::Arc::new(Still)),
            sender,
        );
        let worked = judge(watched, &mut sink).unwrap();
        (worked.end, worked.broke_off)
    }

    #[test]
    fn what_is_seen_from_outside_wins_only_over_silence() {
        let why = || "w".to_owned();
        let quota = AgentEnd::Quota {
            why: why(),
            wait: None,
        };
        let crashed = |why: &str| AgentEnd::Crashed { why: why.into() };
        let interrupted = || Watched::Ended(Err(SandboxError::Interrupted { why: why() }));
        let (stalled, halted) = (|| Watched::Cut(Cut::Stalled), || Watched::Cut(Cut::Halted));
        let finished = AgentEnd::Finished;
        for (number, (watched, says, expected)) in [
            (
                exits(Ended::Exited(0)),
                Some(&finished),
                (AgentEnd::Finished, false),
            ),
            (exits(Ended::Exited(1)), None, (crashed("exit 1"), false)),
            (
                exits(Ended::Exited(1)),
                Some(&quota),
                (quota.clone(), false),
            ),
            (exits(Ended::TimedOut), None, (AgentEnd::TimedOut, false)),
            (exits(Ended::TimedOut), Some(&quota), (quota.clone(), false)),
            (
                exits(Ended::Signalled(9)),
                None,
                (crashed("killed by signal 9"), true),
            ),
            (
                exits(Ended::OutOfMemory),
                None,
                (crashed("killed: out of memory"), false),
            ),
            (interrupted(), None, (crashed("w"), true)),
            (interrupted(), Some(&finished), (AgentEnd::Finished, false)),
            (stalled(), None, (AgentEnd::Stalled, false)),
            (stalled(), Some(&quota), (quota.clone(), false)),
            (stalled(), Some(&crashed("c")), (AgentEnd::Stalled, false)),
            (halted(), None, (AgentEnd::Halted, false)),
            (halted(), Some(&quota), (AgentEnd::Halted, false)),
            (halted(), Some(&finished), (AgentEnd::Finished, false)),
            (
                Watched::Cut(Cut::Lingering),
                Some(&quota),
                (quota.clone(), false),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(judged(watched, says), expected, "case {number}");
        }
    }
}
