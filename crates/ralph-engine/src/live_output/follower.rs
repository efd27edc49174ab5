//! Reads the live output of a run while another process writes it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;

use super::{AGENT_HEADING, COMMAND_HEADING, INDENT, MAX_BYTES};
use crate::store::RunDir;

/// The longest incomplete line that is buffered; a longer one is returned in parts.
const MAX_LINE_BYTES: usize = 64 << 10;
/// The part of a long output with which a follower starts.
const START_BYTES: u64 = 4 << 20;

/// The meaning of a line of the live output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveLineKind {
    /// The heading of a command: its command line.
    Command,
    /// The heading of an agent session: the agent's name.
    Agent,
    /// Output of a command.
    CommandOutput,
    /// An action or a text of an agent. The journal also has an `agent_did` record for it.
    AgentOutput,
    /// A remark about the live output itself.
    Notice,
}

/// A line of the live output. The text is redacted, but not safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveLine {
    pub kind: LiveLineKind,
    /// The text without the file's markers.
    pub text: String,
}

/// A position in the live output of a run, across its iterations.
///
/// The file stays open after it is removed, so the last lines of an iteration are not lost. Only an
/// iteration that starts and ends between two calls is missed.
pub struct LiveFollower {
    dir: RunDir,
    file: Option<File>,
    /// Bytes of a line that has not ended.
    pending: Vec<u8>,
    /// The part after a carriage return continues a line and has no marks.
    is_line_start: bool,
    section: LiveLineKind,
}

impl LiveFollower {
    /// Starts with the open iteration's live output; if it is long, near its end.
    pub fn new(dir: &RunDir) -> Self {
        Self {
            dir: dir.clone(),
            file: None,
            pending: Vec::new(),
            is_line_start: true,
            section: LiveLineKind::CommandOutput,
        }
    }

    /// Returns the lines that were completed since the last call. A carriage return completes a
    /// line, too: progress bars overwrite theirs.
    pub fn read_new(&mut self) -> io::Result<Vec<LiveLine>> {
        let mut lines = Vec::new();
        self.read_file(&mut lines)?;
        let mut next = self.newer_file()?;
        if let (None, Some(first)) = (&self.file, &mut next) {
            skip_beginning(first)?;
        }
        if next.is_some() {
            self.end_line(&mut lines);
            self.is_line_start = true;
            self.section = LiveLineKind::CommandOutput;
            self.file = next;
            self.read_file(&mut lines)?;
        }
        Ok(lines)
    }

    /// Returns the line that has not ended; the rest of it never follows if its writer is gone.
    pub fn take_incomplete_line(&mut self) -> Option<LiveLine> {
        let mut lines = Vec::new();
        self.end_line(&mut lines);
        self.is_line_start = true;
        lines.pop()
    }

    fn read_file(&mut self, lines: &mut Vec<LiveLine>) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        file.take(2 * MAX_BYTES).read_to_end(&mut bytes)?;
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            self.pending.extend_from_slice(part);
            let ends = part.ends_with(b"\n") || part.ends_with(b"\r");
            if ends || self.pending.len() >= MAX_LINE_BYTES {
                self.end_line(lines);
                self.is_line_start = part.ends_with(b"\n");
            }
        }
        Ok(())
    }

    fn end_line(&mut self, lines: &mut Vec<LiveLine>) {
        let bytes = std::mem::take(&mut self.pending);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let (kind, text) = if self.is_line_start {
            self.parse(text)
        } else {
            (self.section, text)
        };
        let continues_line = !self.is_line_start;
        if text.is_empty() && (bytes.is_empty() || continues_line) {
            return;
        }
        lines.push(LiveLine {
            kind,
            text: text.to_owned(),
        });
    }

    fn parse<'t>(&mut self, line: &'t str) -> (LiveLineKind, &'t str) {
        if let Some(text) = line.strip_prefix(INDENT) {
            return (self.section, text);
        }
        if let Some(command) = line.strip_prefix(COMMAND_HEADING) {
            self.section = LiveLineKind::CommandOutput;
            return (LiveLineKind::Command, command);
        }
        if let Some(agent) = line.strip_prefix(AGENT_HEADING) {
            self.section = LiveLineKind::AgentOutput;
            return (LiveLineKind::Agent, agent);
        }
        (LiveLineKind::Notice, line)
    }

    /// Opens the live output of the open iteration if it is another file than the one that is read.
    fn newer_file(&self) -> io::Result<Option<File>> {
        let Some(iteration) = self.dir.newest_open_iteration()? else {
            return Ok(None);
        };
        let file = match File::open(self.dir.live_output(iteration)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_known = match &self.file {
            Some(known) => {
                let (known, found) = (known.metadata()?, file.metadata()?);
                (known.dev(), known.ino()) == (found.dev(), found.ino())
            }
            None => false,
        };
        Ok((!is_known).then_some(file))
    }
}

/// Moves the position in a long output to a line near its end.
fn skip_beginning(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length <= START_BYTES {
        return Ok(());
    }
    let start = length - START_BYTES;
    file.seek(SeekFrom::Start(start))?;
    let mut line = Vec::new();
    BufReader::new(file.take(START_BYTES)).read_until(b'\n', &mut line)?;
    file.seek(SeekFrom::Start(start + line.len() as u64))?;
    Ok(())
}
