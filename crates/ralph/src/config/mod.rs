//! The configuration, in layers, the later winning: built-in defaults, the user's own files, the
//! repository's files as far as [`ralph_core::trust`] and the user's approvals allow, the
//! environment with `.env`, flags.
//!
//! - [`Environment`] is read once; no other module reads an environment variable.
//! - [`Layers`] finds the files; [`load_settings`], [`load_profiles`] and [`load_agents`] return what is
//!   in force and what the repository's files ask for beyond that.
//! - [`Approvals`] is what the user approved of a repository's proposals.
//! - [`read_named`] and [`ProjectFile`] read task and configuration files and nothing else.
//! - [`list_host`] writes a host into a `ralph.toml`.
//! - [`StoredPrices`] is the price map that the user stored.

mod agents;
mod allowed;
mod approvals;
mod dotenv;
mod env;
mod find;
mod layered_models;
mod layered_settings;
mod layers;
mod models;
mod prices;
mod problem;
mod regular;
mod settings;
mod values;

pub use agents::load_agents;
pub use allowed::{ListError, Listed, list_host};
pub use approvals::{ApprovalRecord, Approvals};
pub use env::{Environment, NoStateDir};
pub use find::{ProjectFile, find};
pub use layered_models::load_profiles;
pub use layered_settings::{load_settings, user_provider};
pub use layers::{Layered, Layers, TrustFindings};
pub use models::{KeyDestinations, Profile, ProfileError, Profiles, origin};
pub use prices::{MAX_PRICE_BYTES, PriceSource, StoredPrices};
pub use problem::ConfigError;
pub use regular::{FileProblem, RegularFile, project_root, read_named, read_regular};
pub use settings::{
    DEFAULT_FILE, GitSettings, Identity, MonitoringSettings, NetworkSettings, Policy,
    ResourceSettings, SandboxSettings, Settings,
};
pub use values::{Cpus, Memory, TimeSpan};
