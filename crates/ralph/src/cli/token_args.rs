//! What can be typed about credentials.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;
use crate::tokens::{AgentName, AuthMode, BaseUrl};

/// Which credential is meant.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The agent
    #[arg(long, value_name = "NAME", default_value = AgentName::DEFAULT, value_parser = AgentName::parse)]
    pub agent: AgentName,
    /// How it authenticates; without it any way will do
    #[arg(long, value_enum, value_name = "MODE")]
    pub auth: Option<AuthName>,
    /// Use only this place
    #[arg(long, value_enum, value_name = "PLACE")]
    pub store: Option<StoreName>,
}

/// Arguments of `store-token`.
#[derive(Debug, Args)]
pub struct StoreTokenArgs {
    /// Which credential is meant.
    #[command(flatten)]
    pub token: TokenArgs,
    /// Send it to this API only, such as a gateway's
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    pub base_url: Option<BaseUrl>,
    /// Keep it without asking the API whether it is good
    #[arg(long)]
    pub no_validate: bool,
}

/// Arguments of `proxy`.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// The agent whose API is spoken
    #[arg(long, value_name = "NAME", default_value = AgentName::DEFAULT, value_parser = AgentName::parse)]
    pub agent: AgentName,
    /// Listen here
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:18080")]
    pub listen: SocketAddr,
    /// Send requests to this API instead of the provider's own
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    pub target: Option<BaseUrl>,
    /// End after this time without a request, such as 300s; 0 never does
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration::parse)]
    pub idle_timeout: Duration,
}

/// How an agent authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthName {
    /// With the token of a subscription
    Oauth,
    /// With a key that is billed by use
    #[value(alias = "api_key")]
    ApiKey,
    /// With the key of a gateway that has an address of its own
    Gateway,
}

impl From<AuthName> for AuthMode {
    fn from(name: AuthName) -> Self {
        match name {
            AuthName::Oauth => Self::Oauth,
            AuthName::ApiKey => Self::ApiKey,
            AuthName::Gateway => Self::Gateway,
        }
    }
}

/// Where credentials are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreName {
    /// The macOS keychain
    Keychain,
    /// The Linux keyring
    SecretTool,
    /// A file in the state directory, not encrypted
    File,
}
