//! Shows work that takes its time and is no run: what is done now, what it prints, how it ended.

use std::io::Write;

use super::line::{Colour, Line};
use super::spinner::Screen;
use super::view::{Mode, Progress};

/// Shows work as it goes on.
pub struct Work {
    screen: Screen,
    mode: Mode,
    step: Option<String>,
}

impl Work {
    /// Writes to `out`. Errors of `out` are ignored: the work goes on unseen.
    pub fn new(out: Box<dyn Write + Send>, mode: Mode) -> Self {
        let screen = match mode {
            Mode::Rich(width, Progress::Shown) => Screen::turning(out, width),
            Mode::Rich(_, Progress::Hidden) | Mode::Plain | Mode::Json => Screen::still(out),
        };
        Self {
            screen,
            mode,
            step: None,
        }
    }

    /// Shows a line that stays.
    pub fn line(&self, line: &Line) {
        let (colour, columns) = match self.mode {
            Mode::Rich(width, _) => (Colour::Used, Some(width.columns())),
            Mode::Plain => (Colour::Unused, None),
            Mode::Json => return,
        };
        let text = line.render(colour, columns) + "\n";
        self.screen.write(&text, self.step.clone());
    }

    /// Says what is done now: beside the spinner where one turns, else as a line.
    pub fn step(&mut self, step: &str) {
        if self.has_spinner() {
            self.step = Some(step.to_owned());
            self.screen.write("", self.step.clone());
        } else {
            self.line(&Line::of(step));
        }
    }

    /// Says how far a step has come; without a spinner that is not worth a line.
    pub fn measure(&mut self, step: &str) {
        if self.has_spinner() {
            self.step(step);
        }
    }

    /// Shows what the work prints, where no spinner stands for it.
    pub fn output(&self, text: &str) {
        if !self.has_spinner() {
            self.line(&Line::new().quiet(text).indented());
        }
    }

    /// Tells whether output is hidden behind a spinner.
    pub fn has_spinner(&self) -> bool {
        matches!(self.mode, Mode::Rich(_, Progress::Shown))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::look::Width;
    use super::*;

    /// Keeps what is written where the test can see it.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn shown(mode: Mode) -> String {
        let kept = Kept::default();
        let mut work = Work::new(Box::new(kept.clone()), mode);
        work.line(&Line::of("building"));
        work.step("step 1 of 2");
        work.measure("half of it");
        work.output("hello \u{1b}[31mred");
        work.line(&Line::of("done"));
        drop(work);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.replace("\r\u{1b}[2K", "")
    }

    #[test]
    fn without_a_terminal_everything_is_a_line() {
        let expected = "building\nstep 1 of 2\n  hello red\ndone\n";
        assert_eq!(shown(Mode::Plain), expected);
        let expected = "building\nstep 1 of 2\n  \u{1b}[2mhello red\u{1b}[0m\ndone\n";
        assert_eq!(
            shown(Mode::Rich(Width::Fixed(80), Progress::Hidden)),
            expected
        );
    }

    #[test]
    fn a_spinner_stands_for_steps_and_output() {
        let text = shown(Mode::Rich(Width::Fixed(80), Progress::Shown));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.last()), ("building", Some(&"done")));
        assert!(!text.contains("hello"), "{text:?}");
    }

    #[test]
    fn for_scripts_nothing_is_shown() {
        assert_eq!(shown(Mode::Json), "");
    }
}
