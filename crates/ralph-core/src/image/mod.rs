//! Images of container sandboxes: their content and their names.
//!
//! ralph builds up to two layers: one for the agent and one for the project. The tag of each
//! contains a digest of its inputs, so an image is built once and then reused.
//!
//! - [`AgentImage`] is the Dockerfile of an agent, [`ImageName`] a valid image name.
//! - [`ProjectConfig`] is a project's `.agent-loop` directory, [`ProjectLayer`] the layer it
//!   defines; [`dependencies`] parses its list of packages.
//! - [`base_tag`] and [`project_tag`] name images, [`project_name`] sanitises a project's name.
//! - [`PullDecision::decide`] decides when to check for a newer base image.

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
