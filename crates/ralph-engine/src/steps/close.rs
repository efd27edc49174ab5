//! The end of an iteration: its seven files, on disk on the host and copied into the sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;

use ralph_core::event::{DiffSize, Event, IterationEvent, IterationMetrics};
use ralph_core::gutter::{CodeChange, LoopScore};
use ralph_core::id::Digest;
use ralph_core::ports::{ExecStatus, WriteMode};
use ralph_core::run::RunStatus;
use ralph_core::verdict::CheckResult;
use serde::Serialize;

use crate::actions::Performed;
use crate::capture::Captured;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::git::IterationChange;
use crate::journal::millis;
use crate::redaction;
use crate::run::Run;
use crate::store::RunDir;
use crate::workspace::repo_path;

/// What is known of the present iteration and need not survive a crash: it is looked at again.
#[derive(Debug, Default)]
pub(crate) struct IterationScratch {
    /// Whether the iteration was begun by a process that died: what it saw is not known any more.
    pub(crate) resumed: bool,
    /// Checks that hold for the files as they are.
    pub(crate) checks: BTreeMap<String, CheckResult>,
    /// The last run of the test command.
    pub(crate) tests: Option<CheckResult>,
    /// Whether the files differ from the end of the last iteration.
    pub(crate) changed: bool,
    /// What changed since the start of the iteration.
    pub(crate) diff: DiffSize,
    /// How many boxes were ticked.
    pub(crate) newly_ticked: usize,
    /// What changed since then, file by file, and where the files stand.
    pub(crate) change: IterationChange,
    /// The code that it wrote.
    pub(crate) code: Option<CodeChange>,
    /// Whether a milestone became complete.
    pub(crate) milestone_reached: bool,
}

impl Run {
    /// Adds bytes to a file of the open iteration.
    pub(crate) fn append_to_iteration_file(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), RunError> {
        let path = self.open_iteration_file(name);
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(StoreError::when("append to", &path))?;
        Ok(())
    }

    /// Adds a value as a line of JSON to a file of the open iteration.
    pub(crate) fn append_json_line(
        &self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), RunError> {
        let line = redaction::to_line(
            &self.services.redactor,
            value,
            &self.open_iteration_file(name),
        )?;
        self.append_to_iteration_file(name, line.as_bytes())
    }

    /// Adds a command's output to the iteration's `test_output.txt`.
    pub(crate) fn append_test_output(
        &self,
        command: &str,
        output: &Captured,
        ended: ExecStatus,
    ) -> Result<(), RunError> {
        let command = self.services.redactor.redact(command);
        let newline = if output.both.is_empty() || output.both.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let text = format!("$ {command}\n{}{newline}[{ended}]\n\n", output.both);
        self.append_to_iteration_file("test_output.txt", text.as_bytes())
    }

    /// Drops lines of `actions.jsonl` whose action is not in the journal: it is performed again.
    pub(crate) fn drop_unrecorded_actions(&self) -> Result<(), RunError> {
        let path = self.open_iteration_file("actions.jsonl");
        let Ok(text) = std::fs::read(&path) else {
            return Ok(());
        };
        let recorded = self
            .state()
            .open
            .as_ref()
            .map_or(0, |open| open.results.len());
        let kept: Vec<&[u8]> = text
            .split_inclusive(|byte| *byte == b'\n')
            .take(recorded)
            .collect();
        let kept = kept.concat();
        if kept.len() != text.len() {
            durable::write(&path, &kept)?;
        }
        Ok(())
    }

