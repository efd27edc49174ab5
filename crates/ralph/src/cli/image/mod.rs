//! `ralph image`: builds, pulls and shows the images of container sandboxes.
//!
//! - [`args`] is what can be typed, `command` what the three commands share.
//! - `build` makes an image from a Dockerfile or with `nix`, `pull` gets one, `status` shows one.
//! - `ensure` gives a run its image.
//! - `show` says what goes on while an image is made.

pub mod args;
mod build;
mod command;
mod ensure;
mod nix;
mod progress;
mod pull;
mod status;

pub use args::ImageArgs;
pub(super) use command::run;
pub(super) use ensure::ensure_image;
