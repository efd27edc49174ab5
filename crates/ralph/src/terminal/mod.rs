//! What a person sees on a terminal.
//!
//! - [`RunView`] takes the records of a run one by one and shows them: with colours, budget bars and a
//!   spinner on a terminal, as plain lines in a pipe, as JSON for scripts.
//! - [`ProgressDisplay`] shows what is no run and takes its time.
//! - [`mod@lines`] says what each event looks like; [`mod@styled_line`] is one line of it, [`ralph_app::format`]
//!   its numbers.
//! - [`sanitize`] and [`width`] keep text from doing anything but being read, within the width.
//! - [`StdoutStyle`] decides once what this terminal can show.

pub mod lines;
mod progress;
pub mod sanitize;
mod spinner;
mod stdout_style;
pub mod styled_line;
mod view;
pub mod width;

pub use progress::ProgressDisplay;
pub use stdout_style::{StdoutStyle, Width};
pub use view::{OutputMode, RunView, SpinnerVisibility};
