//! What a run is: types, rules and ports.
//!
//! This crate is pure. It reads no file, no clock, no environment and starts nothing; everything it
//! needs is passed in, so the same input always gives the same answer. The map:
//!
//! - [`task`] parses `ralph_task.md`, [`lint`] judges it, [`plan`] is what a run will do.
//! - [`action`] turns a model's reply into checked actions, [`patch`] applies a model's diff to a text.
//! - [`prompt`] builds the one prompt of an iteration from a snapshot of files and git.
//! - [`budget`], [`money`] and [`price`] say what may be spent and what was.
//! - [`profile`] says which model answers and how it is asked.
//! - [`outage`] decides how long a run waits for a provider that is not available.
//! - [`run`] holds the statuses, the commands and the table of which is allowed when.
//! - [`event`] is the journal's one versioned enum, [`state`] folds it into where a run stands.
//! - [`gutter`] notices that a run goes in circles, [`mitigation`] says what is done about it.
//! - [`doctor`] asks a strong model for advice, [`advice`] is how that and a person's is written down.
//! - [`debug`] says what a person may start in a sandbox.
//! - [`verdict`] decides whether a run is green, [`surface`] which changes touch its verification.
//! - [`checks`] reads what a check's command runs and which new code could fake its result.
//! - [`image`] says what the images of container sandboxes are made from and called.
//! - [`net`] decides what a sandbox may reach.
//! - [`printable`] escapes characters that change how a text is shown.
//! - [`secret`] keeps secrets out of sight, in types and in streams.
//! - [`trust`] says which values a repository may decide, propose, or not set at all.
//! - [`ports`] are the traits that the outside implements.

pub mod action;
pub mod advice;
pub mod budget;
pub mod checks;
pub mod debug;
pub mod doctor;
pub mod event;
pub mod gutter;
pub mod id;
pub mod image;
pub mod lint;
pub mod mitigation;
pub mod money;
pub mod net;
pub mod outage;
pub mod patch;
pub mod path;
pub mod plan;
pub mod ports;
pub mod price;
pub mod printable;
pub mod profile;
pub mod prompt;
pub mod run;
pub mod secret;
pub mod state;
pub mod surface;
pub mod task;
pub mod templates;
pub mod trust;
pub mod verdict;
