//! Captures a bounded part of a command's output, with exact counts, redacted on arrival.

use std::collections::VecDeque;

use ralph_core::gutter::{self, OutputProblems};
use ralph_core::id::Digest;
use ralph_core::ports::{ExecOutcome, ExecStatus, OutputSink, OutputStream};
use ralph_core::secret::{RedactStream, Redactor};
use ralph_core::verdict::{self, CheckResult};

use crate::journal::millis;
use crate::live_output::LiveOutput;

/// How many bytes of the beginning are captured.
pub(crate) const HEAD_BYTES: usize = 256 << 10;
/// How many bytes of the end are captured.
pub(crate) const TAIL_BYTES: usize = 1 << 20;

/// Captures a bounded part of both streams, and their order.
pub(crate) struct Capture {
    stdout: HeadTailBuffer,
    stderr: HeadTailBuffer,
    both: HeadTailBuffer,
    redact_stdout: RedactStream,
    redact_stderr: RedactStream,
    redacted: Vec<u8>,
    live: LiveOutput,
}

impl Capture {
    /// Creates an empty capture.
    pub(crate) fn new(redactor: &Redactor) -> Self {
        Self {
            stdout: HeadTailBuffer::default(),
            stderr: HeadTailBuffer::default(),
            both: HeadTailBuffer::default(),
            redact_stdout: redactor.stream(),
            redact_stderr: redactor.stream(),
            redacted: Vec::new(),
            live: LiveOutput::disabled(),
        }
    }

    /// Copies the output to a section of the live output, as it arrives.
    pub(crate) fn with_live(mut self, live: LiveOutput) -> Self {
        self.live = live;
        self
    }

    /// Returns the captured part of standard error so far: its beginning and its end.
    pub(crate) fn captured_stderr(&self) -> String {
        self.stderr.clone().into_text()
    }

    /// Ends both streams and returns the captured output.
    pub(crate) fn finish(mut self) -> Captured {
        self.redacted.clear();
        self.redact_stdout.finish(&mut self.redacted);
        self.stdout.push(&self.redacted);
        self.both.push(&self.redacted);
        self.live.write_redacted(&self.redacted);
        self.redacted.clear();
        self.redact_stderr.finish(&mut self.redacted);
        self.stderr.push(&self.redacted);
        self.both.push(&self.redacted);
        self.live.write_redacted(&self.redacted);
        Captured {
            is_truncated: self.both.dropped > 0,
            stdout: self.stdout.into_text(),
            stderr: self.stderr.into_text(),
            both: self.both.into_text(),
        }
    }
}

impl OutputSink for Capture {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.redacted.clear();
        let (redact, buffer) = match stream {
            OutputStream::Stdout => (&mut self.redact_stdout, &mut self.stdout),
            OutputStream::Stderr => (&mut self.redact_stderr, &mut self.stderr),
        };
        redact.push(bytes, &mut self.redacted);
        buffer.push(&self.redacted);
        self.both.push(&self.redacted);
        self.live.write_redacted(&self.redacted);
    }
}

/// The captured output of a command, as text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captured {
    pub stdout: String,
    pub stderr: String,
    /// Both streams, in order of arrival.
    pub both: String,
    /// Whether a part in the middle was left out.
    pub is_truncated: bool,
}

impl Captured {
    /// Returns the signature of a failure; none if the command did not fail.
    pub(crate) fn failure_signature(&self, command: &str, ended: ExecStatus) -> Option<Digest> {
        (!ended.is_success()).then(|| self.signature(command, ended))
    }

    /// Returns the problems that a command reported; none if it did not fail.
    pub(crate) fn problems(&self, ended: ExecStatus) -> OutputProblems {
        if ended.is_success() {
            return OutputProblems::default();
        }
        OutputProblems::find(&self.stderr, &self.stdout)
    }

    fn signature(&self, command: &str, ended: ExecStatus) -> Digest {
        gutter::signature(command, ended.exit_code(), &self.stderr, &self.stdout)
    }

    /// Returns the result of a check that printed this.
    pub(crate) fn to_check_result(
        &self,
        name: impl Into<String>,
        command: &str,
        outcome: &ExecOutcome,
    ) -> CheckResult {
        let mut check = CheckResult {
            name: name.into(),
            command: command.to_owned(),
            ended: outcome.ended,
            duration_ms: millis(outcome.duration),
            tests: verdict::count_tests(&self.both),
            failure: None,
            problems: OutputProblems::default(),
        };
        if !check.is_green() {
            check.failure = Some(self.signature(command, outcome.ended));
            check.problems = OutputProblems::find(&self.stderr, &self.stdout);
        }
        check
    }

    /// Returns the last non-empty lines of both streams, at most `lines` and 2 KiB.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let mut start = self.both.len().saturating_sub(2048);
        while !self.both.is_char_boundary(start) {
            start += 1;
        }
        let kept: Vec<&str> = self.both[start..]
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        kept[kept.len().saturating_sub(lines)..].join("\n")
    }
}

/// The first and the last bytes of a stream.
#[derive(Clone, Default)]
struct HeadTailBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl HeadTailBuffer {
    fn push(&mut self, mut bytes: &[u8]) {
        let room = HEAD_BYTES - self.head.len();
        if room > 0 {
            let (first, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(first);
            bytes = rest;
        }
        if bytes.len() > TAIL_BYTES {
            let surplus = bytes.len() - TAIL_BYTES;
            self.dropped += (surplus + self.tail.len()) as u64;
            self.tail.clear();
            bytes = &bytes[surplus..];
        }
        let surplus = (self.tail.len() + bytes.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.dropped += surplus as u64;
        self.tail.extend(bytes);
    }

    fn into_text(mut self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(self.tail.make_contiguous());
        if self.dropped == 0 {
            return format!("{head}{tail}");
        }
        format!("{head}\n… {} bytes left out …\n{tail}", self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_beginning_its_end_and_the_count() {
        let mut kept = HeadTailBuffer::default();
        kept.push(b"begin");
        for _ in 0..100 {
            kept.push(&vec![b'x'; 100_000]);
        }
        kept.push(b"end");
        let dropped = 5 + 10_000_000 + 3 - HEAD_BYTES - TAIL_BYTES;
        let text = kept.into_text();
        assert!(text.starts_with("beginxxx") && text.ends_with("xxxend"));
        assert!(text.contains(&format!("… {dropped} bytes left out …")));
        let mut once = HeadTailBuffer::default();
        once.push(&vec![b'y'; 5 << 20]);
        assert_eq!(once.head.len() + once.tail.len(), HEAD_BYTES + TAIL_BYTES);
    }

    #[test]
    fn short_output_is_kept_whole_and_in_order() {
        let mut capture = Capture::new(&Redactor::default());
        capture.chunk(OutputStream::Stdout, b"one\n");
        capture.chunk(OutputStream::Stderr, b"two\n");
        capture.chunk(OutputStream::Stdout, b"three\n");
        let kept = capture.finish();
        assert_eq!(kept.stdout, "one\nthree\n");
        assert_eq!(kept.stderr, "two\n");
        assert_eq!(kept.both, "one\ntwo\nthree\n");
        assert_eq!(kept.tail(2), "two\nthree");
        assert!(!kept.is_truncated);
        let mut capture = Capture::new(&Redactor::default());
        capture.chunk(
            OutputStream::Stdout,
            &vec![b'x'; HEAD_BYTES + TAIL_BYTES + 100_000],
        );
        assert!(capture.finish().is_truncated);
    }
}
