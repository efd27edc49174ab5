//! What a person sees on a terminal.
//!
//! - [`View`] takes the records of a run one by one and shows them: with colours, budget bars and a
//!   spinner on a terminal, as plain lines in a pipe, as JSON for scripts.
//! - [`Work`] shows what is no run and takes its time.
//! - [`lines`] says what each event looks like; [`mod@line`] is one line of it, [`mod@format`] its
//!   numbers.
//! - [`sanitize`] and [`width`] keep text from doing anything but being read, within the width.
//! - [`follow`] reads a journal as it grows.
//! - [`Look`] decides once what this terminal can show.

pub mod follow;
pub mod format;
pub mod line;
pub mod lines;
mod look;
pub mod sanitize;
mod spinner;
mod view;
pub mod width;
mod work;

pub use look::{Look, Width};
pub use view::{Mode, Progress, View};
pub use work::Work;
