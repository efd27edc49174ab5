//! Asking the model: the prompt, the calls with their costs, the one repair.

use std::time::Duration;

use ralph_core::action::{self, Response};
use ralph_core::event::{ActionResult, Event};
use ralph_core::id::Digest;
use ralph_core::ports::{Ended, Finish, ModelError, ModelRequest, Reply};
use ralph_core::prompt::{self, GitSummary, LastOutput, LastTests, Snapshot};
use ralph_core::{budget, price};
use serde::{Deserialize, Serialize};

use crate::durable;
use crate::error::RunError;
use crate::journal::millis;
use crate::run::{Run, answer};

/// A reply is asked for once more if it cannot be read.
const MAX_READINGS: usize = 2;
/// Tries for one reply while the provider is not available.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_mins(2);
const MAX_REPLY_BYTES: usize = 2 << 20;

/// `response.json`: every reply of an iteration as it came.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Responses {
    /// The replies, in order.
    pub attempts: Vec<Attempt>,
}

/// One reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number in the iteration.
    pub attempt: u32,
    /// The model that answered.
    pub model: String,
    /// The answer, byte for byte, but for secrets.
    pub reply: String,
    /// Tokens.
    pub usage: ralph_core::ports::Usage,
    /// What was wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reads a reply; one that was cut off is never performed, even if what is there can be read.
fn read(reply: &Reply) -> Result<Response, String> {
    match reply.finish {
        Finish::Length => Err("the reply was cut off at the output limit; answer with less".into()),
        Finish::Complete => action::parse(&reply.text).map_err(|error| error.to_string()),
    }
}

impl Run {
    /// Begins an iteration, or goes on with the one that a crash left open.
    pub(crate) fn begin_iteration(&mut self) -> Result<(), RunError> {
        if let Some(open) = &self.state().open {
            let number = open.number;
            self.dir.reopen_iteration(number)?;
            self.now.resumed = true;
            return self.log_activity(&format!("iteration {number} goes on after an interruption"));
        }
        let iteration = self.state().iteration + 1;
        let before = self.state().spent();
        let head = self.state().head.clone();
        // The record first: a directory that the journal does not know belongs to nobody.
        self.journal
            .append(Event::IterationStarted { iteration, head })?;
        self.dir.reopen_iteration(iteration)?;
        self.warn_about_budgets(&before)?;
        self.log_activity(&format!("iteration {iteration} starts"))
    }

    /// Returns the model's response, or none if it could not be read. Costs are counted on the way.
    pub(crate) async fn ask(&mut self) -> Result<Option<Response>, RunError> {
        let mut responses = self.read_responses();
        match self.reply_on_disk(&responses) {
            Some(Ok(response)) => {
                self.accept(&response)?;
                return Ok(Some(response));
            }
            Some(Err(errors)) => self.reject(&mut responses, &errors)?,
            None if self.has_accepted() => return self.give_reply_up(),
            None => {}
        }
        let first = self.request()?;
        let mut request = first.clone();
        for _ in responses.attempts.len()..MAX_READINGS {
            if let Some(Attempt {
                reply,
                error: Some(errors),
                ..
            }) = responses.attempts.last()
            {
                request = prompt::build_repair(&first, reply, errors);
            }
            let limits = self.pinned.contract().limits();
            if budget::exhausted(&limits, &self.spent()).is_some() {
                return Ok(None);
            }
            let reply = self.call(&request, &mut responses).await?;
            match read(&reply) {
                Ok(response) => {
                    self.accept(&response)?;
                    return Ok(Some(response));
                }
                Err(errors) => self.reject(&mut responses, &errors)?,
            }
        }
        Ok(None)
    }

    fn has_accepted(&self) -> bool {
        self.state().open.as_ref().is_some_and(|open| open.accepted)
    }

    /// Ends an iteration whose reply was begun and is not there any more: the actions of another
    /// reply must not continue it.
    fn give_reply_up(&mut self) -> Result<Option<Response>, RunError> {
        let why = "the reply that was interrupted cannot be read again, a fresh iteration follows";
        self.log_error(why)?;
        let pending = self.state().open.as_ref().and_then(|o| o.pending.clone());
        if let Some((index, _)) = pending {
            self.journal.append(Event::ActionFinished {
                iteration: self.state().iteration,
                index,
                action: "unknown".into(),
                label: why.into(),
                result: ActionResult::Interrupted,
                duration_ms: 0,
                tail: String::new(),
            })?;
        }
        Ok(None)
    }

