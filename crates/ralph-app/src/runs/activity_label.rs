//! Describes in a few words what a run does: the label of a spinner, and the activity in lists of runs.

use ralph_core::event::{
    AgentSessionEvent, DeliveryEvent, DoctorEvent, Event, IterationEvent, JournalRecord,
    ModelEvent, RunEvent, SandboxEvent, SandboxPurpose, VerificationEvent,
};
use ralph_core::ports::AgentEvent;
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;

/// Returns what a run does after a record, or `None` if it is neither active nor waiting.
pub fn activity_label(record: &JournalRecord, state: &RunState) -> Option<String> {
    if let RunStatus::WaitingQuota(wait) = &state.status {
        let until = wait.until.strftime("%Y-%m-%d %H:%M UTC");
        return Some(format!(
            "waiting until {until} for the usage limit to reset"
        ));
    }
    if let RunStatus::WaitingProvider(wait) = &state.status {
        let until = wait.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        return Some(format!("waiting until {until} for the model's provider"));
    }
    if let RunStatus::WaitingCi(wait) = &state.status {
        let progress = state.host.progress.as_ref();
        let progress = progress.filter(|(commit, _)| *commit == wait.commit);
        let counts = progress.map_or_else(String::new, |(_, counts)| format!(": {counts}"));
        let commit = wait.commit.short();
        return Some(format!("waiting for the checks of {commit}{counts}"));
    }
    if let RunStatus::WaitingHost(wait) = &state.status {
        let until = wait.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        return Some(format!("waiting until {until} for the source host"));
    }
    if !state.status.is_active() {
        return None;
    }
    let label = match &record.event {
        Event::Run(event) => run_label(event),
        Event::Sandbox(event) => sandbox_label(event),
        Event::Iteration(event) => iteration_label(event),
        Event::Model(event) => model_label(event),
        Event::Agent(event) => agent_label(event),
        Event::Verification(event) => verification_label(event),
        Event::Delivery(event) => delivery_label(event),
        Event::Doctor(event) => doctor_label(event),
        Event::Command(_) | Event::Egress(_) => None,
    };
    Some(label.unwrap_or_else(|| "working".to_owned()))
}

fn run_label(event: &RunEvent) -> Option<String> {
    match event {
        RunEvent::RunCreated { .. }
        | RunEvent::StatusChanged {
            status: RunStatus::Preparing,
        } => Some("preparing the sandbox".to_owned()),
        RunEvent::RunOpened { .. }
        | RunEvent::RunAdopted { .. }
        | RunEvent::StatusChanged { .. }
        | RunEvent::ContractChanged { .. }
        | RunEvent::LimitsChanged { .. }
        | RunEvent::ContractRejected { .. }
        | RunEvent::ModeChanged { .. }
        | RunEvent::ModelChosen { .. }
        | RunEvent::ProfileRejected { .. }
        | RunEvent::QuotaCountdown { .. }
        | RunEvent::ProviderCountdown { .. }
        | RunEvent::BudgetWarning { .. }
        | RunEvent::FilesRecorded { .. }
        | RunEvent::StillActive {}
        | RunEvent::Notice { .. } => None,
    }
}

fn sandbox_label(event: &SandboxEvent) -> Option<String> {
    match event {
        SandboxEvent::SandboxCreated { purpose, .. } => Some(match purpose {
            SandboxPurpose::Work => "copying the repository into the sandbox".to_owned(),
            SandboxPurpose::CleanRoom => "verifying in a clean room".to_owned(),
        }),
        SandboxEvent::SetupStarted { command, .. } => {
            Some(format!("installing dependencies: {command}"))
        }
        SandboxEvent::SandboxRemoved { .. }
        | SandboxEvent::SetupFinished { .. }
        | SandboxEvent::WorkspaceReady { .. }
        | SandboxEvent::SandboxChecked { .. }
        | SandboxEvent::Tamper { .. } => None,
    }
}

fn iteration_label(event: &IterationEvent) -> Option<String> {
    match event {
        IterationEvent::IterationStarted { .. } => Some("preparing the prompt".to_owned()),
        IterationEvent::ActionStarted { action, label, .. } => Some(action_label(action, label)),
        IterationEvent::ActionFinished { .. }
        | IterationEvent::ClaimChecked { .. }
        | IterationEvent::TestsRun { .. } => Some("checking".to_owned()),
        IterationEvent::BoxesTicked { .. }
        | IterationEvent::IterationFinished { .. }
        | IterationEvent::Gutter { .. } => None,
    }
}

