//! The launcher: confines itself and then executes the command.
//!
//! Commands of the local sandbox run as the user, so they could access ralph's files, its mailbox
//! and its process. Namespaces, Landlock and limits can only be set up by the process that they
//! apply to, and only while it has one thread. Ralph therefore starts this program, which sets them
//! up and then executes the command in its place. The process ID stays the same.
//!
//! - `settings` is the interface to ralph; `namespace` hides directories behind mounts, `landlock`
//!   denies access to them if mounts are not available, `privileges` drops the privileges that
//!   could undo either.
//! - `probe` reports which of them this machine supports.

mod landlock;
mod namespace;
mod privileges;
mod probe;
mod settings;
mod start;

pub use probe::{LauncherSupport, MountAbility};
pub use settings::{Hiding, LAUNCH_FAILED, LaunchFailure, LaunchSettings};
pub use start::run;

/// The first argument that runs the guest program as a launcher.
pub const LAUNCH: &str = "launch";
/// The first argument that runs the guest program as a probe of the launcher's features.
pub const PROBE: &str = "probe";
