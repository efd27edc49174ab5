//! Shows a run while it progresses, record by record.

use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use ralph_app::runs::activity_label;
use ralph_core::event::{Event, JournalRecord, RunEvent};
use ralph_core::printable;
use ralph_core::state::RunState;
use ralph_engine::live_output::{LiveLine, LiveLineKind};

use super::lines::{self, Style};
use super::spinner::Screen;
use super::stdout_style::Width;
use super::styled_line::Colour;

/// Whether a spinner is shown during long operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpinnerVisibility {
    /// The spinner is shown.
    Shown,
    /// The spinner is not shown.
    Hidden,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// Colours and bars for a terminal.
    Rich(Width, SpinnerVisibility),
    /// Bars for a terminal, without any escape sequence.
    Uncoloured(Width),
    /// Plain lines that do not depend on a terminal.
    Plain,
    /// JSON, one record per line, as in the journal.
    Json,
}

/// Shows the records of one run.
pub struct RunView {
    mode: OutputMode,
    screen: Screen,
    /// When the operation in progress started, according to its record.
    operation_since: Option<Timestamp>,
}

impl RunView {
    /// Creates a view that writes to `out`. Ignores errors of `out`: a run continues without
    /// output.
    pub fn new(out: Box<dyn Write + Send>, mode: OutputMode) -> Self {
        let screen = match mode {
            OutputMode::Rich(width, SpinnerVisibility::Shown) => Screen::with_spinner(out, width),
            OutputMode::Rich(_, SpinnerVisibility::Hidden)
            | OutputMode::Uncoloured(_)
            | OutputMode::Plain
            | OutputMode::Json => Screen::without_spinner(out),
        };
        Self {
            mode,
            screen,
            operation_since: None,
        }
    }

    /// Counts the duration of the operation in progress from the time of its record, for records that
    /// were written before they are shown.
    pub fn count_from_record(&self, now: Timestamp) {
        if let Some(since) = self.operation_since {
            let seconds = now.duration_since(since).as_secs().max(0);
            self.screen
                .set_operation_age(Duration::from_secs(seconds.unsigned_abs()));
        }
    }

    /// Shows one record; `state` is the state of the run after it.
    pub fn show(&mut self, record: &JournalRecord, state: &RunState) {
        if self.mode != OutputMode::Json && record.event == Event::Run(RunEvent::StillActive {}) {
            return;
        }
        match self.mode {
            OutputMode::Rich(width, _) => {
                let columns = width.columns();
                let style = Style::Rich { columns };
                let text = render(record, state, style, Colour::Used, Some(columns));
                self.screen
                    .set_status(lines::budgets::progress_summary(state));
                if self.screen.write(&text, activity_label(record, state)) {
                    self.operation_since = Some(record.at);
                }
            }
            OutputMode::Uncoloured(width) => {
                let columns = width.columns();
                let style = Style::Rich { columns };
                let text = render(record, state, style, Colour::Unused, Some(columns));
                self.screen.write(&text, None);
            }
            OutputMode::Plain => {
                let text = render(record, state, Style::Plain, Colour::Unused, None);
                self.screen.write(&text, None);
            }
            OutputMode::Json => {
                self.screen.write(&json_line(record), None);
            }
        }
    }

    /// Shows lines of live output. Skips those of an agent, because its records contain the same.
    pub fn show_live(&self, lines: &[LiveLine]) {
        for line in lines.iter().filter(|line| !is_recorded(line)) {
            let text = match self.mode {
                OutputMode::Rich(width, _) => {
                    lines::live_line(line).render(Colour::Used, Some(width.columns()))
                }
                OutputMode::Uncoloured(width) => {
                    lines::live_line(line).render(Colour::Unused, Some(width.columns()))
                }
                OutputMode::Plain => lines::live_line(line).render(Colour::Unused, None),
                OutputMode::Json => {
                    let line = serde_json::json!({ "live_output": line.text }).to_string();
                    printable::escape_json(&line).into_owned()
                }
            };
            self.screen.write_above(&format!("{text}\n"));
        }
    }

    /// Shows the last of some lines of live output next to the spinner.
    pub fn show_latest_output(&self, lines: &[LiveLine]) {
        let is_output = |line: &&LiveLine| {
            line.kind == LiveLineKind::CommandOutput && !line.text.trim().is_empty()
        };
        if let Some(line) = lines.iter().rfind(is_output) {
            self.screen.set_latest_output(line.text.clone());
        }
    }

    /// Returns whether a spinner is shown, next to which [`Self::show_latest_output`] has an effect.
    pub fn has_spinner(&self) -> bool {
        matches!(self.mode, OutputMode::Rich(_, SpinnerVisibility::Shown))
    }
}

/// Returns whether the journal's records also show a line.
fn is_recorded(line: &LiveLine) -> bool {
    match line.kind {
        LiveLineKind::Agent | LiveLineKind::AgentOutput => true,
        LiveLineKind::Command | LiveLineKind::CommandOutput | LiveLineKind::Notice => false,
    }
}

fn json_line(record: &JournalRecord) -> String {
    let line = serde_json::to_string(record).expect("a record is valid JSON");
    format!("{line}\n")
}

fn render(
    record: &JournalRecord,
    state: &RunState,
    style: Style,
    colour: Colour,
    columns: Option<usize>,
) -> String {
    lines::event_lines(record, state, style)
        .iter()
        .map(|line| line.render(colour, columns) + "\n")
        .collect()
}

#[cfg(test)]
mod tests;