fn model_label(event: &ModelEvent) -> Option<String> {
    match event {
        ModelEvent::ModelAsked { attempt, .. } => Some(asking_label(*attempt)),
        ModelEvent::ModelFailed { .. } => Some("waiting to ask the model again".to_owned()),
        ModelEvent::ModelReplied { .. }
        | ModelEvent::ModelAbandoned { .. }
        | ModelEvent::ReplyRejected { .. }
        | ModelEvent::ReplyAccepted { .. } => None,
    }
}

fn agent_label(event: &AgentSessionEvent) -> Option<String> {
    match event {
        AgentSessionEvent::AgentStarted { agent, attempt, .. } => {
            Some(working_label(agent, *attempt))
        }
        AgentSessionEvent::AgentDid {
            did: AgentEvent::Tool { tool, label, .. },
            ..
        } => Some(format!("{tool} {label}")),
        AgentSessionEvent::AgentDid { .. } | AgentSessionEvent::AgentCharged { .. } => {
            Some("the agent is working".to_owned())
        }
        AgentSessionEvent::AgentFinished { .. }
        | AgentSessionEvent::AgentMeasured { .. }
        | AgentSessionEvent::AgentSwitched { .. } => None,
    }
}

fn verification_label(event: &VerificationEvent) -> Option<String> {
    match event {
        VerificationEvent::BaselineStarted { commit } => Some(format!(
            "running the checks at the base commit {}",
            commit.short()
        )),
        VerificationEvent::CheckStarted { command } => Some(command.clone()),
        VerificationEvent::VerifyStarted { head } => {
            Some(format!("verifying {} in a clean room", head.short()))
        }
        VerificationEvent::BaselineFinished { .. }
        | VerificationEvent::VerifyFinished { .. }
        | VerificationEvent::TestChangesApproved { .. }
        | VerificationEvent::SuccessRefused { .. } => None,
    }
}

fn delivery_label(event: &DeliveryEvent) -> Option<String> {
    match event {
        DeliveryEvent::PushStarted { branch, .. } => Some(format!("pushing `{branch}`")),
        DeliveryEvent::PullRequestStarted { .. } => Some("opening the pull request".to_owned()),
        DeliveryEvent::CommitsImported { .. }
        | DeliveryEvent::ImportRefused { .. }
        | DeliveryEvent::Pushed { .. }
        | DeliveryEvent::PullRequestUpdated { .. }
        | DeliveryEvent::CiProgress { .. }
        | DeliveryEvent::CiFinished { .. }
        | DeliveryEvent::OverlapFound { .. }
        | DeliveryEvent::OverlapEnded { .. }
        | DeliveryEvent::ReviewsReceived { .. }
        | DeliveryEvent::BaseMoved { .. }
        | DeliveryEvent::BasePullClosed { .. }
        | DeliveryEvent::StateSaved { .. }
        | DeliveryEvent::Discarded { .. } => None,
    }
}

fn doctor_label(event: &DoctorEvent) -> Option<String> {
    match event {
        DoctorEvent::DoctorAsked { .. } => Some("asking the doctor".to_owned()),
        DoctorEvent::DoctorReplied { .. }
        | DoctorEvent::DoctorAbandoned { .. }
        | DoctorEvent::DoctorFailed { .. }
        | DoctorEvent::DoctorReported { .. }
        | DoctorEvent::DiagnosisApplied { .. } => None,
    }
}

/// Names an action and its object.
pub fn action_label(action: &str, label: &str) -> String {
    if label.starts_with(action) {
        label.to_owned()
    } else {
        format!("{action} {label}")
    }
}

/// Returns the label of a request to the model.
pub fn asking_label(attempt: u32) -> String {
    if attempt > 1 {
        format!("asking the model, attempt {attempt}")
    } else {
        "asking the model".to_owned()
    }
}

/// Returns the label while an agent works.
pub fn working_label(agent: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{agent} is working"),
        _ => format!("{agent} is working, attempt {attempt}"),
    }
}
