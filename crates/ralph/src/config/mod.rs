//! What ralph is told before it starts, in this order, the later winning: defaults, `ralph.toml`,
//! the environment with `.env`, flags.
//!
//! - [`Environment`] is read once; no other module looks at an environment variable.
//! - [`Settings`] is `ralph.toml`, [`Profiles`] is `config/models.yaml`, [`load_agents`] reads
//!   `config/agents.toml`.
//! - [`list_host`] writes a host into a `ralph.toml`.
//! - [`find`] looks for a project's file from a directory upward.

mod agents;
mod allowed;
mod dotenv;
mod env;
mod find;
mod models;
mod problem;
mod settings;
mod values;

pub use agents::{AGENTS_FILE, load_agents};
pub use allowed::{ListError, Listed, list_host};
pub use env::{Environment, NoStateDir};
pub use find::find;
pub use models::{Profile, ProfileError, Profiles};
pub use problem::ConfigError;
pub use settings::{
    DEFAULT_FILE, GitSettings, Identity, MonitoringSettings, NetworkSettings, Policy,
    ResourceSettings, SandboxSettings, Settings,
};
pub use values::{Cpus, Memory};
