//! A log line for each request: its method, its path and the status of its response.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ralph_gate::{BlockedHostNotice, Charge, GateAuditRecord, GateSink};

/// The limit of buffered bytes; further lines are dropped and counted.
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// The interval at which collected lines are written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);
/// The timeout for writing the last lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes a line for each request on a separate thread, so that a blocked output slows down no
/// request. Dropping it writes the remaining lines.
#[derive(Debug)]
pub struct RequestLog {
    queue: Arc<LogQueue>,
}

#[derive(Debug, Default)]
struct LogQueue {
    buffer: Mutex<LogBuffer>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LogBuffer {
    text: String,
    dropped: u64,
    is_closing: bool,
    is_flushed: bool,
}

impl RequestLog {
    /// Starts writing lines.
    pub fn start(output: impl Write + Send + 'static) -> Self {
        let lines = Arc::new(LogQueue::default());
        let written = lines.clone();
        thread::spawn(move || written.write_loop(output));
        Self { queue: lines }
    }
}

impl LogQueue {
    fn buffer(&self) -> MutexGuard<'_, LogBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a condition is true, up to a timeout.
    fn wait_while(&self, timeout: Duration, condition: impl Fn(&LogBuffer) -> bool) {
        let wait = self
            .changed
            .wait_timeout_while(self.buffer(), timeout, |buffer| condition(buffer));
        drop(wait);
    }

    fn write_loop(&self, mut output: impl Write) {
        loop {
            self.wait_while(Duration::MAX, |buffer| {
                buffer.text.is_empty() && !buffer.is_closing
            });
            self.wait_while(FLUSH_INTERVAL, |buffer| !buffer.is_closing);
            let mut buffer = self.buffer();
            let text = std::mem::take(&mut buffer.text);
            let dropped = std::mem::take(&mut buffer.dropped);
            let is_last = buffer.is_closing;
            drop(buffer);
            let mut written = output.write_all(text.as_bytes());
            if dropped > 0 {
                let notice = format!("ralph: {dropped} requests are not in this log\n");
                written = written.and_then(|()| output.write_all(notice.as_bytes()));
            }
            if let Err(error) = written {
                tracing::debug!(%error, "cannot write the log of requests");
            }
            if is_last {
                self.buffer().is_flushed = true;
                self.changed.notify_all();
                return;
            }
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        self.queue.buffer().is_closing = true;
        self.queue.changed.notify_all();
        self.queue
            .wait_while(CLOSE_TIMEOUT, |buffer| !buffer.is_flushed);
    }
}

impl GateSink for RequestLog {
    fn record_audit(&self, record: GateAuditRecord) {
        let mut buffer = self.queue.buffer();
        if buffer.text.len() > MAX_BUFFERED_BYTES {
            buffer.dropped += 1;
            return;
        }
        let is_first = buffer.text.is_empty();
        write_line(&mut buffer.text, &record).expect("writing to a string cannot fail");
        drop(buffer);
        if is_first {
            self.queue.changed.notify_all();
        }
    }

    fn record_blocked_host(&self, _: BlockedHostNotice) {}

    fn record_charge(&self, _: Charge) {}
}

fn write_line(text: &mut impl fmt::Write, record: &GateAuditRecord) -> fmt::Result {
    let request = record.request.as_deref().unwrap_or("-");
    match record.status {
        Some(status) => writeln!(text, "ralph: {request} {status}"),
        None => writeln!(text, "ralph: {request} -"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use ralph_core::id::RunId;
    use ralph_core::net::{EgressDecider, EgressDecision, EgressReason};
    use ralph_core::parse_value;
    use ralph_gate::{SandboxIdentity, SandboxListener};
    use ralph_guest::best_effort;

    use super::*;

    fn record(path: &str) -> GateAuditRecord {
        GateAuditRecord {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            identity: SandboxIdentity {
                run: RunId::parse("proxy").unwrap(),
                sandbox: "none".to_owned(),
            },
            listener: SandboxListener::Credentials,
            host: "api.anthropic.com".to_owned(),
            port: 443,
            request: Some(format!("POST {path}")),
            detail: None,
            decision: EgressDecision::allowed(
                EgressReason::CredentialRoute,
                EgressDecider::Credential,
            ),
            status: Some(200),
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        }
    }

    /// Accepts bytes only after it is released.
    struct StuckWriter {
        released: mpsc::Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for StuckWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            best_effort(self.released.recv());
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_does_not_block_requests() {
        let (release, released) = mpsc::channel();
        let taken = Arc::default();
        let log = RequestLog::start(StuckWriter {
            released,
            taken: Arc::clone(&taken),
        });
        let path = "x".repeat(1000);
        for _ in 0..4000 {
            log.record_audit(record(&path));
        }
        drop(release);
        drop(log);
        let (line, last) = (
            format!("ralph: POST {path} 200"),
            " requests are not in this log",
        );
        let (mut written, mut dropped) = (0, 0);
        // On a busy machine, the end of the log may exceed its timeout.
        while written + dropped < 4000 {
            thread::sleep(FLUSH_INTERVAL);
            let text = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
            let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            written = complete.lines().filter(|text| *text == line).count();
            let counts = complete.lines().filter_map(|text| {
                let count = text.strip_prefix("ralph: ")?.strip_suffix(last)?;
                parse_value::<usize>(count)
            });
            dropped = counts.sum();
        }
        let fit = MAX_BUFFERED_BYTES / line.len();
        assert!(written + dropped == 4000 && written >= fit && dropped > 0);
    }
}
