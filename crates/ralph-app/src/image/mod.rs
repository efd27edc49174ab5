//! The images of container sandboxes.
//!
//! - [`PreparedImageBuild`], [`ImagePull`] and [`image_status`] are the operations of a front end.
//! - `ensure_image` provides the image of a run, `ready_image` finds one for a check.

mod build;
mod engine;
mod ensure;
mod nix;
mod pull;
mod ready_image;
mod status;

pub use build::{BuiltImages, DockerfileChoice, ImageBuildRequest, PreparedImageBuild};
pub(crate) use ensure::ensure_image;
pub use pull::ImagePull;
pub(crate) use ready_image::find_image;
pub use status::{
    ImageAvailability, ImageProblem, ImageStatusEntry, ImageStatusKind, ImageStatusReport,
    image_status,
};

pub use crate::providers::image::{ImageProgress, ImageProgressSink};
