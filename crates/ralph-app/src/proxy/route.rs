//! The route of a proxy's credential, and the variables that programs get instead.

use std::net::SocketAddr;

use ralph_core::secret::Secret;
use ralph_gate::{Route, RouteError};

use crate::tokens::{AgentAuth, AgentWire, AuthMode, BaseUrl};

/// The API that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyUpstream {
    pub wire: AgentWire,
    pub address: BaseUrl,
}

impl ProxyUpstream {
    /// Returns the API of an agent, or the given one with the same protocol. Returns `None` if the
    /// agent's API is unknown.
    pub fn for_agent(agent: &AgentAuth, target: Option<&BaseUrl>) -> Option<Self> {
        let wire = agent.wire?;
        let address = target.cloned().unwrap_or_else(|| default_address(wire));
        Some(Self { wire, address })
    }

    /// Returns the route of a credential to the API.
    pub fn route(&self, mode: AuthMode, secret: Secret) -> Result<Route, RouteError> {
        let address = self.address.as_str();
        let route = match (self.wire, mode) {
            (AgentWire::AnthropicMessages, AuthMode::Oauth) => Route::anthropic_login(secret)?,
            (AgentWire::AnthropicMessages, AuthMode::ApiKey) => Route::anthropic_key(secret)?,
            (AgentWire::AnthropicMessages, AuthMode::Gateway) => {
                Route::anthropic_compatible("anthropic", address, secret)?
            }
            (AgentWire::OpenAiResponses | AgentWire::OpenAiChat, _) => Route::openai(secret)?,
        };
        Ok(route.with_base_url(address)?.without_name_prefix())
    }

    /// Returns the variables that a program needs to use the API.
    pub fn variables(
        &self,
        mode: AuthMode,
        route: &Route,
        address: SocketAddr,
    ) -> Vec<(String, String)> {
        client_variables(self.wire, mode, route, address)
    }
}

fn default_address(wire: AgentWire) -> BaseUrl {
    BaseUrl::parse(wire.default_api()).expect("the default address of an API is valid")
}

/// Returns the variables that a program needs to send its requests through the proxy.
pub fn client_variables(
    wire: AgentWire,
    mode: AuthMode,
    route: &Route,
    address: SocketAddr,
) -> Vec<(String, String)> {
    let (base, credential) = match (wire, mode) {
        (AgentWire::AnthropicMessages, AuthMode::Oauth) => {
            ("ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN")
        }
        (AgentWire::AnthropicMessages, AuthMode::ApiKey) => {
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
        }
        (AgentWire::AnthropicMessages, AuthMode::Gateway) => {
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
        }
        (AgentWire::OpenAiResponses | AgentWire::OpenAiChat, _) => {
            ("OPENAI_BASE_URL", "OPENAI_API_KEY")
        }
    };
    vec![
        (base.to_owned(), route.base_url(address)),
        (
            credential.to_owned(),
            route.placeholder().as_str().to_owned(),
        ),
    ]
}
