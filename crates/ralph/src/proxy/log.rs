//! A line for each request: its method, its path, the status of its answer. Nothing else.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ralph_gate::{Audit, Blocked, Charge, Sink};

/// How many bytes of lines may wait; further lines are left out and counted.
const MOST_WAITING: usize = 1 << 20;
/// How long lines are collected before they are written, all at once.
const COLLECTED: Duration = Duration::from_millis(5);
/// How long the last lines may take to be written.
const LAST_TIME: Duration = Duration::from_secs(1);

/// Writes a line for each request, in a thread of its own: an output that takes no more slows no
/// request down. Dropping it writes what is left.
#[derive(Debug)]
pub struct RequestLog {
    lines: Arc<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    left_out: u64,
    is_last: bool,
    is_written: bool,
}

impl RequestLog {
    /// Starts to write lines.
    pub fn start(output: impl Write + Send + 'static) -> Self {
        let lines = Arc::new(Lines::default());
        let written = lines.clone();
        thread::spawn(move || written.write(output));
        Self { lines }
    }
}

impl Lines {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as something is so, but no longer than a time.
    fn wait(&self, longest: Duration, is_so: impl Fn(&Waiting) -> bool) {
        let wait = self
            .changed
            .wait_timeout_while(self.waiting(), longest, |waiting| is_so(waiting));
        drop(wait);
    }

    fn write(&self, mut output: impl Write) {
        loop {
            self.wait(Duration::MAX, |waiting| {
                waiting.text.is_empty() && !waiting.is_last
            });
            self.wait(COLLECTED, |waiting| !waiting.is_last);
            let mut waiting = self.waiting();
            let text = std::mem::take(&mut waiting.text);
            let left_out = std::mem::take(&mut waiting.left_out);
            let is_last = waiting.is_last;
            drop(waiting);
            // There is nobody left to tell when this does not work.
            output.write_all(text.as_bytes()).ok();
            if left_out > 0 {
                let words = format!("ralph: {left_out} requests are not in this log\n");
                output.write_all(words.as_bytes()).ok();
            }
            if is_last {
                self.waiting().is_written = true;
                self.changed.notify_all();
                return;
            }
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        self.lines.waiting().is_last = true;
        self.lines.changed.notify_all();
        self.lines.wait(LAST_TIME, |waiting| !waiting.is_written);
    }
}

impl Sink for RequestLog {
    fn audit(&self, record: Audit) {
        let mut waiting = self.lines.waiting();
        if waiting.text.len() > MOST_WAITING {
            waiting.left_out += 1;
            return;
        }
        let is_first = waiting.text.is_empty();
        // Writing to a String cannot fail.
        write_line(&mut waiting.text, &record).ok();
        drop(waiting);
        if is_first {
            self.lines.changed.notify_all();
        }
    }

    fn blocked(&self, _: Blocked) {}

    fn charged(&self, _: Charge) {}
}

fn write_line(text: &mut impl fmt::Write, record: &Audit) -> fmt::Result {
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
    use ralph_core::net::{Decider, Decision, Reason};
    use ralph_gate::{Identity, Listener};

    use super::*;

    fn record(path: &str) -> Audit {
        Audit {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            identity: Identity {
                run: RunId::parse("proxy").unwrap(),
                sandbox: "none".to_owned(),
            },
            listener: Listener::Credentials,
            host: "api.anthropic.com".to_owned(),
            port: 443,
            request: Some(format!("POST {path}")),
            detail: None,
            decision: Decision::allowed(Reason::CredentialRoute, Decider::Credential),
            status: Some(200),
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        }
    }

    /// Takes bytes only once it is told to.
    struct Stuck {
        go_on: mpsc::Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.go_on.recv().ok();
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_output_that_takes_nothing_holds_up_nobody() {
        let (tell, go_on) = mpsc::channel();
        let taken = Arc::default();
        let log = RequestLog::start(Stuck {
            go_on,
            taken: Arc::clone(&taken),
        });
        let path = "x".repeat(1000);
        for _ in 0..4000 {
            log.audit(record(&path));
        }
        drop(tell);
        drop(log);
        let (line, last) = (
            format!("ralph: POST {path} 200"),
            " requests are not in this log",
        );
        let (mut written, mut left_out) = (0, 0);
        // On a busy machine the end of the log may come after the time that it has.
        while written + left_out < 4000 {
            thread::sleep(COLLECTED);
            let text = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
            let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            written = complete.lines().filter(|text| *text == line).count();
            let counts = complete.lines().filter_map(|text| {
                let count = text.strip_prefix("ralph: ")?.strip_suffix(last)?;
                count.parse::<usize>().ok()
            });
            left_out = counts.sum();
        }
        let fit = MOST_WAITING / line.len();
        assert!(written + left_out == 4000 && written >= fit && left_out > 0);
    }
}
