//! Where a run stands with its doctor.

use crate::doctor::{DoctorReport, DoctorTrigger};
use crate::event::Event;
use crate::ports::TokenUsage;

/// What the doctor was asked and has said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consultation {
    /// The number of the last consultation; 0 before the first.
    pub number: u32,
    /// How often it was asked in that one.
    pub attempt: u32,
    /// The question that has no answer yet: why it was asked, and how large its prompt is.
    pub pending: Option<(DoctorTrigger, usize)>,
    /// The most that this question can be billed for.
    pub reserved: Option<TokenUsage>,
    /// Whether the ladder wants it before the next iteration.
    pub due: bool,
    /// Whether the last consultation has come to its end.
    pub is_finished: bool,
    /// The last iteration that it has seen.
    pub last_seen_iteration: u32,
    /// The last report, with its number, until it is applied.
    pub report: Option<(u32, DoctorReport)>,
}

impl Consultation {
    /// Returns the number of the consultation that is open, or of the next.
    pub fn current(&self) -> u32 {
        if self.number > 0 && !self.is_finished {
            self.number
        } else {
            self.number.saturating_add(1)
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "`RunState::apply` decides exhaustively which events come here"
    )]
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::DoctorAsked {
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
            Event::DoctorReplied { .. } | Event::DoctorAbandoned { .. } => self.pending = None,
            Event::DoctorFailed {
                number, given_up, ..
            } => {
                self.number = *number;
                self.pending = None;
                if *given_up {
                    self.end();
                }
            }
            Event::DoctorReported {
                number,
                iteration,
                report,
            } => {
                self.number = *number;
                self.last_seen_iteration = *iteration;
                self.report = Some((*number, (**report).clone()));
                self.end();
            }
            Event::DiagnosisApplied { .. } => self.report = None,
            _ => {}
        }
    }

    fn end(&mut self) {
        self.is_finished = true;
        self.due = false;
        self.attempt = 0;
    }
}
