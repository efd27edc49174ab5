//! The list of checks.

use super::preflight_context::PreflightContext;
use super::{agent, machine, network, project, sandbox};
use crate::checks::CheckOutcome;

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreflightCheck {
    Git,
    State,
    Settings,
    Task,
    Repository,
    Trust,
    Agent,
    Credential,
    Fallback,
    Model,
    Network,
    Sandbox,
    Image,
    Plan,
    Disk,
}

/// The effect of a failed check on the start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartEffect {
    /// The run does not start.
    Refuse,
    /// The run starts with a notice.
    Warn,
    /// The start has a step of its own for this: it lints the task, asks for approval, builds the
    /// image, or completes the plan.
    OwnStep,
}

impl PreflightCheck {
    /// All checks, in the order of the report.
    pub(super) const ALL: [Self; 15] = [
        Self::Git,
        Self::State,
        Self::Settings,
        Self::Task,
        Self::Repository,
        Self::Trust,
        Self::Agent,
        Self::Credential,
        Self::Fallback,
        Self::Model,
        Self::Network,
        Self::Sandbox,
        Self::Image,
        Self::Plan,
        Self::Disk,
    ];

    /// Returns the printed name of the check.
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
            Self::Fallback => "fallback agent",
            Self::Model => "model",
            Self::Network => "network",
            Self::Sandbox => "sandbox",
            Self::Image => "image",
            Self::Plan => "plan",
            Self::Disk => "disk space",
        }
    }

    /// Runs the check without changing anything. Returns `None` if there is nothing to check.
    pub(super) async fn run(self, context: &PreflightContext<'_>) -> Option<CheckOutcome> {
        match self {
            Self::Git => Some(machine::check_git(context)),
            Self::State => Some(machine::check_state_dir(context)),
            Self::Settings => Some(project::check_settings(context)),
            Self::Task => project::check_task(context),
            Self::Repository => project::check_repository(context).await,
            Self::Trust => project::check_trust(context).await,
            Self::Agent => agent::check_agent(context).await,
            Self::Credential => agent::check_credential(context).await,
            Self::Fallback => agent::check_fallback(context).await,
            Self::Model => Some(project::check_model(context)),
            Self::Network => network::check_gate(context).await,
            Self::Sandbox => Some(sandbox::check_provider(context).await),
            Self::Image => sandbox::check_image(context).await,
            Self::Plan => project::check_plan(context).await,
            Self::Disk => Some(machine::check_disk(context)),
        }
    }

    /// Returns the effect of a failed check on the start of a run.
    pub(super) fn start_effect(self) -> StartEffect {
        match self {
            Self::Git
            | Self::State
            | Self::Settings
            | Self::Repository
            | Self::Agent
            | Self::Credential
            | Self::Fallback
            | Self::Model
            | Self::Network
            | Self::Sandbox => StartEffect::Refuse,
            Self::Disk => StartEffect::Warn,
            Self::Task | Self::Trust | Self::Image | Self::Plan => StartEffect::OwnStep,
        }
    }

    /// Returns why the check was skipped, unless another check reports the reason.
    pub(super) fn skip_reason(self) -> Option<&'static str> {
        match self {
            Self::Task => Some("there is no ralph_task.md here, so no task file was checked"),
            Self::Repository => Some("there is no task file, so no repository was checked"),
            Self::Agent => Some("ralph calls the model itself, so no agent was checked"),
            Self::Network => {
                Some("this sandbox provider does not restrict the network access of commands")
            }
            Self::Image => Some("this sandbox provider needs no image"),
            Self::Git
            | Self::State
            | Self::Settings
            | Self::Trust
            | Self::Credential
            | Self::Fallback
            | Self::Model
            | Self::Sandbox
            | Self::Plan
            | Self::Disk => None,
        }
    }
}
