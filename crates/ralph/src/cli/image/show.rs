//! Says what goes on while an image is made.

use crate::terminal::line::{Line, Tone};
use crate::terminal::{Work, format};
use crate::wire::image::Progress;

/// Shows one thing that was told.
pub(super) fn show(work: &mut Work, progress: Progress) {
    match progress {
        Progress::Doing(what) => {
            work.line(&Line::of(&what));
            work.measure(&what);
        }
        Progress::Step {
            number,
            total,
            instruction,
        } => work.step(&format!("step {number} of {total}: {instruction}")),
        Progress::Output(line) => work.output(&line),
        Progress::Transfer { done, total } => work.measure(&format!(
            "{} of {} are here",
            format::bytes(done),
            format::bytes(total)
        )),
        Progress::Warning(text) => {
            work.line(&Line::new().with(Tone::Warn, "warning: ").plain(&text));
        }
    }
}
