//! The steps of an iteration around its actions: `begin` starts it, `ask` asks the model through
//! `call` with a `snapshot` of the files, `settle` records the actual results, `recover` repairs a
//! damaged repository, `circling` measures progress, `close` writes the files. `quota` computes the
//! wait for a usage limit, `waiting` waits for that and for the end of an outage, `profile_switch`
//! switches to another model.

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

pub(crate) use ask::ask_model;
pub(crate) use ask::{AskOutcome, quote_refusal};
pub(crate) use begin::begin_iteration;
pub(crate) use begin::charge_abandoned_call;
pub(crate) use close::IterationScratch;
pub(crate) use close::close_iteration;
pub(crate) use profile_switch::apply_wanted_profile;
pub(crate) use recover::inspect_work_tree;
pub(crate) use recover::record_commits_of_lost_sandbox;
pub(crate) use recover::{describe_large_files, is_repository_damage};
pub use responses::{Attempt, Responses};
pub(crate) use settle::load_workspace_view;
pub(crate) use settle::run_tests_if_changed;
pub(crate) use settle::settle_iteration;
pub(crate) use waiting::{WAIT_POLL_INTERVAL, elapsed, random_jitter};
pub(crate) use waiting::{wait_for_host, wait_for_model};
