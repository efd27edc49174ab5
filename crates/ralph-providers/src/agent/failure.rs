//! Classifies failures by HTTP status or by the agent's error message.
//!
//! Only error messages of the agent program are examined, never model or tool output.

use std::time::Duration;

use ralph_core::parse_value;
use ralph_core::ports::{AgentEnd, ExecStatus};

use super::text;

/// Prefix of the gate's own responses. A 402 with this prefix means that the run's budget is used
/// up; without it, the provider demands payment.
const GATE_PREFIX: &str = "ralph: ";

/// Classifies a response by its status.
pub(super) fn from_status(status: u16, message: &str, wait: Option<Duration>) -> AgentEnd {
    let why = text::truncate_text(message);
    match status {
        401 | 403 => AgentEnd::Unauthorized { why },
        402 if message.contains(GATE_PREFIX) => AgentEnd::OutOfBudget,
        402 | 429 => AgentEnd::Quota { why, wait },
        408 | 409 | 425 | 500..=599 => AgentEnd::Overloaded { why },
        _ => AgentEnd::Crashed { why },
    }
}

/// Error phrases of agents that report no status, in lower case.
const MESSAGE_PATTERNS: [(&str, FailureClass); 19] = [
    ("missing environment variable", FailureClass::Unauthorized),
    ("not logged in", FailureClass::Unauthorized),
    ("usage limit", FailureClass::Quota),
    ("quota exceeded", FailureClass::Quota),
    ("credit balance", FailureClass::Quota),
    ("high demand", FailureClass::Overloaded),
    ("stream disconnected", FailureClass::Overloaded),
    ("connection failed", FailureClass::Overloaded),
    ("connection to the api was lost", FailureClass::Overloaded),
    ("waiting for network", FailureClass::Overloaded),
    ("connection error", FailureClass::Overloaded),
    ("connection refused", FailureClass::Overloaded),
    ("connection reset", FailureClass::Overloaded),
    ("econnrefused", FailureClass::Overloaded),
    ("econnreset", FailureClass::Overloaded),
    ("enotfound", FailureClass::Overloaded),
    ("fetch failed", FailureClass::Overloaded),
    ("request timed out", FailureClass::Overloaded),
    ("overloaded", FailureClass::Overloaded),
];

#[derive(Debug, Clone, Copy)]
enum FailureClass {
    Unauthorized,
    Quota,
    Overloaded,
}

/// Classifies an error message by the status it contains, else by its wording.
pub(super) fn from_message(message: &str) -> AgentEnd {
    if let Some(status) = status_in(message) {
        return from_status(status, message, None);
    }
    let lower = message.to_lowercase();
    let class = MESSAGE_PATTERNS
        .iter()
        .find(|(known, _)| lower.contains(known));
    let why = text::truncate_text(message);
    match class.map(|(_, class)| class) {
        Some(FailureClass::Unauthorized) => AgentEnd::Unauthorized { why },
        Some(FailureClass::Quota) => AgentEnd::Quota { why, wait: None },
        Some(FailureClass::Overloaded) => AgentEnd::Overloaded { why },
        None => AgentEnd::Crashed { why },
    }
}

/// Finds the status in text such as `unexpected status 401 Unauthorized` or `last status: 429`.
fn status_in(message: &str) -> Option<u16> {
    message.match_indices("status").find_map(|(start, word)| {
        let rest = message[start + word.len()..].trim_start_matches([':', ' ']);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (digits == 3).then(|| parse_value(&rest[..digits]))?
    })
}

/// Classifies the exit of a process that did not report a result; `last` is its last message.
pub(super) fn from_exit(ended: ExecStatus, stderr: &str, last: &str) -> AgentEnd {
    if ended == ExecStatus::TimedOut {
        return AgentEnd::TimedOut;
    }
    AgentEnd::Crashed {
        why: exit_reason(ended, stderr, last),
    }
}

/// Describes how a process ended, including its last output.
pub(super) fn exit_reason(ended: ExecStatus, stderr: &str, last: &str) -> String {
    let outputs = [text::last_line(stderr), text::last_line(last)];
    let why = match outputs.iter().find(|line| !line.is_empty()) {
        Some(line) => format!("{ended}: {line}"),
        None => format!("{ended}, without any output"),
    };
    text::truncate_text(&why)
}
