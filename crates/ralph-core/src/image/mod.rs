//! Images of container sandboxes: what they are made from and what they are called.
//!
//! An image has up to two layers of ours: that of the agent, and that of the project. Both carry
//! what they were made from in their tag, so an image is built once and found again.
//!
//! - [`AgentImage`] is the Dockerfile of an agent, [`ImageName`] a name that an engine accepts.
//! - [`ProjectConfig`] is a project's `.agent-loop` directory, [`Layer`] what it asks for;
//!   [`dependencies`] reads its list of packages.
//! - [`base_tag`] and [`project_tag`] name images, [`project_name`] makes a project's name fit.
//! - [`Pull::decide`] says when to look for a newer version of an image that ours are built on.

mod agent;
pub mod dependencies;
mod fresh;
mod name;
mod project;
mod tag;

pub use agent::{AgentImage, UnknownAgent, default_base};
pub use dependencies::DependencyError;
pub use fresh::{CHECK_AFTER, Checks, Effort, Presence, Pull, RETRY_AFTER};
pub use name::{BadImageName, ImageName};
pub use project::{ConfigError, ConfigFile, ConfigKind, FileKind, Layer, ProjectConfig};
pub use tag::{base_tag, project_name, project_tag};
