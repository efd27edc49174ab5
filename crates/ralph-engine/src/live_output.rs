//! The live output of a run: the text of the running command or agent session, written as it
//! arrives.
//!
//! `iterations/<N>.open/output.log` has a section for each command (`$ sh tests/run.sh`) and each
//! agent session (`> claude`). The lines of a section are indented, so no output can imitate a
//! heading. The file is only for readers that follow a run and is not evidence: it is redacted and
//! limited in size, never synced, in no record, and removed when the iteration is closed
//! (`test_output.txt` has the output of every command that ended). After a crash, the resumed
//! iteration appends to it.
//!
//! `LiveOutput` writes the file, [`LiveFollower`] reads it while it grows.

mod follower;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ralph_core::ports::AgentEvent;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;

use crate::durable::StoreError;
use crate::store::RunDir;

pub use follower::{LiveFollower, LiveLine, LiveLineKind};

/// The size limit of one iteration's live output, without the line that reports it.
const MAX_BYTES: u64 = 64 << 20;
/// Precedes every line of a section.
const INDENT: &str = "  ";
const COMMAND_HEADING: &str = "$ ";
const AGENT_HEADING: &str = "> ";
/// Ends the file at its size limit.
const LIMIT_NOTICE: &str = "… the live output of an iteration ends at 64 MiB; test_output.txt has the output of commands that ended\n";

/// The origin of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LiveSource<'a> {
    /// A command line.
    Command(&'a str),
    /// A session of the agent with this name.
    Agent(&'a str),
}

/// Appends one section to the live output. Errors end the section: a run does not depend on its
/// readers.
pub(crate) struct LiveOutput {
    file: Option<File>,
    /// The remaining bytes up to the size limit.
    room: u64,
    is_line_start: bool,
    redactor: Redactor,
}

impl LiveOutput {
    /// Returns an output that is not written anywhere.
    pub(crate) fn disabled() -> Self {
        Self {
            file: None,
            room: 0,
            is_line_start: true,
            redactor: Redactor::default(),
        }
    }

    /// Starts a section for `source` in the open iteration; without one, nothing is written.
    pub(crate) fn start(
        dir: &RunDir,
        state: &RunState,
        redactor: &Redactor,
        source: LiveSource<'_>,
    ) -> Self {
        if state.open.is_none() {
            return Self::disabled();
        }
        let path = dir.live_output(state.iteration);
        Self::append_section(&path, redactor, source).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot write the live output");
            Self::disabled()
        })
    }

    fn append_section(
        path: &Path,
        redactor: &Redactor,
        source: LiveSource<'_>,
    ) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let length = file.metadata()?.len();
        let separator = if ends_inside_line(&mut file, length)? {
            "\n"
        } else {
            ""
        };
        let mut output = Self {
            file: (length < MAX_BYTES).then_some(file),
            room: MAX_BYTES.saturating_sub(length),
            is_line_start: true,
            redactor: redactor.clone(),
        };
        let (mark, title) = match source {
            LiveSource::Command(command) => (COMMAND_HEADING, command),
            LiveSource::Agent(name) => (AGENT_HEADING, name),
        };
        let title = redactor.redact(title.trim()).replace(['\n', '\r'], " ⏎ ");
        output.append(format!("{separator}{mark}{title}\n").into_bytes());
        Ok(output)
    }

    /// Writes text of the section that is already redacted; it may start and end anywhere.
    pub(crate) fn write_redacted(&mut self, bytes: &[u8]) {
        if self.file.is_none() || bytes.is_empty() {
            return;
        }
        let mut text = Vec::with_capacity(bytes.len() + 64);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_line_start {
                text.extend_from_slice(INDENT.as_bytes());
            }
            text.extend_from_slice(line);
            self.is_line_start = line.ends_with(b"\n");
        }
        self.append(text);
    }

    /// Writes the readable form of an agent's event, if it has one.
    pub(crate) fn write_event(&mut self, event: &AgentEvent) {
        if self.file.is_none() {
            return;
        }
        if let Some(text) = event_text(event) {
            let text = format!("{}\n", self.redactor.redact(text.trim_end()));
            self.write_redacted(text.as_bytes());
        }
    }

    fn append(&mut self, mut text: Vec<u8>) {
        let Some(file) = &mut self.file else {
            return;
        };
        let length = text.len() as u64;
        let is_full = length >= self.room;
        if is_full {
            text.truncate(usize::try_from(self.room).unwrap_or(usize::MAX));
            text.push(b'\n');
            text.extend_from_slice(LIMIT_NOTICE.as_bytes());
        }
        self.room = self.room.saturating_sub(length);
        if file.write_all(&text).is_err() || is_full {
            self.file = None;
        }
    }
}

/// Removes the live output of an iteration that is being closed.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::when("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn ends_inside_line(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn event_text(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::Started { model } => model.as_ref().map(|model| format!("model {model}")),
        AgentEvent::Text { text } => Some(text.clone()),
        AgentEvent::Tool { tool, label, .. } => Some(format!("{tool} {label}")),
        AgentEvent::ToolDone { ok, .. } => Some(if *ok { "→ ok" } else { "→ failed" }.to_owned()),
        AgentEvent::Waiting { why, .. } => Some(format!("waiting: {why}")),
        AgentEvent::Acknowledged { .. } => Some("message received".to_owned()),
        AgentEvent::Usage { .. } => None,
    }
}

#[cfg(test)]
mod tests;
