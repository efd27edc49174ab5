//! How much a reply may hold. A reply beyond a limit executes nothing, unless said otherwise.

use std::time::Duration;

/// The longest reply that is read, in bytes.
pub const MAX_REPLY_BYTES: usize = 2 * 1024 * 1024;
/// The most actions in one reply.
pub const MAX_ACTIONS: usize = 50;
/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 64;
/// The most entries in each list of claims.
pub const MAX_CLAIMS: usize = 1000;
/// The longest claim, in bytes: some models claim a box by its text.
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
/// Where a summary or a reason is cut, in bytes. A longer one is no error.
pub const MAX_PROSE_BYTES: usize = 4 * 1024;
/// How long a command may take when its action does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
/// The longest time an action may ask for.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// The most problems that an error lists.
pub const MAX_PROBLEMS: usize = 10;
