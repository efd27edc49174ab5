//! The steps of an iteration around its actions: `ask` the model, `settle` what really happened,
//! `close` with files on disk.

mod ask;
mod close;
mod settle;

pub use ask::{Attempt, Responses};
pub(crate) use close::Now;
