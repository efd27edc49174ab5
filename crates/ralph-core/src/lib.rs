//! The domain of ralph: types, rules and ports.
//!
//! This crate is pure. It does not read files, the clock or the environment and does not start
//! processes. Callers pass in everything it needs, so the same input always gives the same result.
//!
//! - [`task`] parses `ralph_task.md`, [`lint`] checks it, [`plan`] describes the resulting run.
//! - [`spec`] parses an issue as a specification and converts it to a task.
//! - [`ecosystem`] finds the test command of a project.
//! - [`action`] turns a model's reply into checked actions, [`patch`] applies a model's diff.
//! - [`prompt`] builds the prompt of an iteration from a snapshot of files and git.
//! - [`budget`], [`money`] and [`price`] define limits and account for spending.
//! - [`spending`] lists the charges of a run with the model of each.
//! - [`profile`] describes a model and its request settings.
//! - [`outage`] decides how long a run waits for an unavailable provider.
//! - [`pull_text`] keeps the edits of people in the text of a pull request.
//! - [`repo_address`] parses the address of a repository on a source host, [`submodule`] those of its submodules.
//! - [`run`] defines statuses, commands and the table of legal transitions.
//! - [`event`] is the journal's versioned enum, [`state`] folds events into the state of a run.
//! - [`gutter`] detects that a run is circling, [`mitigation`] chooses the countermeasure.
//! - [`doctor`] asks a strong model for advice, [`advice`] formats guardrails and notes.
//! - [`mod@diff`] counts the files and lines of a diff.
//! - [`debug`] lists the commands that a user may start in a sandbox.
//! - [`verdict`] decides whether a run is green, [`surface`] which changes touch its verification.
//! - [`checks`] finds the files a check runs and new code that could fake its result.
//! - [`image`] names container images and decides when they must be rebuilt.
//! - [`net`] decides which hosts a sandbox may reach.
//! - [`publish`] judges checks and overlaps at the source host and neutralises published text.
//! - [`notify`] decides about which ends of a run the user is notified.
//! - [`printable`] escapes characters that change how text is displayed.
//! - [`secret`] redacts secrets in types and in streams.
//! - [`trust`] defines which settings a repository may set, propose, or not set at all.
//! - [`ports`] are the traits that the other crates implement.

pub mod action;
pub mod advice;
pub mod budget;
pub mod checks;
pub mod debug;
pub mod diff;
pub mod doctor;
pub mod ecosystem;
pub mod event;
pub mod gutter;
pub mod id;
pub mod image;
pub mod lint;
pub mod mitigation;
pub mod money;
pub mod net;
pub mod notify;
pub mod outage;
mod parse_value;
pub mod patch;
pub mod path;
pub mod plan;
pub mod ports;
pub mod price;
pub mod printable;
pub mod profile;
pub mod prompt;
pub mod publish;
pub mod pull_text;
pub mod repo_address;
pub mod run;
pub mod secret;
pub mod spec;
pub mod spending;
pub mod state;
pub mod submodule;
pub mod surface;
pub mod task;
pub mod templates;
pub mod trust;
pub mod verdict;

pub use parse_value::parse_value;
