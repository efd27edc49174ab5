//! Shows a run as it goes: one record after the other.

use std::io::Write;

use ralph_core::event::{Event, Record};
use ralph_core::state::RunState;

use super::line::Colour;
use super::lines::{self, Style};
use super::look::Width;
use super::spinner::Screen;

/// Whether a spinner turns while something takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It turns.
    Shown,
    /// It does not.
    Hidden,
}

/// How records are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// With colours and bars, for a person at a terminal.
    Rich(Width, Progress),
    /// As plain lines that do not depend on a terminal.
    Plain,
    /// As JSON, one record per line, as the journal has them.
    Json,
}

/// Shows the records of one run.
pub struct View {
    mode: Mode,
    screen: Screen,
}

impl View {
    /// Makes a view that writes to `out`. Errors of `out` are ignored: a run goes on unseen.
    pub fn new(out: Box<dyn Write + Send>, mode: Mode) -> Self {
        let screen = match mode {
            Mode::Rich(width, Progress::Shown) => Screen::turning(out, width),
            Mode::Rich(_, Progress::Hidden) | Mode::Plain | Mode::Json => Screen::still(out),
        };
        Self { mode, screen }
    }

    /// Shows one record; `state` is where the run stands with it.
    pub fn show(&mut self, record: &Record, state: &RunState) {
        if self.mode != Mode::Json && record.event == (Event::StillActive {}) {
            return;
        }
        match self.mode {
            Mode::Rich(width, _) => {
                let columns = width.columns();
                let style = Style::Rich { columns };
                let text = render(record, state, style, Colour::Used, Some(columns));
                self.screen.write(&text, lines::waiting(record, state));
            }
            Mode::Plain => {
                let text = render(record, state, Style::Plain, Colour::Unused, None);
                self.screen.write(&text, None);
            }
            Mode::Json => {
                // Our own types always serialize.
                let line = serde_json::to_string(record).unwrap_or_default();
                self.screen.write(&format!("{line}\n"), None);
            }
        }
    }
}

fn render(
    record: &Record,
    state: &RunState,
    style: Style,
    colour: Colour,
    columns: Option<usize>,
) -> String {
    lines::of(record, state, style)
        .iter()
        .map(|line| line.render(colour, columns) + "\n")
        .collect()
}

#[cfg(test)]
mod tests;