    /// Writes the last files, copies all seven into the sandbox, and tells the journal.
    pub(crate) async fn close_iteration(
        &mut self,
        summary: String,
        performed: Performed,
        then: Option<RunStatus>,
    ) -> Result<(), RunError> {
        let number = self.state().iteration;
        let circling = self.measure_progress(&performed.outcome, then)?;
        let metrics = IterationMetrics {
            loop_score: circling.score.map(LoopScore::value),
            gutter: circling.report.clone().map(Box::new),
            ..self.iteration_metrics(&performed)
        };
        let open = self.dir.open_iteration(number);
        self.write_json("metrics.json", &metrics)?;
        let none = serde_json::json!({});
        match &self.state().pull {
            Some(pull) => self.write_json("pr_state.json", pull)?,
            None => self.write_json("pr_state.json", &none)?,
        }
        self.log_activity(&format!("iteration {number} ends: {summary}"))?;
        let files = self.sync_artifacts(number).await?;
        self.workspace.project(&*self.sandbox, &self.files).await?;
        // The next iteration goes on from these files, also after a power cut.
        self.sandbox.sync().await?;
        durable::rename(&open, &self.dir.iteration(number))?;
        let finished = Event::Iteration(IterationEvent::IterationFinished {
            iteration: number,
            summary,
            outcome: performed.outcome,
            metrics: Box::new(metrics),
            files,
            logs: self.files.marks()?,
            then: circling.next_status.clone(),
        });
        let told = circling.event(number);
        // Those of an agent were looked at when it ended.
        let is_read = self.state().open.as_ref().is_some_and(|open| open.accepted);
        let taken_up = is_read.then(|| self.acknowledged_messages());
        let events = taken_up.into_iter().flatten();
        self.journal
            .append_all(events.chain([finished]).chain(told))?;
        self.scratch = IterationScratch::default();
        Ok(())
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), RunError> {
        let path = self.open_iteration_file(name);
        let text = redaction::to_pretty(&self.services.redactor, value, &path)?;
        durable::write_unsynced(&path, &text)?;
        Ok(())
    }

    /// Syncs the seven files and the logs, copies the files into the sandbox, returns their digests.
    async fn sync_artifacts(&self, number: u32) -> Result<BTreeMap<String, Digest>, RunError> {
        let open = self.dir.open_iteration(number);
        let mut paths = RunDir::ARTIFACTS.map(|name| open.join(name)).to_vec();
        for path in &paths {
            // Nothing may have been written to some of them.
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(StoreError::when("create", path))?;
        }
        paths.extend(["activity.log", "errors.log"].map(|log| self.dir.file(log)));
        paths.push(open.clone());
        durable::sync_paths(&paths)?;
        let copies = repo_path(&format!(".ralph/iterations/{number}"))?;
        // Whatever stands there already is not the runner's, or a part of what follows.
        self.sandbox.delete(&copies).await?;
        let mut digests = BTreeMap::new();
        for name in RunDir::ARTIFACTS {
            let path = open.join(name);
            let bytes = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
            let copy = repo_path(&format!(".ralph/iterations/{number}/{name}"))?;
            self.sandbox
                .write(&copy, &bytes, WriteMode::Replace)
                .await?;
            digests.insert(name.to_owned(), Digest::compute(&bytes));
        }
        Ok(digests)
    }

    fn iteration_metrics(&self, performed: &Performed) -> IterationMetrics {
        let state = self.state();
        let open = state.open.as_ref();
        let active = self.journal.active();
        let took = open.map(|open| active.saturating_sub(open.active_before));
        let boxes: BTreeSet<&str> = self
            .pinned
            .task()
            .checkboxes
            .iter()
            .map(|b| b.id.as_str())
            .collect();
        IterationMetrics {
            iteration: state.iteration,
            duration_ms: took.map_or(0, millis),
            model_ms: open.map_or(0, |open| open.model_ms),
            command_ms: open.map_or(0, |open| open.command_ms),
            model_calls: open.map_or(0, |open| open.attempts),
            usage: open.map(|open| open.usage).unwrap_or_default(),
            cost_usd: open.map(|open| open.cost).unwrap_or_default(),
            repaired: performed.repaired,
            actions: performed.total,
            actions_ok: performed.succeeded,
            prompt_bytes: open.map_or(0, |open| open.prompt_bytes),
            diff: self.scratch.diff,
            test_exit_code: self
                .scratch
                .tests
                .as_ref()
                .map(|check| check.ended.exit_code()),
            tests: self.scratch.tests.as_ref().and_then(|check| check.tests),
            boxes_ticked: state
                .ticked
                .iter()
                .filter(|id| boxes.contains(id.as_str()))
                .count(),
            boxes_total: boxes.len(),
            loop_score: None,
            gutter: None,
            head: state.head.clone(),
        }
    }
}