    fn accept(&mut self, response: &Response) -> Result<(), RunError> {
        if self.has_accepted() {
            return Ok(());
        }
        let iteration = self.state().iteration;
        self.log_activity(&format!(
            "reply: {} ({} actions)",
            response.summary,
            response.actions.len()
        ))?;
        self.journal.append(Event::ReplyAccepted {
            iteration,
            summary: response.summary.clone(),
            actions: response.actions.len(),
            repaired: response.repaired,
        })?;
        Ok(())
    }

    fn reject(&mut self, responses: &mut Responses, errors: &str) -> Result<(), RunError> {
        if self
            .state()
            .open
            .as_ref()
            .is_some_and(|open| open.rejected.is_some())
        {
            return Ok(());
        }
        if let Some(last) = responses.attempts.last_mut() {
            last.error = Some(errors.to_owned());
        }
        self.write_responses(responses)?;
        let (iteration, attempt) = (self.state().iteration, self.attempts());
        self.log_error(&format!(
            "the reply could not be read, nothing of it was done: {errors}"
        ))?;
        self.journal.append(Event::ReplyRejected {
            iteration,
            attempt,
            errors: errors.to_owned(),
        })?;
        Ok(())
    }

    /// Asks until there is a reply. Provider errors use up time, not iterations.
    async fn call(
        &mut self,
        request: &ModelRequest,
        responses: &mut Responses,
    ) -> Result<Reply, RunError> {
        self.write_prompt(request)?;
        let text = request.text();
        let mut wait = FIRST_WAIT;
        for tried in 1.. {
            let (iteration, attempt) = (self.state().iteration, self.attempts() + 1);
            let prompt = Digest::of(text.as_bytes());
            self.journal.append(Event::ModelAsked {
                iteration,
                attempt,
                prompt,
                prompt_bytes: text.len(),
            })?;
            let started = self.outside.clock.monotonic();
            let error = match self.listen(request).await? {
                Ok(reply) => {
                    let waited = self.outside.clock.monotonic().saturating_sub(started);
                    self.record_reply(&reply, responses, waited)?;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let retry = match &error {
                ModelError::Transient { retry_after, .. } if tried < MAX_TRIES => {
                    Some(retry_after.unwrap_or(wait).min(LONGEST_WAIT))
                }
                ModelError::Transient { .. }
                | ModelError::Unauthorized { .. }
                | ModelError::Broken { .. } => None,
            };
            let retry_in_ms = retry.map(millis);
            self.log_error(&error.to_string())?;
            self.journal.append(Event::ModelFailed {
                iteration,
                attempt,
                error: error.to_string(),
                retry_in_ms,
            })?;
            let Some(pause) = retry else {
                return Err(error.into());
            };
            self.sleep(pause).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Err(RunError::Interrupted)
    }

    async fn listen(
        &mut self,
        request: &ModelRequest,
    ) -> Result<Result<Reply, ModelError>, RunError> {
        let model = self.outside.model.clone();
        let mut asking = std::pin::pin!(model.ask(request));
        loop {
            tokio::select! {
                reply = &mut asking => return Ok(reply),
                call = self.control.next() => answer(&mut self.journal, &mut self.control, call)?,
            }
        }
    }

    async fn sleep(&mut self, pause: Duration) -> Result<(), RunError> {
        let mut sleeping = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut sleeping => return Ok(()),
                call = self.control.next() => answer(&mut self.journal, &mut self.control, call)?,
            }
        }
    }

    // Charged before parsing: the provider bills a reply even when it is unreadable.
    fn record_reply(
        &mut self,
        reply: &Reply,
        responses: &mut Responses,
        waited: Duration,
    ) -> Result<(), RunError> {
        let attempt = self.attempts();
        let mut text = reply.text.clone();
        if text.len() > MAX_REPLY_BYTES {
            let mut end = MAX_REPLY_BYTES;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        responses.attempts.push(Attempt {
            attempt,
            model: self.outside.model.name().to_owned(),
            reply: self.outside.redactor.redact(&text).into_owned(),
            usage: reply.usage,
            // Known here only: that a reply was cut off cannot be seen from its text.
            error: read(reply).err(),
        });
        self.write_responses(responses)?;
        let before = self.state().spent();
        let event = Event::ModelReplied {
            iteration: self.state().iteration,
            attempt,
            response: Digest::of(reply.text.as_bytes()),
            usage: reply.usage,
            cost_usd: price::cost(&self.outside.price, &reply.usage),
            duration_ms: millis(waited),
            source: reply.source.clone(),
        };
        self.journal.append(event)?;
        self.warn_about_budgets(&before)
    }

    /// Warns when spending has passed a mark since `before`.
    pub(crate) fn warn_about_budgets(&mut self, before: &budget::Spent) -> Result<(), RunError> {
        let limits = self.pinned.contract().limits();
        for (budget, percent) in budget::warnings(&limits, before, &self.spent()) {
            self.log_activity(&format!(
                "{percent} % of the budget `{}` are used",
                budget.key()
            ))?;
            self.journal
                .append(Event::BudgetWarning { budget, percent })?;
        }
        Ok(())
    }

    fn attempts(&self) -> u32 {
        self.state().open.as_ref().map_or(0, |open| open.attempts)
    }

    fn open_file(&self, name: &str) -> std::path::PathBuf {
        self.dir.open_iteration(self.state().iteration).join(name)
    }

    fn write_prompt(&self, request: &ModelRequest) -> Result<(), RunError> {
        let text = self.outside.redactor.redact(&request.text()).into_owned();
        durable::write_unsynced(&self.open_file("prompt.md"), text.as_bytes())?;
        Ok(())
    }

    fn write_responses(&self, responses: &Responses) -> Result<(), RunError> {
        let text = serde_json::to_vec_pretty(responses).unwrap_or_default();
        Ok(durable::write(&self.open_file("response.json"), &text)?)
    }

    /// Only replies that the journal knows count: one that was not charged is asked for again.
    fn read_responses(&self) -> Responses {
        let mut responses: Responses = std::fs::read(self.open_file("response.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        responses
            .attempts
            .truncate(self.state().open.as_ref().map_or(0, |open| open.replies));
        responses
    }

    /// Reads the reply that was there before a crash, unless secrets had to be cut out of it.
    fn reply_on_disk(&self, responses: &Responses) -> Option<Result<Response, String>> {
        let expected = self.state().open.as_ref()?.response.clone()?;
        let Attempt { reply, error, .. } = responses.attempts.last()?;
        let is_whole = Digest::of(reply.as_bytes()) == expected;
        is_whole.then(|| match error {
            Some(errors) => Err(errors.clone()),
            None => action::parse(reply).map_err(|error| error.to_string()),
        })
    }

    fn request(&self) -> Result<ModelRequest, RunError> {
        let request = prompt::build(&self.snapshot()?);
        let redactor = &self.outside.redactor;
        Ok(ModelRequest {
            system: request.system,
            user: redactor.redact(&request.user).into_owned(),
        })
    }

    fn snapshot(&self) -> Result<Snapshot, RunError> {
        let state = self.state();
        let tree = &self.view.tree;
        let iteration = state.iteration;
        let last = iteration.saturating_sub(1);
        Ok(Snapshot {
            task: self.pinned.task().with_ticks(&state.ticked),
            guardrails: self.files.text("guardrails.md")?,
            progress: self.files.text("progress.md")?,
            notes: Some(self.files.text("notes.md")?),
            errors_tail: self.files.errors_tail()?,
            git: GitSummary {
                branch: state.plan.branch.clone(),
                head: state.head.short().to_owned(),
                status: tree
                    .entries
                    .iter()
                    .take(100)
                    .map(|(code, path)| format!("{code} {path}"))
                    .collect(),
                status_total: tree.entries.len(),
                diff_stat: self.view.diff_stat.clone(),
                last_commits: self.view.subjects.clone(),
                diff_file: if last > 0 {
                    format!(".ralph/iterations/{last}/git_diff.patch")
                } else {
                    String::new()
                },
            },
            last_output: self.last_output(last)?,
            refusals: state.refusals.clone(),
            limits: self.pinned.contract().limits(),
            spent: self.spent(),
            iteration,
            loop_scores: state.loop_scores.clone(),
            schema: action::SCHEMA_TEXT.to_owned(),
        })
    }

    fn last_output(&self, last: u32) -> Result<Option<LastOutput>, RunError> {
        let path = self.dir.iteration(last).join("test_output.txt");
        let output_tail = durable::tail(&path, 64 << 10)?;
        if output_tail.is_empty() {
            return Ok(None);
        }
        let code = self
            .state()
            .last_metrics
            .as_ref()
            .and_then(|metrics| metrics.test_exit_code);
        let command = self.pinned.contract().test_command.clone();
        let tests = command.zip(code).map(|(command, code)| LastTests {
            command,
            ended: Ended::Exited(code),
        });
        let file = format!(".ralph/iterations/{last}/test_output.txt");
        Ok(Some(LastOutput {
            tests,
            output_tail,
            file,
        }))
    }
}
