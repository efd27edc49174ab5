//! Limits of a reply. A reply that exceeds one is rejected as a whole unless noted otherwise.

use std::time::Duration;

/// The longest reply, in bytes.
pub const MAX_REPLY_BYTES: usize = 2 * 1024 * 1024;
/// The most actions in one reply.
pub const MAX_ACTIONS: usize = 50;
/// The deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// The most entries in each list of claims.
pub const MAX_CLAIMS: usize = 1000;
/// The longest claim, in bytes; some models claim a checkbox by its text.
pub const MAX_CLAIM_BYTES: usize = 4096;
/// The longest content of a `write`, in bytes.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// The longest diff of a `patch`, in bytes.
pub const MAX_PATCH_BYTES: usize = 1024 * 1024;
/// The longest command of a `run`, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// The longest message of a `commit`, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The most paths of one `commit`.
pub const MAX_COMMIT_PATHS: usize = 500;
/// The length to which summaries and reasons are truncated, in bytes.
pub const MAX_PROSE_BYTES: usize = 4 * 1024;
/// The timeout of a command if the action does not set one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
/// The longest timeout that an action may set.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// The most problems listed in an error.
pub const MAX_PROBLEMS: usize = 10;
