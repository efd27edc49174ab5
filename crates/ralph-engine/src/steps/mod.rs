//! The steps of an iteration around its actions: `begin` it, `ask` the model by a `call` with a
//! `snapshot` of the files, `settle` what really happened, `recover` a damaged repository, look for
//! `circling`, `close` with files on disk. `quota` says how long a usage limit is waited for, `waiting`
//! waits for that and for the end of an outage, `choice` takes up another model.

mod ask;
mod begin;
mod call;
mod circling;
mod close;
mod profile_switch;
pub(crate) mod quota;
mod recover;
mod responses;
mod settle;
mod snapshot;
pub(crate) mod waiting;

pub(crate) use ask::{AskOutcome, quote_refusal};
pub(crate) use close::IterationScratch;
pub(crate) use recover::{describe_large_files, is_repository_damage};
pub use responses::{Attempt, Responses};
