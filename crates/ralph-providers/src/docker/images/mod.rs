//! Builds, pulls and inspects sandbox images.
//!
//! A run calls [`DockerImages::ensure`], which builds the missing layers of an [`ImageRecipe`] and
//! returns the image name. `ralph_core::image` decides which layers to build; this module builds
//! them through the Engine API, from a context assembled in memory. A build receives only the files
//! of its layer: no secrets and no paths of this machine.
//!
//! - `commands` are the public operations, `recipe` describes an image.
//! - `build`, `pull` and `load` call the Docker Engine, `stream` and `build_output` read its
//!   responses, and [`ImageProgress`] reports them.
//! - `build_context` packs files, `inspected` is the result of inspecting an image.
//! - `base_checks` records the last check for a newer version of an image.
//! - `error` contains the errors.

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
