//! Decides which events are told how.

use ralph_core::event::{Event, JournalRecord, SandboxPurpose};
use ralph_core::ports::AgentEvent;
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;

use super::{agent, circling, delivery, iteration, lifecycle, pieces};
use crate::terminal::styled_line::StyledLine;

/// How much the lines may rely on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Drawn for this many columns; a spinner tells what is being waited for.
    Rich {
        /// The columns.
        columns: usize,
    },
    /// Plain lines that also tell what is being waited for.
    Plain,
}

/// Returns the lines that tell a record.
#[expect(clippy::too_many_lines, reason = "a table with a line for every event")]
pub fn event_lines(record: &JournalRecord, state: &RunState, style: Style) -> Vec<StyledLine> {
    match &record.event {
        Event::RunCreated { .. }
        | Event::RunOpened { .. }
        | Event::StatusChanged { .. }
        | Event::CommandReceived { .. }
        | Event::CommandDone { .. }
        | Event::ContractChanged { .. }
        | Event::ContractRejected { .. }
        | Event::ModelChosen { .. }
        | Event::ProfileRejected { .. }
        | Event::SandboxCreated { .. }
        | Event::SandboxRemoved { .. }
        | Event::WorkspaceReady { .. }
        | Event::SandboxChecked { .. }
        | Event::BudgetWarning { .. }
        | Event::Notice { .. } => lifecycle::lines(&record.event, state, style),
        Event::IterationStarted { .. }
        | Event::ModelAsked { .. }
        | Event::ModelReplied { .. }
        | Event::ModelFailed { .. }
        | Event::ModelAbandoned { .. }
        | Event::ReplyRejected { .. }
        | Event::ReplyAccepted { .. }
        | Event::ActionStarted { .. }
        | Event::ActionFinished { .. }
        | Event::ClaimChecked { .. }
        | Event::BoxesTicked { .. }
        | Event::TestsRun { .. }
        | Event::Tamper { .. }
        | Event::IterationFinished { .. } => iteration::lines(&record.event, state, style),
        Event::AgentStarted { .. }
        | Event::AgentDid { .. }
        | Event::AgentCharged { .. }
        | Event::AgentFinished { .. }
        | Event::HostBlocked { .. }
        | Event::FurtherHostsBlocked { .. }
        | Event::ProviderToolScreened { .. }
        | Event::HostAllowed { .. }
        | Event::MessageMoved { .. } => agent::lines(&record.event, state, style),
        Event::CommitsImported { .. }
        | Event::ImportRefused { .. }
        | Event::PushStarted { .. }
        | Event::Pushed { .. }
        | Event::PullRequestUpdated { .. }
        | Event::StateSaved { .. }
        | Event::VerifyStarted { .. }
        | Event::VerifyFinished { .. }
        | Event::BaselineStarted { .. }
        | Event::BaselineFinished { .. }
        | Event::CheckStarted { .. }
        | Event::TestChangesApproved { .. }
        | Event::SuccessRefused { .. } => delivery::lines(&record.event, style),
        Event::Gutter { .. }
        | Event::DoctorAsked { .. }
        | Event::DoctorReplied { .. }
        | Event::DoctorAbandoned { .. }
        | Event::DoctorFailed { .. }
        | Event::DoctorReported { .. }
        | Event::DiagnosisApplied { .. } => circling::lines(&record.event, style),
        // Nothing has changed; whoever shows it goes on waiting for the same.
        Event::StillActive {}
        | Event::QuotaCountdown { .. }
        | Event::ProviderCountdown { .. }
        | Event::FilesRecorded { .. } => Vec::new(),
    }
}

