//! Images of container sandboxes: what they are made from and what they are called.
//!
//! An image has up to two layers of ours: that of the agent, and that of the project. Both carry
//! what they were made from in their tag, so an image is built once and found again.
//!
//! - [`AgentImage`] is the Dockerfile of an agent, [`ImageName`] a name that an engine accepts.
//! - [`ProjectConfig`] is a project's `.agent-loop` directory, [`ProjectLayer`] what it asks for;
//!   [`dependencies`] reads its list of packages.
//! - [`base_tag`] and [`project_tag`] name images, [`project_name`] makes a project's name fit.
//! - [`PullDecision::decide`] says when to look for a newer version of an image that ours are built on.

mod agent;
pub mod dependencies;
mod freshness;
mod name;
mod project;
mod tag;

pub use agent::{AgentImage, UnknownAgentImage, default_base};
pub use dependencies::DependencyError;
pub use freshness::{
    CHECK_INTERVAL, ImageEffort, ImagePresence, PullDecision, RETRY_INTERVAL, RegistryChecks,
};
pub use name::{ImageName, InvalidImageName};
pub use project::{
    ImageSource, ProjectConfig, ProjectConfigFile, ProjectConfigFileKind, ProjectLayer,
    ProjectLayerError,
};
pub use tag::{base_tag, project_name, project_tag};
