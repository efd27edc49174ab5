//! Performs a model's actions: `cleared` refuses those with a known secret, `perform` runs and
//! records them in order, `file_step` writes and patches, `commit` commits, `claims` verifies
//! claimed boxes.

mod claims;
mod cleared;
mod commit;
mod file_step;
mod perform;

pub(crate) use claims::check_claims;
pub(crate) use commit::commit_marks;
pub(crate) use perform::{Performed, perform};
