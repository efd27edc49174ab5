//! What the credential of a proxy is for, and what programs get instead of it.

use std::net::SocketAddr;

use ralph_core::secret::Secret;
use ralph_gate::{Route, RouteError};

use crate::tokens::{Agent, AuthMode, BaseUrl, Wire};

/// The API that requests are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// How it is spoken to.
    pub wire: Wire,
    /// Its address.
    pub address: BaseUrl,
}

impl Upstream {
    /// Returns the API of an agent, or another one that speaks like it; none if the agent's is not known.
    pub fn of(agent: &Agent, target: Option<&BaseUrl>) -> Option<Self> {
        let wire = agent.wire?;
        let own = || BaseUrl::parse(wire.own_api()).ok();
        let address = target.cloned().or_else(own)?;
        Some(Self { wire, address })
    }

    /// Returns the route of a credential to it.
    pub fn route(&self, mode: AuthMode, secret: Secret) -> Result<Route, RouteError> {
        let address = self.address.as_str();
        let route = match (self.wire, mode) {
            (Wire::AnthropicMessages, AuthMode::Oauth) => Route::anthropic_login(secret)?,
            (Wire::AnthropicMessages, AuthMode::ApiKey) => Route::anthropic_key(secret)?,
            (Wire::AnthropicMessages, AuthMode::Gateway) => {
                Route::anthropic_compatible("anthropic", address, secret)?
            }
            (Wire::OpenAiResponses | Wire::OpenAiChat, _) => Route::openai(secret)?,
        };
        Ok(route.at(address)?.at_root())
    }

    /// Returns the variables that a program needs to use it.
    pub fn variables(
        &self,
        mode: AuthMode,
        route: &Route,
        address: SocketAddr,
    ) -> Vec<(String, String)> {
        variables(self.wire, mode, route, address)
    }
}

/// Returns the variables that a program needs to send its requests through here.
pub fn variables(
    wire: Wire,
    mode: AuthMode,
    route: &Route,
    address: SocketAddr,
) -> Vec<(String, String)> {
    let (base, credential) = match (wire, mode) {
        (Wire::AnthropicMessages, AuthMode::Oauth) => {
            ("ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN")
        }
        (Wire::AnthropicMessages, AuthMode::ApiKey) => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        (Wire::AnthropicMessages, AuthMode::Gateway) => {
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
        }
        (Wire::OpenAiResponses | Wire::OpenAiChat, _) => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    };
    vec![
        (base.to_owned(), route.base_url(address)),
        (credential.to_owned(), route.phantom().as_str().to_owned()),
    ]
}
