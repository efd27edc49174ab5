//! `ralph image`: builds, pulls and shows the images of container sandboxes.
//!
//! - `args` defines the arguments, `command` runs them.
//! - `progress` shows the progress of a build or a pull, `status` the status of an image.

mod args;
mod command;
mod progress;
mod status;

pub(super) use args::ImageArgs;
pub(super) use command::run;
pub(super) use progress::ImageProgressOutput;
