//! The terminal output.
//!
//! - [`RunView`] shows the records of a run one by one: with colours, budget bars and a spinner on
//!   a terminal, as plain lines in a pipe, as JSON for scripts.
//! - [`ProgressDisplay`] shows long operations other than runs.
//! - [`mod@lines`] formats each event; [`mod@styled_line`] is a line, [`ralph_app::format`] formats
//!   its numbers.
//! - [`sanitize`] and [`width`] remove control sequences from text and fit it to the width.
//! - [`StdoutStyle`] is the style of standard output, detected once.

pub mod lines;
mod progress;
pub mod sanitize;
mod spinner;
mod stdout_style;
pub mod styled_line;
mod view;
pub mod width;

pub use progress::ProgressDisplay;
pub use stdout_style::{StdoutStyle, Width, terminal_rows};
pub use view::{OutputMode, RunView, SpinnerVisibility};
