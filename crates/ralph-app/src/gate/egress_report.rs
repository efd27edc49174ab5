//! The traffic of a run through its gate: decisions, blocked and allowed hosts.

use std::fs;
use std::path::Path;

use ralph_core::event::{EgressEvent, Event};
use ralph_core::net::{EgressDecider, EgressPolicy, EgressReason, EgressVerdict};
use ralph_core::plan::SuggestedHost;
use ralph_core::state::{RunState, host_entry};
use ralph_engine::durable;
use ralph_engine::journal;
use ralph_engine::store::RunDir;
use ralph_guest::available;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::AppError;

/// The number of bytes at the end of the log that are read.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// The traffic of a run through its gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EgressReport {
    /// `deny`, `allowlist` or `allow-all`; `None` if the sandbox has no gate.
    pub policy: Option<&'static str>,
    /// Hosts that commands could not reach and that are not allowed yet, oldest first.
    pub blocked: Vec<BlockedHost>,
    /// The number of further blocked hosts that were not recorded individually.
    pub further_blocked: u64,
    /// Hosts that the user allowed during the run.
    pub allowed: Vec<String>,
    /// Hosts named by the project's files, which only the user can allow.
    pub suggested: Vec<SuggestedHost>,
    /// The last decisions, oldest first.
    pub decisions: Vec<EgressEntry>,
    /// Whether earlier decisions are left out.
    pub cut: bool,
}

/// A host that commands could not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BlockedHost {
    /// As it is allowed: the port is named unless it is 80 or 443.
    pub host: String,
    pub at: jiff::Timestamp,
    pub reason: String,
    /// The command that ran at that moment, if it is known.
    pub command: Option<String>,
}

/// A decision of the gate, or many of them about one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EgressEntry {
    pub at: jiff::Timestamp,
    /// Empty if the entry summarizes many hosts.
    pub host: String,
    pub port: u16,
    pub verdict: EgressVerdict,
    pub reason: EgressReason,
    pub decider: EgressDecider,
    /// The method and path, if the gate could read them.
    #[serde(default)]
    pub request: Option<String>,
    /// The status of the response, if the gate could read it.
    #[serde(default)]
    pub status: Option<u16>,
    /// Bytes sent by the sandbox.
    pub bytes_out: u64,
    /// Bytes received by the sandbox.
    pub bytes_in: u64,
    /// The number of decisions.
    #[serde(default = "one")]
    pub count: u64,
    /// The command that ran at that moment, if it is known.
    #[serde(default)]
    pub command: Option<String>,
}

fn one() -> u64 {
    1
}

/// Describes the traffic of a run, with at most `limit` decisions.
pub fn egress_report(
    dir: &RunDir,
    state: &RunState,
    log: &Path,
    limit: usize,
) -> Result<EgressReport, AppError> {
    let network = state.plan.network.as_ref();
    let (decisions, cut) = last_decisions(log, limit)?;
    Ok(EgressReport {
        policy: network.map(|network| match network.policy {
            EgressPolicy::Deny => "deny",
            EgressPolicy::Allowlist(_) => "allowlist",
            EgressPolicy::AllowAll => "allow-all",
        }),
        blocked: blocked_hosts(dir, state)?,
        further_blocked: state.further_blocked,
        allowed: state.allowed_hosts.iter().cloned().collect(),
        suggested: network.map_or_else(Vec::new, |network| network.suggested.clone()),
        decisions,
        cut,
    })
}

fn blocked_hosts(dir: &RunDir, state: &RunState) -> Result<Vec<BlockedHost>, AppError> {
    let mut blocked: Vec<BlockedHost> = Vec::new();
    if state.blocked_hosts.is_empty() {
        return Ok(blocked);
    }
    for record in journal::read(&dir.journal())? {
        let Event::Egress(EgressEvent::HostBlocked {
            host,
            port,
            reason,
            command,
        }) = record.event
        else {
            continue;
        };
        let host = host_entry(&host, port);
        if state.blocked_hosts.contains(&host) && blocked.iter().all(|known| known.host != host) {
            blocked.push(BlockedHost {
                host,
                at: record.at,
                reason,
                command,
            });
        }
    }
    Ok(blocked)
}

/// Returns the last decisions in the log, and whether there are earlier ones.
fn last_decisions(log: &Path, limit: usize) -> Result<(Vec<EgressEntry>, bool), AppError> {
    let text = durable::tail(log, MAX_LOG_BYTES)?;
    let is_partial = fs::metadata(log).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES);
    // A line that is being written is not complete yet.
    let parsed = text
        .lines()
        .filter_map(|line| available(serde_json::from_str(line)));
    let mut entries: Vec<EgressEntry> = parsed.collect();
    let surplus = entries.len().saturating_sub(limit);
    entries.drain(..surplus);
    Ok((entries, surplus > 0 || is_partial))
}
