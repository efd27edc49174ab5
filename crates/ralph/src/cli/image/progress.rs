//! Says what goes on while an image is made.

use crate::providers::image::ImageProgress;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::{ProgressDisplay, format};

/// Shows one thing that was told.
pub(super) fn show_progress(work: &mut ProgressDisplay, progress: ImageProgress) {
    match progress {
        ImageProgress::Started(what) => {
            work.line(&StyledLine::from_text(&what));
            work.update_step(&what);
        }
        ImageProgress::Step {
            number,
            total,
            instruction,
        } => work.step(&format!("step {number} of {total}: {instruction}")),
        ImageProgress::Output(line) => work.output(&line),
        ImageProgress::Transfer { done, total } => work.update_step(&format!(
            "{} of {} are here",
            format::bytes(done),
            format::bytes(total)
        )),
        ImageProgress::Warning(text) => {
            work.line(&StyledLine::new().span(Tone::Warn, "warning: ").plain(&text));
        }
    }
}
