//! The seven files of an iteration: written on the host during the iteration, copied into the
//! sandbox at its end.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use ralph_core::id::Digest;
use ralph_core::ports::{ExecStatus, WriteMode};
use serde::Serialize;

use crate::capture::Captured;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::redaction;
use crate::store::RunDir;
use crate::workbench::Workbench;
use crate::workspace::repo_path;

impl Recorder {
    /// Returns the path of a file of the open iteration.
    pub(crate) fn open_iteration_file(&self, name: &str) -> PathBuf {
        self.dir.open_iteration(self.state().iteration).join(name)
    }

    fn append_to_iteration_file(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        let path = self.open_iteration_file(name);
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(StoreError::when("append to", &path))?;
        Ok(())
    }

    /// Appends a value as a line of JSON to a file of the open iteration.
    pub(crate) fn append_json_line(
        &self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), RunError> {
        let line = redaction::to_line(&self.redactor, value, &self.open_iteration_file(name))?;
        self.append_to_iteration_file(name, line.as_bytes())
    }

    /// Writes a value as JSON to a file of the open iteration.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), RunError> {
        let path = self.open_iteration_file(name);
        let text = redaction::to_pretty(&self.redactor, value, &path)?;
        durable::write_unsynced(&path, &text)?;
        Ok(())
    }

    /// Appends the output of a command to the iteration's `test_output.txt`.
    pub(crate) fn append_test_output(
        &self,
        command: &str,
        output: &Captured,
        ended: ExecStatus,
    ) -> Result<(), RunError> {
        let command = self.redactor.redact(command);
        let newline = if output.both.is_empty() || output.both.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let text = format!("$ {command}\n{}{newline}[{ended}]\n\n", output.both);
        self.append_to_iteration_file("test_output.txt", text.as_bytes())
    }

    /// Removes lines of `actions.jsonl` whose action is not in the journal: that action is
    /// performed again.
    pub(crate) fn drop_unrecorded_actions(&self) -> Result<(), RunError> {
        let path = self.open_iteration_file("actions.jsonl");
        let Some(text) = durable::read_if_present(&path)? else {
            return Ok(());
        };
        let open = self.state().open.as_ref();
        let recorded = open.map_or(0, |open| open.results.len());
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
}

/// Syncs the seven files and the logs, copies the files into the sandbox, and returns their
/// digests.
pub(crate) async fn sync_artifacts(
    recorder: &Recorder,
    bench: &Workbench,
    number: u32,
) -> Result<BTreeMap<String, Digest>, RunError> {
    let open = recorder.dir.open_iteration(number);
    let mut paths = RunDir::ARTIFACTS.map(|name| open.join(name)).to_vec();
    for path in &paths {
        // Some of them may not exist yet.
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(StoreError::when("create", path))?;
    }
    paths.extend(["activity.log", "errors.log"].map(|log| recorder.dir.file(log)));
    paths.push(open.clone());
    durable::sync_paths(&paths)?;
    let copies = repo_path(&format!(".ralph/iterations/{number}"))?;
    // An existing directory is an incomplete copy, or was created by a command.
    bench.sandbox.delete(&copies).await?;
    let mut digests = BTreeMap::new();
    for name in RunDir::ARTIFACTS {
        let path = open.join(name);
        let bytes = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
        let copy = repo_path(&format!(".ralph/iterations/{number}/{name}"))?;
        bench
            .sandbox
            .write(&copy, &bytes, WriteMode::Replace)
            .await?;
        digests.insert(name.to_owned(), Digest::compute(&bytes));
    }
    Ok(digests)
}
