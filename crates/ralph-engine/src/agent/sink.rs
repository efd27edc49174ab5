//! Turns the output of an agent into events, line by line, in bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ralph_core::ports::{AgentEvent, AgentReader, Clock, OutputSink, OutputStream};
use tokio::sync::mpsc::UnboundedSender;

use super::transcript::TranscriptWriter;
use crate::capture::Capture;
use crate::controls::TimedLine;
use crate::durable::StoreError;
use crate::live_output::LiveOutput;

/// The longest line that is read; a longer one is truncated.
const MAX_LINE: usize = 1 << 20;
/// The most tool uses of one session in the activity log.
const MAX_TOOLS: usize = 1_000;
/// The most events of one session that are recorded, apart from acknowledgements. The reader still
/// parses the rest.
const MAX_EVENTS: usize = 5_000;

/// The observed activity of a running agent.
pub(super) struct AgentActivity {
    clock: Arc<dyn Clock>,
    started: Duration,
    /// Milliseconds from the start to the last output, or to the end of an expected silence; 0
    /// before that.
    last_activity_ms: AtomicU64,
    /// Milliseconds in which the agent was frozen.
    frozen_ms: AtomicU64,
    done: AtomicBool,
}

impl AgentActivity {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            started: clock.monotonic(),
            clock,
            last_activity_ms: AtomicU64::new(0),
            frozen_ms: AtomicU64::new(0),
            done: AtomicBool::new(false),
        })
    }

    /// Returns the running time since the start of the agent, without the time in which this
    /// process was suspended or the agent was frozen.
    pub(super) fn elapsed(&self) -> Duration {
        let frozen = Duration::from_millis(self.frozen_ms.load(Ordering::Relaxed));
        let since = self.clock.monotonic().saturating_sub(self.started);
        since.saturating_sub(frozen)
    }

    /// Records that the agent was frozen for this long.
    pub(super) fn add_frozen(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.frozen_ms.fetch_add(time, Ordering::Relaxed);
    }

    /// Records that the agent is alive.
    pub(super) fn record_activity(&self) {
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_activity_ms
            .fetch_max(now.max(1), Ordering::Relaxed);
    }

    /// Extends the expected silence: the provider asked the agent to wait.
    fn allow_silence(&self, wait: Duration) {
        let until = self.elapsed().saturating_add(wait);
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.last_activity_ms.fetch_max(until, Ordering::Relaxed);
    }

    /// Returns the length of the unexpected silence, and whether there was any output.
    pub(super) fn silence(&self) -> (Duration, bool) {
        let last = self.last_activity_ms.load(Ordering::Relaxed);
        let since = self.elapsed().saturating_sub(Duration::from_millis(last));
        (since, last > 0)
    }

    /// Returns whether the agent is done.
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// Receives the output of an agent.
pub(super) struct AgentSink {
    pub(super) reader: Box<dyn AgentReader>,
    pub(super) capture: Capture,
    live: LiveOutput,
    transcript: Option<TranscriptWriter>,
    activity: Arc<AgentActivity>,
    line: Vec<u8>,
    events: UnboundedSender<AgentEvent>,
    sent_events: usize,
    /// The used tools, in the form of the activity log.
    pub(super) tools: Vec<TimedLine>,
}

impl AgentSink {
    pub(super) fn new(
        reader: Box<dyn AgentReader>,
        capture: Capture,
        activity: Arc<AgentActivity>,
        events: UnboundedSender<AgentEvent>,
    ) -> Self {
        Self {
            reader,
            capture,
            live: LiveOutput::disabled(),
            transcript: None,
            activity,
            line: Vec::new(),
            events,
            sent_events: 0,
            tools: Vec::new(),
        }
    }

    /// Also writes the events to a section of the live output.
    pub(super) fn with_live(mut self, live: LiveOutput) -> Self {
        self.live = live;
        self
    }

    /// Also stores the standard output in the transcript.
    pub(super) fn with_transcript(mut self, transcript: TranscriptWriter) -> Self {
        self.transcript = Some(transcript);
        self
    }

    /// Ends the transcript and returns the error that ended its writing, if any.
    pub(super) fn finish_transcript(&mut self) -> Result<(), StoreError> {
        self.transcript
            .take()
            .map_or(Ok(()), TranscriptWriter::finish)
    }

    fn read_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        for event in self.reader.parse_line(line.trim_end_matches('\r')) {
            self.live.write_event(&event);
            if let AgentEvent::Waiting {
                wait: Some(wait), ..
            } = &event
            {
                self.activity.allow_silence(*wait);
            }
            if let AgentEvent::Tool { tool, label, .. } = &event
                && self.tools.len() < MAX_TOOLS
            {
                self.tools.push(TimedLine {
                    at: self.activity.clock.now(),
                    text: format!("{tool} {label}"),
                });
            }
            // An acknowledgement beyond the limit is recorded, too: there are as few as messages.
            let is_acknowledgement = matches!(event, AgentEvent::Acknowledged { .. });
            if self.sent_events < MAX_EVENTS
                || (is_acknowledgement && self.sent_events < 2 * MAX_EVENTS)
            {
                self.sent_events += 1;
                if self.events.send(event).is_err() {
                    tracing::debug!("the session ended before an event of the agent was recorded");
                }
            }
        }
        // Not final: a message that arrives with the last output makes the agent continue.
        let is_done = self.reader.is_done();
        self.activity.done.store(is_done, Ordering::Relaxed);
    }

    /// Parses the incomplete last line.
    pub(super) fn flush(&mut self) {
        if !self.line.is_empty() {
            self.read_line();
        }
    }
}

impl OutputSink for AgentSink {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.activity.record_activity();
        self.capture.chunk(stream, bytes);
        if stream == OutputStream::Stderr {
            return;
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.write(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend(&text[..text.len().min(room)]);
            if ends {
                self.read_line();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::ports::{AgentEnd, AgentReport, ExecStatus};
    use ralph_core::secret::Redactor;
    use ralph_test::TestClock;

    use super::*;

    /// Reads each line as the start of a tool call.
    struct ToolLineReader;

    impl AgentReader for ToolLineReader {
        fn parse_line(&mut self, line: &str) -> Vec<AgentEvent> {
            vec![AgentEvent::Tool {
                id: line.into(),
                tool: "Bash".into(),
                label: line.into(),
            }]
        }

        fn is_done(&self) -> bool {
            false
        }

        fn finish(&mut self, _: ExecStatus, _: &str) -> (AgentEnd, AgentReport) {
            (AgentEnd::Finished, AgentReport::default())
        }
    }

    #[test]
    fn a_tool_has_the_time_of_its_start() {
        let clock = TestClock::at("2026-03-01T08:00:00Z");
        let (sender, _events) = tokio::sync::mpsc::unbounded_channel();
        let capture = Capture::new(&Redactor::new(Vec::new()));
        let activity = AgentActivity::new(clock.clone());
        let mut sink = AgentSink::new(Box::new(ToolLineReader), capture, activity, sender);
        sink.chunk(OutputStream::Stdout, b"make\n");
        clock.advance(Duration::from_secs(90));
        sink.chunk(OutputStream::Stdout, b"make test\n");
        let lines: Vec<String> = sink
            .tools
            .iter()
            .map(|line| format!("{} {}", line.at, line.text))
            .collect();
        assert_eq!(
            lines,
            [
                "2026-03-01T08:00:00Z Bash make",
                "2026-03-01T08:01:30Z Bash make test"
            ]
        );
    }
}
