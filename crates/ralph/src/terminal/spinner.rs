//! The output of a view: text, and below it on a terminal a spinner during long operations.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ralph_app::format;

use super::stdout_style::Width;
use super::styled_line::{Colour, StyledLine, Tone};
use super::width;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const REDRAW: Duration = Duration::from_millis(100);
const CLEAR: &str = "\r\u{1b}[2K";
/// Clears the line above.
const CLEAR_ABOVE: &str = "\u{1b}[1A\u{1b}[2K";

/// Prints text, with or without a spinner below it.
pub(super) struct Screen {
    shared: Arc<Mutex<SpinnerState>>,
    spinner: Option<SpinnerThread>,
}

struct SpinnerState {
    out: Box<dyn Write + Send>,
    width: Width,
    /// The label of the operation in progress, and its start.
    operation: Option<(String, Instant)>,
    /// The latest output of the operation in progress.
    latest_output: String,
    /// The line above the spinner; not drawn if it is empty.
    status: String,
    /// The number of drawn lines.
    drawn: usize,
    frame: usize,
}

/// The thread that redraws; dropping the sender ends it.
struct SpinnerThread {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Screen {
    /// Creates a screen without a spinner.
    pub(super) fn without_spinner(out: Box<dyn Write + Send>) -> Self {
        let shared = SpinnerState {
            out,
            width: Width::Fixed(80),
            operation: None,
            latest_output: String::new(),
            status: String::new(),
            drawn: 0,
            frame: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            spinner: None,
        }
    }

    /// Creates a screen with a spinner below the text during long operations.
    pub(super) fn with_spinner(out: Box<dyn Write + Send>, width: Width) -> Self {
        let mut screen = Self::without_spinner(out);
        screen.lock().width = width;
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::clone(&screen.shared);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                lock(&shared).draw();
            }
        });
        screen.spinner = Some(SpinnerThread { stop, thread });
        screen
    }

    /// Writes text in place of the spinner, which continues below it with the new label. Returns whether
    /// another operation starts.
    pub(super) fn write(&self, text: &str, label: Option<String>) -> bool {
        let mut shared = self.lock();
        shared.write(text);
        let is_other = shared.operation.as_ref().map(|(current, _)| current) != label.as_ref();
        if is_other {
            shared.operation = label.map(|label| (label, Instant::now()));
            shared.latest_output.clear();
        }
        is_other
    }

    /// Sets how long the operation in progress has been running.
    pub(super) fn set_operation_age(&self, age: Duration) {
        let start = Instant::now().checked_sub(age);
        if let (Some((_, since)), Some(start)) = (&mut self.lock().operation, start) {
            *since = start;
        }
    }

    /// Writes text above the spinner, which does not change.
    pub(super) fn write_above(&self, text: &str) {
        let mut shared = self.lock();
        let was_drawn = shared.drawn > 0;
        shared.write(text);
        if was_drawn {
            // Without this, output that comes faster than the thread redraws would hide the spinner.
            shared.draw();
        }
    }

    /// Shows a line of output next to the spinner.
    pub(super) fn set_latest_output(&self, line: String) {
        self.lock().latest_output = line;
    }

    /// Sets the line above the spinner.
    pub(super) fn set_status(&self, status: String) {
        self.lock().status = status;
    }

    fn lock(&self) -> MutexGuard<'_, SpinnerState> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<SpinnerState>) -> MutexGuard<'_, SpinnerState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(SpinnerThread { stop, thread }) = self.spinner.take() {
            drop(stop);
            if thread.join().is_err() {
                tracing::warn!("the thread of the spinner has panicked");
            }
        }
        self.lock().clear();
    }
}

impl SpinnerState {
    fn write(&mut self, text: &str) {
        self.clear();
        self.print(text);
    }

    /// Writes text. A run continues if its output can no longer be written.
    fn print(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        if let Err(error) = written.and_then(|()| self.out.flush()) {
            tracing::debug!(%error, "cannot write to the terminal");
        }
    }

    fn clear(&mut self) {
        if self.drawn > 0 {
            self.print(&clear_lines(self.drawn));
            self.drawn = 0;
        }
    }

