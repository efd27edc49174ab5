//! The guest's words in the port's terms.

use std::io;

use ralph_core::ports::{
    Ended, Entry, EntryKind, ExecOutcome, InputSource, OutputSink, Program, SandboxError, Stream,
};
use ralph_guest::{command, files};

/// Hands output on to a sink of the port, which always takes it.
pub(super) struct Forward<'a>(pub(super) &'a mut dyn OutputSink);

impl command::Sink for Forward<'_> {
    fn has_room(&self) -> bool {
        true
    }

    async fn room(&mut self) {}

    fn chunk(&mut self, from: command::Stream, bytes: &[u8]) {
        self.0.chunk(stream(from), bytes);
    }
}

/// The input of a command: what it begins with, and what somebody gives it later.
pub(super) struct Fed<'a> {
    first: Option<Vec<u8>>,
    later: Option<&'a mut dyn InputSource>,
}

impl<'a> Fed<'a> {
    pub(super) fn new(first: Vec<u8>, later: Option<&'a mut dyn InputSource>) -> Self {
        Self {
            first: Some(first),
            later,
        }
    }
}

impl command::Source for Fed<'_> {
    async fn next(&mut self) -> Option<Vec<u8>> {
        match (self.first.take(), &mut self.later) {
            (Some(first), _) => Some(first),
            (None, Some(later)) => later.next().await,
            (None, None) => None,
        }
    }
}

/// Returns the port's name of a stream.
pub(super) fn stream(stream: command::Stream) -> Stream {
    match stream {
        command::Stream::Stdout => Stream::Stdout,
        command::Stream::Stderr => Stream::Stderr,
    }
}

/// Returns what to run.
pub(super) fn program(program: Program) -> command::Program {
    match program {
        Program::Shell(line) => command::Program::Shell(line),
        Program::Argv(argv) => command::Program::Argv(argv),
    }
}

/// Returns the facts about a command that has ended.
pub(super) fn outcome(outcome: command::Outcome) -> ExecOutcome {
    ExecOutcome {
        ended: ended(outcome.ended),
        duration: outcome.duration,
        stdout_bytes: outcome.stdout_bytes,
        stderr_bytes: outcome.stderr_bytes,
        process_limit: outcome.process_limit,
    }
}

fn ended(ended: command::Ended) -> Ended {
    match ended {
        command::Ended::Exited(code) => Ended::Exited(code),
        command::Ended::Signalled(signal) => Ended::Signalled(signal),
        command::Ended::TimedOut => Ended::TimedOut,
        command::Ended::OutputLimit => Ended::OutputLimit,
        command::Ended::DiskLimit => Ended::DiskLimit,
        command::Ended::OutOfMemory => Ended::OutOfMemory,
    }
}

/// Returns an entry of a directory; a time that cannot be told becomes the nearest that can.
pub(super) fn entry(entry: files::Entry) -> Entry {
    let nearest = if entry.modified_s < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    };
    let nanoseconds = i32::try_from(entry.modified_ns).unwrap_or(0);
    Entry {
        name: entry.name,
        kind: match entry.kind {
            files::EntryKind::File => EntryKind::File,
            files::EntryKind::Directory => EntryKind::Directory,
            files::EntryKind::Link => EntryKind::Link,
            files::EntryKind::Special => EntryKind::Special,
        },
        size: entry.size,
        modified: jiff::Timestamp::new(entry.modified_s, nanoseconds).unwrap_or(nearest),
    }
}

/// Returns the port's error for a refused file operation: `verb` as in "cannot `read` …".
pub(super) fn refused(verb: &str, path: &str, refusal: files::Refusal) -> SandboxError {
    let path = path.to_owned();
    match refusal {
        files::Refusal::Escapes => SandboxError::Escapes(path),
        files::Refusal::NotRegular => SandboxError::NotRegular(path),
        files::Refusal::NotFound => SandboxError::NotFound(path),
        files::Refusal::Io(source) => failed(verb, &path, source),
    }
}

/// Returns the port's error for a file operation that the system failed.
pub(super) fn failed(verb: &str, path: &str, source: io::Error) -> SandboxError {
    SandboxError::Io {
        doing: format!("{verb} `{path}`"),
        source,
    }
}
