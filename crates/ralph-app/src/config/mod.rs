//! The configuration in layers. Later layers override earlier ones: built-in defaults, the user's
//! files, the repository's files if [`ralph_core::trust`] and the user's approvals permit it, the
//! environment with `.env`, flags.
//!
//! - [`Environment`] is read once; no other module reads an environment variable.
//! - [`ConfigLayers`] finds the files. [`load_settings`], [`load_profiles`] and [`load_agents`]
//!   return the effective values and the further requests of the repository's files.
//! - [`Approvals`] contains the user's approvals of a repository's proposals.
//! - [`read_user_named`] and [`ProjectFile`] read task and configuration files and nothing else.
//! - [`allow_host_in_project`] adds a host to a `ralph.toml`.
//! - [`StoredPrices`] is the price map that the user stored.

mod agent_loop;
mod agents;
mod allow_host;
mod approvals;
mod dotenv;
mod env;
mod error;
mod issue_settings;
mod layered_models;
mod layered_settings;
mod layers;
mod models;
mod notify_settings;
mod prices;
mod project_file;
mod publish_settings;
mod regular_file;
mod settings;
mod values;

pub use agents::load_agents;
pub use allow_host::{AllowHostError, AllowedHost, allow_host_in_project};
pub use approvals::{ApprovalRecord, Approvals};
pub(crate) use env::GITHUB_API_VARIABLE;
pub use env::{Environment, NoStateDirError, VariableLayer};
pub use error::ConfigFileError;
pub use issue_settings::IssueSettings;
pub use layered_models::{load_profiles, user_sends_key};
pub(crate) use layered_settings::{SETUP_COMMAND_KEY, merge_settings};
pub use layered_settings::{ValueOrigin, load_settings, load_user_settings, user_provider};
pub use layers::{ConfigLayers, Layered, TrustFindings};
pub use models::{KeyDestinations, ModelProfile, ModelProfiles, ProfileError, origin};
pub use notify_settings::NotifySettings;
pub use prices::{MAX_PRICE_BYTES, PriceSource, StoredPrices};
pub use project_file::{ProjectFile, find_project_file};
pub use publish_settings::{CiSettings, OverlapSettings, ReviewSettings, publish_policy};
pub use regular_file::{
    RegularFile, RegularFileError, project_root, read_regular, read_user_named,
};
pub use settings::{
    DEFAULT_FILE, GitHubSettings, GitSettings, MonitoringSettings, NetworkPolicySetting,
    NetworkSettings, ResourceSettings, SandboxSettings, Settings,
};
pub use values::{Cpus, Memory, TimeSpan};
