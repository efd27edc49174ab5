//! Tests of the resources of the machine, its metrics, its telemetry and the notifications of its runs.

mod configuration;
mod export;
mod free_commands;
mod metrics;
mod models;
mod notifications;
mod operations;
mod poller;
mod projects;
mod runs_of_machine;
