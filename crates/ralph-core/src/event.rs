//! The events of a run: the disk format of a journal, and the output of `--json`.
//!
//! An event is appended to the journal and synced before it is shown. An effect has two events, the
//! intent before and the outcome after; an intent that a crash left without an outcome is settled by
//! inspecting the effect itself. The format evolves by additions.
//!
//! Events are grouped by the part of a run that they report on, so that a reader handles a group and
//! the compiler requires every event of it. The groups exist in Rust only: in JSON an event is one
//! object with its `type`, which belongs to exactly one group.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::id::Digest;

mod adoption;
mod agent;
mod command;
mod delivery;
mod doctor;
mod egress;
mod iteration;
mod metrics;
mod model;
mod results;
mod run;
mod sandbox;
mod verification;

pub use adoption::{Adoption, AdoptionSource, ClaimedSpending};
pub use agent::AgentSessionEvent;
pub use command::CommandEvent;
pub use delivery::DeliveryEvent;
pub use doctor::DoctorEvent;
pub use egress::EgressEvent;
pub use iteration::IterationEvent;
pub use metrics::{DiffSize, IterationMetrics, LogPosition};
pub use model::ModelEvent;
pub use results::{ActionResult, IterationOutcome, MessageState};
pub use run::RunEvent;
pub use sandbox::{SandboxEvent, SandboxPurpose};
pub use verification::VerificationEvent;

/// The version of the record format.
pub const RECORD_VERSION: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// The format's version.
    pub v: u32,
    /// The first is 1.
    pub seq: u64,
    /// The SHA-256 of the previous line without its newline; of no bytes for the first.
    pub prev: Digest,
    /// The time of writing.
    pub at: jiff::Timestamp,
    /// The run's active time until then, without pauses.
    pub active_ms: u64,
    /// The epoch of the process that wrote it; see [`RunEvent::RunOpened`].
    pub epoch: u32,
    pub event: Event,
}

/// Everything that can happen to a run, by group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// The run as a whole: its status, contract, model and waits.
    Run(RunEvent),
    /// The user's commands.
    Command(CommandEvent),
    /// Sandboxes and the workspace inside.
    Sandbox(SandboxEvent),
    /// An iteration and its actions.
    Iteration(IterationEvent),
    /// Calls to the model.
    Model(ModelEvent),
    /// Sessions of an agent's program.
    Agent(AgentSessionEvent),
    /// Traffic at the gate.
    Egress(EgressEvent),
    /// Checks at the base commit and in clean rooms.
    Verification(VerificationEvent),
    /// Commits on the host, pushes and the pull request.
    Delivery(DeliveryEvent),
    /// Consultations of the doctor.
    Doctor(DoctorEvent),
}

macro_rules! from_group {
    ($($variant:ident($group:ident)),+ $(,)?) => {$(
        impl From<$group> for Event {
            fn from(event: $group) -> Self {
                Self::$variant(event)
            }
        }
    )+};
}

from_group! {
    Run(RunEvent),
    Command(CommandEvent),
    Sandbox(SandboxEvent),
    Iteration(IterationEvent),
    Model(ModelEvent),
    Agent(AgentSessionEvent),
    Egress(EgressEvent),
    Verification(VerificationEvent),
    Delivery(DeliveryEvent),
    Doctor(DoctorEvent),
}

/// The types of a group's events, and the parser of the group.
type EventGroup = (
    &'static [&'static str],
    fn(Value) -> serde_json::Result<Event>,
);

const GROUPS: &[EventGroup] = &[
    (RunEvent::TYPES, parse_group::<RunEvent>),
    (CommandEvent::TYPES, parse_group::<CommandEvent>),
    (SandboxEvent::TYPES, parse_group::<SandboxEvent>),
    (IterationEvent::TYPES, parse_group::<IterationEvent>),
    (ModelEvent::TYPES, parse_group::<ModelEvent>),
    (AgentSessionEvent::TYPES, parse_group::<AgentSessionEvent>),
    (EgressEvent::TYPES, parse_group::<EgressEvent>),
    (VerificationEvent::TYPES, parse_group::<VerificationEvent>),
    (DeliveryEvent::TYPES, parse_group::<DeliveryEvent>),
    (DoctorEvent::TYPES, parse_group::<DoctorEvent>),
];

fn parse_group<G: DeserializeOwned + Into<Event>>(value: Value) -> serde_json::Result<Event> {
    serde_json::from_value::<G>(value).map(Into::into)
}

#[derive(Deserialize)]
#[serde(expecting = "internally tagged enum Event")]
struct EventType {
    #[serde(rename = "type")]
    name: String,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let EventType { name } = EventType::deserialize(&value).map_err(D::Error::custom)?;
        let mut groups = GROUPS.iter();
        match groups.find(|(types, _)| types.contains(&name.as_str())) {
            Some((_, parse)) => parse(value).map_err(D::Error::custom),
            None => Err(D::Error::custom(format_args!("unknown variant `{name}`"))),
        }
    }
}

#[cfg(test)]
mod tests;
