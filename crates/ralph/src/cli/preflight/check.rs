//! The list of checks.

use super::ground::Ground;
use super::{agent, machine, network, project, sandbox};
use crate::cli::checks::Outcome;

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Git,
    State,
    Settings,
    Task,
    Repository,
    Trust,
    Agent,
    Credential,
    Model,
    Network,
    Sandbox,
    Image,
    Disk,
}

impl Check {
    /// All checks, in the order in which they are told.
    pub(super) const ALL: [Self; 13] = [
        Self::Git,
        Self::State,
        Self::Settings,
        Self::Task,
        Self::Repository,
        Self::Trust,
        Self::Agent,
        Self::Credential,
        Self::Model,
        Self::Network,
        Self::Sandbox,
        Self::Image,
        Self::Disk,
    ];

    /// Returns the name that is printed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::State => "state directory",
            Self::Settings => "settings",
            Self::Task => "task file",
            Self::Repository => "repository",
            Self::Trust => "trust",
            Self::Agent => "agent",
            Self::Credential => "credential",
            Self::Model => "model",
            Self::Network => "network",
            Self::Sandbox => "sandbox",
            Self::Image => "image",
            Self::Disk => "disk space",
        }
    }

    /// Looks, and changes nothing. None if there is nothing to look at.
    pub(super) async fn look(self, ground: &Ground<'_>) -> Option<Outcome> {
        match self {
            Self::Git => Some(machine::git(ground)),
            Self::State => Some(machine::state(ground)),
            Self::Settings => Some(project::settings(ground)),
            Self::Task => project::task(ground),
            Self::Repository => project::repository(ground).await,
            Self::Trust => project::trust(ground).await,
            Self::Agent => agent::preset(ground).await,
            Self::Credential => agent::credential(ground).await,
            Self::Model => Some(project::model(ground)),
            Self::Network => network::gate(ground).await,
            Self::Sandbox => Some(sandbox::provider(ground).await),
            Self::Image => sandbox::image(ground).await,
            Self::Disk => Some(machine::disk(ground)),
        }
    }

    /// Says why a check was left out, unless another has said it.
    pub(super) fn left_out(self) -> Option<&'static str> {
        match self {
            Self::Task => Some("there is no ralph_task.md here, so no task file was checked"),
            Self::Repository => Some("without a task file no repository was checked"),
            Self::Agent => Some("ralph asks the model itself, so no agent was checked"),
            Self::Network => Some("commands of this sandbox provider reach whatever you reach"),
            Self::Image => Some("this sandbox provider needs no image"),
            Self::Git
            | Self::State
            | Self::Settings
            | Self::Trust
            | Self::Credential
            | Self::Model
            | Self::Sandbox
            | Self::Disk => None,
        }
    }
}
