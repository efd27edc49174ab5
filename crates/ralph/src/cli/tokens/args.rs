//! The arguments of the token commands.

use clap::{Args, ValueEnum};
use ralph_app::tokens::{AgentName, AuthMode, BaseUrl};

/// Which credential is meant.
#[derive(Debug, Args)]
pub(in crate::cli) struct TokenArgs {
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
pub(in crate::cli) struct StoreTokenArgs {
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

/// How an agent authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum AuthName {
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
pub(in crate::cli) enum StoreName {
    /// The macOS keychain
    Keychain,
    /// The Linux keyring
    SecretTool,
    /// A file in the state directory, not encrypted
    File,
}
