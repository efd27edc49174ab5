//! Lines of `ralph show` about hosts, provider tools and messages.

use ralph_app::format;
use ralph_app::runs::{BlockedHostEntry, MessageEntry, ShownProviderTool, SteeringDetails};
use ralph_core::event::MessageState;

use crate::terminal::lines::field_line;
use crate::terminal::styled_line::StyledLine;

/// The number of hosts in the text output; the JSON contains all.
const MAX_LISTED_HOSTS: usize = 20;
/// The number of characters of a message in the text output.
const MAX_MESSAGE_CHARACTERS: usize = 100;

/// Returns the lines of the text output, which may be empty.
pub(super) fn steering_lines(details: &SteeringDetails) -> Vec<StyledLine> {
    let blocked = details.blocked_hosts.iter().take(MAX_LISTED_HOSTS);
    let scope = if details.is_over {
        " for later runs"
    } else {
        ""
    };
    let mut fields: Vec<(&str, String)> = blocked
        .map(|blocked| {
            let BlockedHostEntry { host, allow } = blocked;
            ("blocked", format!("{host} · `{allow}` allows it{scope}"))
        })
        .collect();
    let more = details.blocked_hosts.len().saturating_sub(MAX_LISTED_HOSTS);
    if more > 0 {
        fields.push(("blocked", format!("and {more} more, in `--json`")));
    }
    if details.further_blocked > 0 {
        let hosts = format::plural(details.further_blocked, "further host", "further hosts");
        fields.push(("blocked", format!("and {hosts}, in `egress.jsonl`")));
    }
    let tools = details.provider_tools.iter().take(MAX_LISTED_HOSTS);
    fields.extend(tools.map(|tool| {
        let ShownProviderTool {
            provider,
            what,
            action,
        } = tool;
        ("provider", format!("{action}: {what} at {provider}"))
    }));
    if !details.allowed_hosts.is_empty() {
        fields.push(("allowed", details.allowed_hosts.join(", ")));
    }
    let messages = details.messages.iter();
    fields.extend(messages.map(|message| ("message", message_line(message))));
    let mut last = "";
    let lines = fields.iter().map(|(name, text)| {
        // Consecutive fields with the same name show it only once.
        let shown = if *name == last { "" } else { name };
        last = name;
        field_line(shown, text)
    });
    lines.collect()
}

fn message_line(message: &MessageEntry) -> String {
    let state = match message.state {
        MessageState::Queued => "queued",
        MessageState::Delivered => "delivered",
        MessageState::Acknowledged => "acknowledged",
    };
    let words = message
        .text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let mut shown: String = words.chars().take(MAX_MESSAGE_CHARACTERS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    format!("{state}: {shown}")
}
