//! Summaries for decisions that are too many for a line each.
//!
//! Allowed and denied decisions have separate limits, so that made-up lookups cannot displace a
//! request that left the sandbox. Beyond a limit, decisions about the same host are counted: each
//! decision is in exactly one line, either alone or in the count of a summary.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use ralph_core::net::{EgressDecision, EgressReason};
use ralph_gate::{GateAuditRecord, SandboxIdentity, SandboxListener};
use serde::Serialize;

/// The limit of single lines in bytes, for allowed and denied decisions each.
const MAX_SINGLE_BYTES: u64 = 32 << 20;
/// The number of denied decisions that can have single lines in a burst; one more is added each
/// second.
const DENIED_BURST: u32 = 5_000;
/// The number of hosts with separate summaries, for allowed and denied ones each. Further hosts
/// share a summary.
const MAX_HOSTS: usize = 1_000;
/// The number of hosts that a shared summary names.
const MAX_EXAMPLES: usize = 3;
/// The longest delay of a decision's summary while there is space.
const MAX_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// The limit in bytes of the summaries that are written only because of this delay.
const MAX_TIMED_BYTES: u64 = 16 << 20;

/// Decides which decisions have a separate line, and counts the others.
#[derive(Debug, Default)]
pub(super) struct EgressSummarizer {
    allowed: EgressTally,
    denied: EgressTally,
    /// The used single lines for denied decisions.
    denied_lines_used: u32,
    refilled_at: Option<Timestamp>,
    timed_bytes: u64,
}

#[derive(Debug, Default)]
struct EgressTally {
    single_bytes: u64,
    summaries: HashMap<SummaryKey, PendingSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SummaryKey {
    listener: SandboxListener,
    /// `None` for the hosts that share a summary.
    endpoint: Option<(String, u16)>,
    reason: EgressReason,
}

/// Decisions that have no line yet.
#[derive(Debug)]
struct PendingSummary {
    summary: EgressSummary,
    /// The number of decisions that earlier lines have counted.
    reported: u64,
}

/// A line for many decisions. It has the fields of a single line that apply to several decisions.
#[derive(Debug, Clone, Serialize)]
pub(super) struct EgressSummary {
    /// The time of the first decision.
    at: Timestamp,
    /// The time of the last decision.
    last_at: Timestamp,
    #[serde(flatten)]
    identity: SandboxIdentity,
    listener: SandboxListener,
    /// Empty if the line summarizes many hosts.
    host: String,
    port: u16,
    #[serde(flatten)]
    decision: EgressDecision,
    /// The number of decisions in this line; no other line counts them.
    count: u64,
    bytes_out: u64,
    bytes_in: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
}

impl EgressSummarizer {
    /// Continues after the existing lines of a file.
    pub(super) fn resuming_after(bytes: u64) -> Self {
        let mut summarizer = Self::default();
        summarizer.allowed.single_bytes = bytes / 2;
        summarizer.denied.single_bytes = bytes / 2;
        summarizer
    }

    /// Returns whether a decision has a separate line of that many bytes.
    pub(super) fn takes_single_line(&mut self, record: &GateAuditRecord, bytes: u64) -> bool {
        let is_allowed = record.decision.is_allowed();
        let has_room = self.tally_mut(is_allowed).single_bytes + bytes <= MAX_SINGLE_BYTES;
        let is_single = has_room && (is_allowed || self.take_denied_slot(record.at));
        if is_single {
            self.tally_mut(is_allowed).single_bytes += bytes;
        }
        is_single
    }

    /// Counts a decision, and returns a summary if one is due: when the number of decisions has
    /// doubled, or after a delay.
    pub(super) fn count(&mut self, record: &GateAuditRecord) -> Option<EgressSummary> {
        let can_wait = self.timed_bytes > MAX_TIMED_BYTES;
        let tally = self.tally_mut(record.decision.is_allowed());
        let pending = tally.pending_mut(record);
        pending.add(record);
        let is_old = record.at.duration_since(pending.summary.at) >= MAX_WAIT;
        let is_doubled = pending.summary.count >= pending.reported.max(1);
        if !is_doubled && (!is_old || can_wait) {
            return None;
        }
        let summary = pending.take();
        if !is_doubled {
            // An estimate of the line's size.
            self.timed_bytes += 512;
        }
        Some(summary)
    }

    /// Returns the summaries of all decisions that have no line yet.
    pub(super) fn drain(&mut self) -> Vec<EgressSummary> {
        let tallies = [&mut self.allowed, &mut self.denied];
        let all = tallies
            .into_iter()
            .flat_map(|tally| tally.summaries.values_mut());
        let open = all.filter(|pending| pending.summary.count > 0);
        open.map(PendingSummary::take).collect()
    }

    fn tally_mut(&mut self, is_allowed: bool) -> &mut EgressTally {
        if is_allowed {
            &mut self.allowed
        } else {
            &mut self.denied
        }
    }

    /// Uses a single line for a denied decision, if the rate permits.
    fn take_denied_slot(&mut self, now: Timestamp) -> bool {
        let since = self
            .refilled_at
            .map(|then| now.duration_since(then).as_secs());
        if let Some(seconds @ 1..) = since {
            self.denied_lines_used = self
                .denied_lines_used
                .saturating_sub(u32::try_from(seconds).unwrap_or(u32::MAX));
            self.refilled_at = Some(now);
        }
        self.refilled_at.get_or_insert(now);
        let is_free = self.denied_lines_used < DENIED_BURST;
        self.denied_lines_used += u32::from(is_free);
        is_free
    }
}

impl EgressTally {
    fn pending_mut(&mut self, record: &GateAuditRecord) -> &mut PendingSummary {
        let mut key = SummaryKey {
            listener: record.listener,
            endpoint: Some((record.host.clone(), record.port)),
            reason: record.decision.reason,
        };
        if self.summaries.len() >= MAX_HOSTS && !self.summaries.contains_key(&key) {
            key.endpoint = None;
        }
        let is_shared = key.endpoint.is_none();
        self.summaries.entry(key).or_insert_with(|| {
            let (host, port) = if is_shared {
                (String::new(), 0)
            } else {
                (record.host.clone(), record.port)
            };
            PendingSummary {
                summary: EgressSummary {
                    at: record.at,
                    last_at: record.at,
                    identity: record.identity.clone(),
                    listener: record.listener,
                    host,
                    port,
                    decision: record.decision,
                    count: 0,
                    bytes_out: 0,
                    bytes_in: 0,
                    examples: Vec::new(),
                },
                reported: 0,
            }
        })
    }
}

impl PendingSummary {
    fn add(&mut self, record: &GateAuditRecord) {
        let summary = &mut self.summary;
        if summary.count == 0 {
            summary.at = record.at;
            summary.decision = record.decision;
        }
        summary.last_at = record.at;
        summary.count += 1;
        summary.bytes_out = summary.bytes_out.saturating_add(record.bytes_out);
        summary.bytes_in = summary.bytes_in.saturating_add(record.bytes_in);
        let is_example = summary.host.is_empty()
            && summary.examples.len() < MAX_EXAMPLES
            && !summary.examples.contains(&record.host);
        if is_example {
            summary.examples.push(record.host.clone());
        }
    }

    /// Returns the summary and resets the count.
    fn take(&mut self) -> EgressSummary {
        self.reported += self.summary.count;
        let taken = self.summary.clone();
        self.summary.count = 0;
        self.summary.bytes_out = 0;
        self.summary.bytes_in = 0;
        self.summary.examples.clear();
        taken
    }
}
