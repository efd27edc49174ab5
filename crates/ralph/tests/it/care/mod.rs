//! Sandboxes are looked after: `prune-sandboxes`, `preflight`, `selftest`, and what a run tidies up.

mod adoption;
mod before_work;
mod preflight;
mod preflight_agents;
mod private_engine;
mod prune_docker;
mod prune_local;
mod selftest;
