//! Images of container sandboxes: built, pulled, looked at.
//!
//! [`DockerImages::ensure`] is what a run calls: it builds whatever is missing of a [`ImageRecipe`] and says
//! what the image is called. What is built and when is decided in `ralph_core::image`; here it is
//! done, by the Engine API, from a context that is put together in memory. A build gets nothing but
//! the files of its layer: no secret, no path of this machine.
//!
//! - `commands` are what can be asked for, `recipe` is what an image is made from.
//! - `build`, `pull` and `load` talk to the engine, `stream` and `lines` read its answers, [`ImageProgress`] tells them.
//! - `context` packs files, `found` is what an engine says about an image.
//! - `checks` remembers when a newer version of an image was looked for.
//! - `error` is what can go wrong.

mod base_checks;
mod build;
mod build_context;
mod build_output;
mod commands;
mod error;
mod inspected;
mod load;
mod progress;
mod pull;
mod recipe;
mod stream;

pub use commands::DockerImages;
pub use error::ImageError;
pub use inspected::DockerImage;
pub use progress::{ImageProgress, ImageProgressSink};
pub use recipe::{ImageBase, ImageProject, ImageRecipe};
