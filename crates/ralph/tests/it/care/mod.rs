//! Sandbox maintenance: `prune-sandboxes`, `preflight`, `selftest`, and the cleanup by a run.

mod adoption;
mod before_work;
mod preflight;
mod preflight_agents;
mod private_engine;
mod prune_docker;
mod prune_local;
mod selftest;