/// Returns what is being waited for after a record; none when nobody works on the run.
#[expect(clippy::too_many_lines, reason = "a table with a line for every event")]
pub fn waiting_label(record: &JournalRecord, state: &RunState) -> Option<String> {
    if let RunStatus::WaitingQuota(wait) = &state.status {
        let until = wait.until.strftime("%Y-%m-%d %H:%M UTC");
        return Some(format!("waiting until {until} for the usage limit"));
    }
    if let RunStatus::WaitingProvider(wait) = &state.status {
        let until = wait.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        return Some(format!("waiting until {until} for the model's provider"));
    }
    if !state.status.is_active() {
        return None;
    }
    Some(match &record.event {
        Event::RunCreated { .. }
        | Event::StatusChanged {
            status: RunStatus::Preparing,
        } => "preparing the sandbox".to_owned(),
        Event::SandboxCreated {
            purpose: SandboxPurpose::Work,
            ..
        } => "bringing the repository into the sandbox".to_owned(),
        Event::ModelAsked { attempt, .. } => pieces::asking_label(*attempt),
        Event::DoctorAsked { .. } => "asking the doctor".to_owned(),
        Event::ModelFailed { .. } => "waiting to ask the model again".to_owned(),
        Event::ActionStarted { action, label, .. } => pieces::action_label(action, label),
        Event::PushStarted { branch, .. } => format!("pushing `{branch}`"),
        Event::VerifyStarted { head } => format!("verifying {} in a clean room", head.short()),
        Event::CheckStarted { command } => command.clone(),
        Event::BaselineStarted { commit } => {
            format!("running the checks at the base commit {}", commit.short())
        }
        Event::SandboxCreated {
            purpose: SandboxPurpose::CleanRoom,
            ..
        } => "verifying in a clean room".to_owned(),
        Event::IterationStarted { .. } => "collecting what the model will see".to_owned(),
        Event::ActionFinished { .. } | Event::ClaimChecked { .. } | Event::TestsRun { .. } => {
            "checking".to_owned()
        }
        Event::AgentStarted { agent, attempt, .. } => agent::working_label(agent, *attempt),
        Event::AgentDid {
            did: AgentEvent::Tool { tool, label, .. },
            ..
        } => format!("{tool} {label}"),
        Event::AgentDid { .. } | Event::AgentCharged { .. } => "the agent works".to_owned(),
        Event::RunOpened { .. }
        | Event::TestChangesApproved { .. }
        | Event::BaselineFinished { .. }
        | Event::AgentFinished { .. }
        | Event::HostBlocked { .. }
        | Event::FurtherHostsBlocked { .. }
        | Event::ProviderToolScreened { .. }
        | Event::HostAllowed { .. }
        | Event::MessageMoved { .. }
        | Event::StatusChanged { .. }
        | Event::CommandReceived { .. }
        | Event::ContractChanged { .. }
        | Event::ContractRejected { .. }
        | Event::ModelChosen { .. }
        | Event::ProfileRejected { .. }
        | Event::QuotaCountdown { .. }
        | Event::ProviderCountdown { .. }
        | Event::SandboxRemoved { .. }
        | Event::WorkspaceReady { .. }
        | Event::SandboxChecked { .. }
        | Event::ModelReplied { .. }
        | Event::ModelAbandoned { .. }
        | Event::ReplyRejected { .. }
        | Event::ReplyAccepted { .. }
        | Event::BoxesTicked { .. }
        | Event::Tamper { .. }
        | Event::BudgetWarning { .. }
        | Event::CommitsImported { .. }
        | Event::ImportRefused { .. }
        | Event::Pushed { .. }
        | Event::PullRequestUpdated { .. }
        | Event::StateSaved { .. }
        | Event::VerifyFinished { .. }
        | Event::SuccessRefused { .. }
        | Event::IterationFinished { .. }
        | Event::Gutter { .. }
        | Event::CommandDone { .. }
        | Event::DoctorReplied { .. }
        | Event::DoctorAbandoned { .. }
        | Event::DoctorFailed { .. }
        | Event::DoctorReported { .. }
        | Event::DiagnosisApplied { .. }
        | Event::FilesRecorded { .. }
        | Event::StillActive {}
        | Event::Notice { .. } => "working".to_owned(),
    })
}
