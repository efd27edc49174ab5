//! What went wrong, from a status or from a program's own words about an error.
//!
//! Only what a program says about an error is looked at, never what its model or a tool said.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, Ended};

use super::text;

/// What the gate's own answers begin with. A 402 with these words is the run's budget; without, the
/// provider wants money.
const GATE: &str = "ralph: ";

/// Tells what an answer with this status means.
pub(super) fn by_status(status: u16, words: &str, wait: Option<Duration>) -> AgentEnd {
    let why = text::text(words);
    match status {
        401 | 403 => AgentEnd::Unauthorized { why },
        402 if words.contains(GATE) => AgentEnd::OutOfBudget,
        402 | 429 => AgentEnd::Quota { why, wait },
        408 | 409 | 425 | 500..=599 => AgentEnd::Overloaded { why },
        _ => AgentEnd::Crashed { why },
    }
}

/// What programs say when there is no status, in lower case.
const WORDS: [(&str, Class); 19] = [
    ("missing environment variable", Class::Unauthorized),
    ("not logged in", Class::Unauthorized),
    ("usage limit", Class::Quota),
    ("quota exceeded", Class::Quota),
    ("credit balance", Class::Quota),
    ("high demand", Class::Overloaded),
    ("stream disconnected", Class::Overloaded),
    ("connection failed", Class::Overloaded),
    ("connection to the api was lost", Class::Overloaded),
    ("waiting for network", Class::Overloaded),
    ("connection error", Class::Overloaded),
    ("connection refused", Class::Overloaded),
    ("connection reset", Class::Overloaded),
    ("econnrefused", Class::Overloaded),
    ("econnreset", Class::Overloaded),
    ("enotfound", Class::Overloaded),
    ("fetch failed", Class::Overloaded),
    ("request timed out", Class::Overloaded),
    ("overloaded", Class::Overloaded),
];

#[derive(Debug, Clone, Copy)]
enum Class {
    Unauthorized,
    Quota,
    Overloaded,
}

/// Tells what a program's words about an error mean: by the status in them, else by the words.
pub(super) fn by_words(words: &str) -> AgentEnd {
    if let Some(status) = status_in(words) {
        return by_status(status, words, None);
    }
    let lower = words.to_lowercase();
    let class = WORDS.iter().find(|(known, _)| lower.contains(known));
    let why = text::text(words);
    match class.map(|(_, class)| class) {
        Some(Class::Unauthorized) => AgentEnd::Unauthorized { why },
        Some(Class::Quota) => AgentEnd::Quota { why, wait: None },
        Some(Class::Overloaded) => AgentEnd::Overloaded { why },
        None => AgentEnd::Crashed { why },
    }
}

/// Finds the status in words such as `unexpected status 401 Unauthorized` or `last status: 429`.
fn status_in(words: &str) -> Option<u16> {
    words.match_indices("status").find_map(|(start, word)| {
        let rest = words[start + word.len()..].trim_start_matches([':', ' ']);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (digits == 3).then(|| rest[..digits].parse().ok())?
    })
}

/// Tells what the end of a process means that has not said how it went; `last` is what it said
/// before.
pub(super) fn by_end(ended: Ended, stderr: &str, last: &str) -> AgentEnd {
    if ended == Ended::TimedOut {
        return AgentEnd::TimedOut;
    }
    AgentEnd::Crashed {
        why: reason(ended, stderr, last),
    }
}

/// Returns how a process ended, with its last words.
pub(super) fn reason(ended: Ended, stderr: &str, last: &str) -> String {
    let said = [text::last_line(stderr), text::last_line(last)];
    let why = match said.iter().find(|line| !line.is_empty()) {
        Some(line) => format!("{ended}: {line}"),
        None => format!("{ended}, without a word"),
    };
    text::text(&why)
}
