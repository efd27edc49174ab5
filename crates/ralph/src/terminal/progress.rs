//! Shows long operations other than runs: the current step, its output and its result.

use std::io::Write;

use super::spinner::Screen;
use super::styled_line::{Colour, StyledLine};
use super::view::{OutputMode, SpinnerVisibility};

/// Shows an operation in progress.
pub struct ProgressDisplay {
    screen: Screen,
    mode: OutputMode,
    step: Option<String>,
}

impl ProgressDisplay {
    /// Creates a display that writes to `out`. Ignores errors of `out`: the operation continues
    /// without output.
    pub fn new(out: Box<dyn Write + Send>, mode: OutputMode) -> Self {
        let screen = match mode {
            OutputMode::Rich(width, SpinnerVisibility::Shown) => Screen::with_spinner(out, width),
            OutputMode::Rich(_, SpinnerVisibility::Hidden)
            | OutputMode::Uncoloured(_)
            | OutputMode::Plain
            | OutputMode::Json => Screen::without_spinner(out),
        };
        Self {
            screen,
            mode,
            step: None,
        }
    }

    /// Prints a permanent line.
    pub fn line(&self, line: &StyledLine) {
        let (colour, columns) = match self.mode {
            OutputMode::Rich(width, _) => (Colour::Used, Some(width.columns())),
            OutputMode::Uncoloured(width) => (Colour::Unused, Some(width.columns())),
            OutputMode::Plain => (Colour::Unused, None),
            OutputMode::Json => return,
        };
        let text = line.render(colour, columns) + "\n";
        self.screen.write(&text, self.step.clone());
    }

    /// Shows the current step: next to the spinner if there is one, or else as a line.
    pub fn step(&mut self, step: &str) {
        if self.has_spinner() {
            self.step = Some(step.to_owned());
            self.screen.write("", self.step.clone());
        } else {
            self.line(&StyledLine::from_text(step));
        }
    }

    /// Updates the text next to the spinner; without a spinner, it does nothing.
    pub fn update_step(&mut self, step: &str) {
        if self.has_spinner() {
            self.step(step);
        }
    }

    /// Prints the output of the operation, unless a spinner replaces it.
    pub fn output(&self, text: &str) {
        if !self.has_spinner() {
            self.line(&StyledLine::new().quiet(text).indented());
        }
    }

    /// Returns whether a spinner hides the output.
    pub fn has_spinner(&self) -> bool {
        matches!(self.mode, OutputMode::Rich(_, SpinnerVisibility::Shown))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::stdout_style::Width;
    use super::*;

    /// Records the output for the test.
    #[derive(Clone, Default)]
    struct ProgressOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for ProgressOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn render(mode: OutputMode) -> String {
        let output = ProgressOutput::default();
        let mut display = ProgressDisplay::new(Box::new(output.clone()), mode);
        display.line(&StyledLine::from_text("building"));
        display.step("step 1 of 2");
        display.update_step("half of it");
        display.output("hello \u{1b}[31mred");
        display.line(&StyledLine::from_text("done"));
        drop(display);
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        text.replace("\r\u{1b}[2K", "")
    }

    #[test]
    fn without_a_terminal_everything_is_a_line() {
        let expected = "building\nstep 1 of 2\n  hello red\ndone\n";
        assert_eq!(render(OutputMode::Plain), expected);
        let expected = "building\nstep 1 of 2\n  \u{1b}[2mhello red\u{1b}[0m\ndone\n";
        assert_eq!(
            render(OutputMode::Rich(
                Width::Fixed(80),
                SpinnerVisibility::Hidden
            )),
            expected
        );
    }

    #[test]
    fn a_spinner_replaces_steps_and_output() {
        let text = render(OutputMode::Rich(Width::Fixed(80), SpinnerVisibility::Shown));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.last()), ("building", Some(&"done")));
        assert!(!text.contains("hello"), "{text:?}");
    }

    #[test]
    fn json_mode_shows_nothing() {
        assert_eq!(render(OutputMode::Json), "");
    }
}
