//! Events of the doctor.

use serde::{Deserialize, Serialize};

use crate::doctor::{AppliedBy, DoctorReport, DoctorTrigger};
use crate::id::Digest;
use crate::money::Usd;
use crate::ports::TokenUsage;

/// Calls to the doctor, its reports, and their application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DoctorEvent {
    /// Intent: the doctor is about to be called.
    DoctorAsked {
        number: u32,
        attempt: u32,
        trigger: DoctorTrigger,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        prompt: Digest,
        prompt_bytes: usize,
        /// The most that the call can be billed for. Charged if its reply is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<TokenUsage>,
    },
    /// The doctor replied and the reply is on disk.
    DoctorReplied {
        number: u32,
        attempt: u32,
        response: Digest,
        usage: TokenUsage,
        cost_usd: Usd,
        duration_ms: u64,
        /// The line of a script that the reply came from.
        source: Option<String>,
    },
    /// The reply was not received completely, because of a restart, a timeout or a lost connection.
    /// The call is charged, by estimate if necessary.
    DoctorAbandoned {
        number: u32,
        attempt: u32,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// An attempt to consult the doctor failed.
    DoctorFailed {
        number: u32,
        attempt: u32,
        why: String,
        /// Whether there is no further attempt.
        given_up: bool,
    },
    /// The doctor's report is in `diagnostics.md`.
    DoctorReported {
        number: u32,
        iteration: u32,
        report: Box<DoctorReport>,
    },
    /// The proposals of a report were applied, apart from those that were rejected.
    DiagnosisApplied {
        number: u32,
        by: AppliedBy,
        signs: usize,
        edits: usize,
        /// The edited contract, in force from the next iteration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contract: Option<Digest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        refused: Vec<String>,
    },
}

impl DoctorEvent {
    pub(super) const TYPES: &[&str] = &[
        "doctor_asked",
        "doctor_replied",
        "doctor_abandoned",
        "doctor_failed",
        "doctor_reported",
        "diagnosis_applied",
    ];
}
