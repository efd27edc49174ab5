//! Tools that a model provider runs on its own machines, outside the sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A provider-side tool that a model request can enable. Each kind can carry data out of a sandbox:
/// the provider connects to a host, or stores a file, that the sandbox could not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderTool {
    /// The provider searches the web with queries that the model writes.
    WebSearch,
    /// The provider fetches pages that the model names.
    WebFetch,
    /// The provider runs code in its own container.
    CodeExecution,
    /// The provider connects to MCP servers and connectors that the request names.
    Mcp,
    /// The provider fetches images and documents from URLs in the request.
    Urls,
    /// The request refers to files, responses or conversations that the provider stores.
    Files,
    /// Request parameters unknown to ralph, which could enable any of the above.
    Parameters,
}

impl ProviderTool {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::WebSearch,
        Self::WebFetch,
        Self::CodeExecution,
        Self::Mcp,
        Self::Urls,
        Self::Files,
        Self::Parameters,
    ];

    /// Returns the name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
            Self::WebFetch => "web_fetch",
            Self::CodeExecution => "code_execution",
            Self::Mcp => "mcp",
            Self::Urls => "urls",
            Self::Files => "files",
            Self::Parameters => "parameters",
        }
    }

    /// Finds a kind by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

impl fmt::Display for ProviderTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The gate's treatment of one provider-side tool in a request.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProviderToolAction {
    /// The configuration allows it; the request was sent with it.
    Allowed,
    /// The request was sent without it.
    Removed,
    /// The request was not sent.
    Refused,
}

impl fmt::Display for ProviderToolAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allowed",
            Self::Removed => "removed",
            Self::Refused => "refused",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_serialized_form() {
        for tool in ProviderTool::ALL {
            assert_eq!(ProviderTool::parse(tool.name()), Some(tool));
            let json = serde_json::to_string(&tool).unwrap();
            assert_eq!(json, format!("\"{tool}\""));
        }
        assert_eq!(ProviderTool::parse("everything"), None);
    }
}
