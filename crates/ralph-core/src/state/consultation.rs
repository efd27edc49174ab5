//! The consultations of a run's doctor.

use super::RunState;
use crate::doctor::{DoctorReport, DoctorTrigger};
use crate::event::DoctorEvent;
use crate::ports::TokenUsage;

/// The last consultation of the doctor, and its report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consultation {
    /// The number of the last consultation; 0 before the first.
    pub number: u32,
    /// The number of calls in that consultation.
    pub attempt: u32,
    /// The call without a reply: its trigger, and the size of its prompt.
    pub pending: Option<(DoctorTrigger, usize)>,
    /// The most that this call can be billed for.
    pub reserved: Option<TokenUsage>,
    /// Whether the ladder requests a consultation before the next iteration.
    pub due: bool,
    /// Whether the last consultation has ended.
    pub is_finished: bool,
    /// The last iteration that a report covers.
    pub last_seen_iteration: u32,
    /// The last report, with its number, until it is applied.
    pub report: Option<(u32, DoctorReport)>,
}

impl Consultation {
    /// Returns the number of the open consultation, or of the next.
    pub fn current(&self) -> u32 {
        if self.number > 0 && !self.is_finished {
            self.number
        } else {
            self.number.saturating_add(1)
        }
    }

    fn apply(&mut self, event: &DoctorEvent) {
        match event {
            DoctorEvent::DoctorAsked {
                number,
                attempt,
                trigger,
                prompt_bytes,
                reserved,
                ..
            } => {
                self.reserved = *reserved;
                self.number = *number;
                self.attempt = *attempt;
                self.is_finished = false;
                self.pending = Some((*trigger, *prompt_bytes));
            }
            DoctorEvent::DoctorReplied { .. } | DoctorEvent::DoctorAbandoned { .. } => {
                self.pending = None;
            }
            DoctorEvent::DoctorFailed {
                number, given_up, ..
            } => {
                self.number = *number;
                self.pending = None;
                if *given_up {
                    self.end();
                }
            }
            DoctorEvent::DoctorReported {
                number,
                iteration,
                report,
            } => {
                self.number = *number;
                self.last_seen_iteration = *iteration;
                self.report = Some((*number, (**report).clone()));
                self.end();
            }
            DoctorEvent::DiagnosisApplied { .. } => self.report = None,
        }
    }

    fn end(&mut self) {
        self.is_finished = true;
        self.due = false;
        self.attempt = 0;
    }
}

impl RunState {
    pub(super) fn apply_doctor(&mut self, event: &DoctorEvent) {
        self.doctor.apply(event);
        match event {
            DoctorEvent::DoctorReplied {
                usage,
                cost_usd,
                source,
                ..
            } => {
                self.charge(*usage, *cost_usd);
                self.used_script_lines.extend(source.clone());
            }
            DoctorEvent::DoctorAbandoned {
                usage, cost_usd, ..
            } => self.charge(*usage, *cost_usd),
            DoctorEvent::DiagnosisApplied {
                contract, profile, ..
            } => {
                if contract.is_some() {
                    self.wanted_contract.clone_from(contract);
                }
                if let Some(profile) = profile {
                    self.request_profile(profile);
                }
            }
            DoctorEvent::DoctorAsked { .. }
            | DoctorEvent::DoctorFailed { .. }
            | DoctorEvent::DoctorReported { .. } => {}
        }
    }
}
