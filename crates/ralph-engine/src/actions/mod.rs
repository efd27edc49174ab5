//! Performing what a model asked for: the order and the records in `perform`, files in `file_step`,
//! commits in `commit`, and in `claims` the look whether a claimed box is really done.

mod claims;
mod commit;
mod file_step;
mod perform;

pub(crate) use claims::CHECK_TIMEOUT;
pub(crate) use perform::Performed;
