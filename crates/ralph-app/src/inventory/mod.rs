//! What this machine has for runs: sandbox providers, coding agents with their programs and credentials, and the repositories of
//! earlier runs. No function returns a credential.

mod agents;
mod credentials;
mod program_version;
mod repositories;
mod sandbox_providers;

pub use agents::{AgentEntry, list_agents};
pub use credentials::{
    CredentialEntry, CredentialState, CredentialTest, list_credentials, test_credential,
};
pub use repositories::{
    DetectedTest, NeededHost, ProjectReport, RecentRepository, inspect_project, recent_repositories,
};
pub use sandbox_providers::{SandboxProviderState, list_sandbox_providers};
