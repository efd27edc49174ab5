//! Converts guest types to the port's types.

use std::io;

use ralph_core::ports::{
    ExecOutcome, ExecProgram, ExecStatus, InputSource, OutputSink, OutputStream, SandboxEntry,
    SandboxEntryKind, SandboxError,
};
use ralph_guest::{command, files};

/// Forwards output to the port's sink, which never blocks.
pub(super) struct SinkAdapter<'a>(pub(super) &'a mut dyn OutputSink);

impl command::CommandOutputSink for SinkAdapter<'_> {
    fn has_room(&self) -> bool {
        true
    }

    async fn wait_for_room(&mut self) {}

    fn write_chunk(&mut self, from: command::CommandStream, bytes: &[u8]) {
        self.0.chunk(stream(from), bytes);
    }
}

/// The input of a command: the initial bytes, and those sent later.
pub(super) struct CommandInput<'a> {
    first: Option<Vec<u8>>,
    later: Option<&'a mut dyn InputSource>,
}

impl<'a> CommandInput<'a> {
    pub(super) fn new(first: Vec<u8>, later: Option<&'a mut dyn InputSource>) -> Self {
        Self {
            first: Some(first),
            later,
        }
    }
}

impl command::CommandInputSource for CommandInput<'_> {
    async fn next_chunk(&mut self) -> Option<Vec<u8>> {
        match (self.first.take(), &mut self.later) {
            (Some(first), _) => Some(first),
            (None, Some(later)) => later.next().await,
            (None, None) => None,
        }
    }
}

/// Converts a stream name.
pub(super) fn stream(stream: command::CommandStream) -> OutputStream {
    match stream {
        command::CommandStream::Stdout => OutputStream::Stdout,
        command::CommandStream::Stderr => OutputStream::Stderr,
    }
}

/// Converts a command line.
pub(super) fn program(program: ExecProgram) -> command::CommandLine {
    match program {
        ExecProgram::Shell(line) => command::CommandLine::Shell(line),
        ExecProgram::Argv(argv) => command::CommandLine::Argv(argv),
    }
}

/// Converts the outcome of a command.
pub(super) fn outcome(outcome: command::CommandOutcome) -> ExecOutcome {
    ExecOutcome {
        ended: ended(outcome.ended),
        duration: outcome.duration,
        stdout_bytes: outcome.stdout_bytes,
        stderr_bytes: outcome.stderr_bytes,
        process_limit: outcome.process_limit,
    }
}

fn ended(ended: command::CommandEnd) -> ExecStatus {
    match ended {
        command::CommandEnd::Exited(code) => ExecStatus::Exited(code),
        command::CommandEnd::Signalled(signal) => ExecStatus::Signalled(signal),
        command::CommandEnd::TimedOut => ExecStatus::TimedOut,
        command::CommandEnd::OutputLimit => ExecStatus::OutputLimit,
        command::CommandEnd::DiskLimit => ExecStatus::DiskLimit,
        command::CommandEnd::OutOfMemory => ExecStatus::OutOfMemory,
    }
}

/// Converts a directory entry; a timestamp out of range is clamped.
pub(super) fn entry(entry: files::GuestDirEntry) -> SandboxEntry {
    let nearest = if entry.modified_s < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    };
    let nanoseconds = i32::try_from(entry.modified_ns).unwrap_or(0);
    SandboxEntry {
        name: entry.name,
        kind: match entry.kind {
            files::GuestEntryKind::File => SandboxEntryKind::File,
            files::GuestEntryKind::Directory => SandboxEntryKind::Directory,
            files::GuestEntryKind::Link => SandboxEntryKind::Link,
            files::GuestEntryKind::Special => SandboxEntryKind::Special,
        },
        size: entry.size,
        modified: jiff::Timestamp::new(entry.modified_s, nanoseconds).unwrap_or(nearest),
    }
}

/// Returns the port's error for a rejected file operation: `verb` as in "cannot read …".
pub(super) fn file_error(verb: &str, path: &str, error: files::ConfinedFileError) -> SandboxError {
    let path = path.to_owned();
    match error {
        files::ConfinedFileError::Escapes => SandboxError::Escapes(path),
        files::ConfinedFileError::NotRegular => SandboxError::NotRegular(path),
        files::ConfinedFileError::NotFound => SandboxError::NotFound(path),
        files::ConfinedFileError::Io(source) => io_failure(verb, &path, source),
    }
}

/// Returns the port's error for a file operation that failed with an I/O error.
pub(super) fn io_failure(verb: &str, path: &str, source: io::Error) -> SandboxError {
    SandboxError::Io {
        doing: format!("{verb} `{path}`"),
        source,
    }
}
