//! Sandboxes are looked after: `prune-sandboxes`, `preflight`, `selftest`, and what a run tidies up.

mod adoption;
mod before_work;
mod engine;
mod preflight;
mod preflight_agents;
mod prune_docker;
mod prune_local;
mod selftest;
