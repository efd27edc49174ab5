//! Runs the real program the way users and scripts do.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod advice;
mod agents;
mod answering;
mod any_directory;
mod bad_input;
mod baseline;
#[cfg(target_os = "linux")]
mod care;
mod cheats;
mod circling;
mod clean_room;
mod configuration;
mod contract;
mod corruption;
#[cfg(target_os = "linux")]
mod crash;
mod crash_loop;
#[cfg(target_os = "linux")]
mod crash_stage;
mod damage;
mod diagnostics_log;
mod docker_run;
#[cfg(target_os = "linux")]
mod dry_run;
mod egress;
#[cfg(target_os = "linux")]
mod export;
mod first_task;
mod follow;
mod holding;
mod honest;
mod idle_commands;
mod images;
mod inspection;
mod issues;
#[cfg(target_os = "linux")]
mod left_processes;
mod live_output;
mod live_steering;
mod lost_runs;
mod messages;
mod models;
mod nested;
mod newer;
mod notifications;
mod odd_repositories;
mod old_git;
mod older_state;
mod outage;
#[cfg(target_os = "linux")]
mod ownership;
mod poisoned;
#[cfg(target_os = "linux")]
mod power_loss;
mod project;
mod proxy;
mod raised_budgets;
mod reading;
mod redacted_actions;
mod reindexing;
mod relative_path;
mod remote;
mod replies;
mod repositories;
mod results;
mod scm;
#[cfg(target_os = "linux")]
mod script;
mod secrets;
mod server;
mod setup;
mod shared_objects;
mod starting;
mod steering;
#[cfg(target_os = "linux")]
mod stopped;
#[cfg(target_os = "linux")]
mod strace;
mod support;
mod terminal_output;
mod test_changes;
mod test_counts;
mod tmpfs_mount;
#[cfg(target_os = "linux")]
mod together;
mod tokens;
mod trust;
mod update_prices;
mod usage;
mod verdicts;
mod watching;