    fn draw(&mut self) {
        let Some((label, since)) = &self.operation else {
            return;
        };
        // One column stays free: a full line would wrap, and clearing would miss its first half.
        let columns = self.width.columns().saturating_sub(1);
        let elapsed = match since.elapsed().as_secs() {
            seconds @ 0..60 => format!("{seconds}s"),
            seconds => format::duration(Duration::from_secs(seconds)),
        };
        let mut room = columns.saturating_sub(elapsed.len() + 4);
        if !self.latest_output.is_empty() {
            // A long command line leaves half of the line to its output.
            room = room.min(columns / 2);
        }
        let label = width::truncate(label, room);
        let output = match self.latest_output.as_str() {
            "" => String::new(),
            output => format!("  {output}"),
        };
        let line = StyledLine::new()
            .span(Tone::Accent, FRAMES[self.frame % FRAMES.len()])
            .plain(&format!(" {label} "))
            .quiet(&elapsed)
            .quiet(&output)
            .cut()
            .render(Colour::Used, Some(columns));
        self.frame += 1;
        let clear = clear_lines(self.drawn);
        if self.status.is_empty() {
            self.print(&format!("{clear}{line}"));
            self.drawn = 1;
        } else {
            let status = StyledLine::from_text("  ").quiet(&self.status).cut();
            let status = status.render(Colour::Used, Some(columns));
            self.print(&format!("{clear}{status}\n{line}"));
            self.drawn = 2;
        }
    }
}

/// Returns the sequence that clears the cursor's line and the drawn lines above it.
fn clear_lines(drawn: usize) -> String {
    format!("{CLEAR}{}", CLEAR_ABOVE.repeat(drawn.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the output for the test.
    #[derive(Clone, Default)]
    struct SpinnerOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for SpinnerOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl SpinnerOutput {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn text_replaces_the_spinner() {
        let output = SpinnerOutput::default();
        let screen = Screen::without_spinner(Box::new(output.clone()));
        screen.write("one\n", Some("asking the model".into()));
        screen.lock().draw();
        screen.write("two\n", None);
        screen.lock().draw();
        drop(screen);
        let expected = format!(
            "one\n{CLEAR}\u{1b}[36m⠋\u{1b}[0m asking the model \u{1b}[2m0s\u{1b}[0m{CLEAR}two\n"
        );
        assert_eq!(output.text(), expected);
    }

    #[test]
    fn an_earlier_operation_shows_its_whole_duration() {
        let output = SpinnerOutput::default();
        let screen = Screen::without_spinner(Box::new(output.clone()));
        assert!(screen.write("", Some("make".into())));
        assert!(!screen.write("", Some("make".into())));
        screen.set_operation_age(Duration::from_hours(1));
        screen.lock().draw();
        assert!(
            output.text().contains("make \u{1b}[2m1h 00m"),
            "{}",
            output.text()
        );
    }

    #[test]
    fn output_is_shown_beside_its_operation_only() {
        let output = SpinnerOutput::default();
        let screen = Screen::without_spinner(Box::new(output.clone()));
        screen.write("", Some("make".into()));
        screen.set_latest_output("12 \u{1b}[31mtests passed".into());
        screen.lock().draw();
        screen.write_above("above\n");
        screen.write("", Some("push".into()));
        screen.lock().draw();
        drop(screen);
        let spinner = |frame, label, rest| {
            format!("{CLEAR}\u{1b}[36m{frame}\u{1b}[0m {label} \u{1b}[2m0s\u{1b}[0m{rest}{CLEAR}")
        };
        let shown = "\u{1b}[2m  12 tests passed\u{1b}[0m";
        let first = spinner("⠋", "make", shown);
        let again = spinner("⠙", "make", shown);
        let second = spinner("⠹", "push", "");
        assert_eq!(output.text(), format!("{first}above\n{again}{second}"));
    }

    #[test]
    fn the_status_is_drawn_and_cleared_with_the_spinner() {
        let output = SpinnerOutput::default();
        let screen = Screen::without_spinner(Box::new(output.clone()));
        screen.set_status("boxes 1/2".into());
        screen.write("", Some("make".into()));
        screen.lock().draw();
        screen.write("done\n", None);
        drop(screen);
        let drawn = "\u{1b}[2mboxes 1/2\u{1b}[0m\n\u{1b}[36m⠋\u{1b}[0m make \u{1b}[2m0s\u{1b}[0m";
        let expected = format!("{CLEAR}  {drawn}{CLEAR}{CLEAR_ABOVE}done\n");
        assert_eq!(output.text(), expected);
    }

    #[test]
    fn dropping_the_screen_stops_the_thread_and_clears_the_line() {
        let output = SpinnerOutput::default();
        let screen = Screen::with_spinner(Box::new(output.clone()), Width::Fixed(20));
        screen.write("", Some("a very long label that does not fit".into()));
        while !output.text().contains('⠋') {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(screen);
        let text = output.text();
        assert!(text.ends_with(CLEAR), "{text:?}");
        assert!(text.contains("a very long …"), "{text:?}");
    }
}
