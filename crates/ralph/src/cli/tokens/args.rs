//! The arguments of the token commands.

use clap::{Args, ValueEnum};
use ralph_app::tokens::{AgentName, AuthMode, BaseUrl};

/// Arguments that select a credential.
#[derive(Debug, Args)]
pub(in crate::cli) struct TokenArgs {
    /// The agent
    #[arg(long, value_name = "NAME", default_value = AgentName::DEFAULT, value_parser = AgentName::parse)]
    pub agent: AgentName,
    /// The authentication mode; without it, any mode is accepted
    #[arg(long, value_enum, value_name = "MODE")]
    pub auth: Option<AuthName>,
    /// Use only this token store
    #[arg(long, value_enum, value_name = "STORE")]
    pub store: Option<StoreName>,
}

/// Arguments of `store-token`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StoreTokenArgs {
    #[command(flatten)]
    pub token: TokenArgs,
    /// Send it to this API only, such as a gateway's
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    pub base_url: Option<BaseUrl>,
    /// Store it without validating it with the API
    #[arg(long)]
    pub no_validate: bool,
}

/// The authentication modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum AuthName {
    /// The token of a subscription
    Oauth,
    /// A key that is billed by use
    #[value(alias = "api_key")]
    ApiKey,
    /// The key of a gateway that has its own address
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

/// The stores of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum StoreName {
    /// The macOS keychain
    Keychain,
    /// The Linux keyring
    SecretTool,
    /// A file in the state directory, not encrypted
    File,
}
