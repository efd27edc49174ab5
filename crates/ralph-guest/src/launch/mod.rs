//! The launcher: confines itself, then becomes the command that it was started for.
//!
//! Commands of the local sandbox run as the user, so ralph's own files, its mailbox and its process
//! would be within their reach. Namespaces, Landlock and limits can only be set up by the process that
//! they apply to, and only while it has one thread, so ralph starts this program, which sets them up and
//! then executes the command in its place. The process id stays the same throughout.
//!
//! - `settings` is the interface to ralph; `namespace` hides directories behind mounts, `landlock`
//!   denies access to them where mounts are not available, `privileges` gives up what could undo either.
//! - `probe` reports which of them this machine has.

mod landlock;
mod namespace;
mod privileges;
mod probe;
mod settings;
mod start;

pub use probe::{LauncherSupport, MountAbility};
pub use settings::{Hiding, LAUNCH_FAILED, LaunchFailure, LaunchSettings};
pub use start::run;

/// The first argument of the guest's program that makes it a launcher.
pub const LAUNCH: &str = "launch";
/// The first argument of the guest's program that makes it report what a launcher can do here.
pub const PROBE: &str = "probe";
