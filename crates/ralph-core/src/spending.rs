//! The charges of a run, one for each call of a model, with the model that was called.

use crate::event::{AgentSessionEvent, DoctorEvent, Event, JournalRecord, ModelEvent};
use crate::money::Usd;
use crate::ports::TokenUsage;
use crate::state::RunState;

/// The charge for one call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCharge {
    pub at: jiff::Timestamp,
    /// As the plan, the profile or the agent names it.
    pub model: String,
    pub usage: TokenUsage,
    pub cost: Usd,
}

/// Returns the charges in the records of a run, oldest first; `None` if they do not start with the
/// creation of a run.
pub fn charges(records: &[JournalRecord]) -> Option<Vec<ModelCharge>> {
    let (first, rest) = records.split_first()?;
    let mut state = RunState::from_first_record(first)?;
    let mut doctor = None;
    let mut charges = Vec::new();
    for record in rest {
        if let Event::Doctor(DoctorEvent::DoctorAsked { profile, .. }) = &record.event {
            doctor.clone_from(profile);
        }
        if let Some((model, usage, cost)) = charge(&record.event, &state, doctor.as_deref()) {
            let at = record.at;
            charges.push(ModelCharge {
                at,
                model,
                usage,
                cost,
            });
        }
        state.apply(record);
    }
    Some(charges)
}

fn charge(
    event: &Event,
    state: &RunState,
    doctor: Option<&str>,
) -> Option<(String, TokenUsage, Usd)> {
    match event {
        Event::Model(
            ModelEvent::ModelReplied {
                usage, cost_usd, ..
            }
            | ModelEvent::ModelAbandoned {
                usage, cost_usd, ..
            },
        ) => Some((state.model_choice().model, *usage, *cost_usd)),
        Event::Agent(AgentSessionEvent::AgentCharged {
            model,
            usage,
            cost_usd,
            ..
        }) => Some((model.clone(), *usage, *cost_usd)),
        Event::Doctor(
            DoctorEvent::DoctorReplied {
                usage, cost_usd, ..
            }
            | DoctorEvent::DoctorAbandoned {
                usage, cost_usd, ..
            },
        ) => Some((doctor_model(state, doctor), *usage, *cost_usd)),
        Event::Model(
            ModelEvent::ModelAsked { .. }
            | ModelEvent::ModelFailed { .. }
            | ModelEvent::ReplyRejected { .. }
            | ModelEvent::ReplyAccepted { .. },
        )
        | Event::Agent(
            AgentSessionEvent::AgentStarted { .. }
            | AgentSessionEvent::AgentDid { .. }
            | AgentSessionEvent::AgentMeasured { .. }
            | AgentSessionEvent::AgentSwitched { .. }
            | AgentSessionEvent::AgentFinished { .. },
        )
        | Event::Doctor(
            DoctorEvent::DoctorAsked { .. }
            | DoctorEvent::DoctorFailed { .. }
            | DoctorEvent::DoctorReported { .. }
            | DoctorEvent::DiagnosisApplied { .. },
        )
        | Event::Run(_)
        | Event::Command(_)
        | Event::Sandbox(_)
        | Event::Iteration(_)
        | Event::Egress(_)
        | Event::Verification(_)
        | Event::Delivery(_) => None,
    }
}

/// Returns the model of the doctor: that of its profile, or else the run's own.
fn doctor_model(state: &RunState, profile: Option<&str>) -> String {
    let Some(name) = profile else {
        return state.model_choice().model;
    };
    let settings = state.plan.settings.as_ref();
    let choice = settings.and_then(|settings| settings.profiles.get(name));
    choice.map_or_else(|| format!("profile {name}"), |choice| choice.model.clone())
}
