//! Shows the progress of a build or a pull.

use ralph_app::config::Settings;
use ralph_app::format;
use ralph_app::image::ImageProgress;
use ralph_app::{AppError, ErrorDetails};

use crate::cli::context::Context;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::{OutputMode, ProgressDisplay};

/// The progress of a build or a pull on standard output.
pub(in crate::cli) struct ImageProgressOutput {
    display: ProgressDisplay,
}

impl ImageProgressOutput {
    /// Creates a display that fits standard output and the settings.
    pub(super) fn new(context: &Context, settings: &Settings) -> Self {
        Self::with_mode(context.view_mode(false, settings))
    }

    /// Creates a display with this mode.
    pub(in crate::cli) fn with_mode(mode: OutputMode) -> Self {
        Self {
            display: ProgressDisplay::new(Box::new(std::io::stdout()), mode),
        }
    }

    /// Shows one step.
    pub(in crate::cli) fn show(&mut self, progress: ImageProgress) {
        show_progress(&mut self.display, progress);
    }

    /// Prints a permanent line.
    pub(super) fn line(&self, line: &StyledLine) {
        self.display.line(line);
    }

    /// Ends the display. The error includes the end of the build log only if a spinner hid it.
    pub(in crate::cli) fn into_error(self, mut error: AppError) -> AppError {
        if !self.display.has_spinner() && matches!(*error.details, ErrorDetails::BuildLog(_)) {
            *error.details = ErrorDetails::None;
        }
        error
    }
}

/// Shows one progress event.
fn show_progress(display: &mut ProgressDisplay, progress: ImageProgress) {
    match progress {
        ImageProgress::Started(what) => {
            display.line(&StyledLine::from_text(&what));
            display.update_step(&what);
        }
        ImageProgress::Step {
            number,
            total,
            instruction,
        } => display.step(&format!("step {number} of {total}: {instruction}")),
        ImageProgress::Output(line) => display.output(&line),
        ImageProgress::Transfer { done, total } => display.update_step(&format!(
            "{} of {} downloaded",
            format::bytes(done),
            format::bytes(total)
        )),
        ImageProgress::Warning(text) => {
            display.line(&StyledLine::new().span(Tone::Warn, "warning: ").plain(&text));
        }
    }
}
