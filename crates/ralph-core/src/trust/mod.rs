//! Who may say what: one table for every key of every file that a repository brings along.
//!
//! A repository is content from others. It may tune a run ([`TrustAuthority::Harmless`]), it may propose
//! what the user approves per repository and content ([`TrustAuthority::Proposal`]), and some things are
//! decided by the user's own configuration or command line alone ([`TrustAuthority::UserOnly`]).
//! [`RULES`] is the table, [`judge`] applies it to one value.

mod judge;
mod proposal;
mod rules;

pub use judge::{is_weaker_sandbox, judge};
pub use proposal::{ApprovedProposal, TrustProposal, TrustScope, UserOnlyValue};
pub use rules::{RULES, TrustRule, rule};

/// Who decides about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAuthority {
    /// The user's own configuration, environment or command line; a repository never does.
    UserOnly,
    /// A repository proposes it, and the user approves exactly this content.
    Proposal,
    /// A repository's file is enough.
    Harmless,
}

/// A file of a repository that configures a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustFile {
    /// `ralph.toml`
    Settings,
    /// `config/models.yaml`
    Models,
    /// `config/agents.toml`
    Agents,
    /// `.agent-loop/`
    AgentLoop,
    /// The front matter of a task file.
    Task,
    /// `.env`
    Dotenv,
}

impl TrustFile {
    /// Returns its name in a repository.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "ralph.toml",
            Self::Models => "config/models.yaml",
            Self::Agents => "config/agents.toml",
            Self::AgentLoop => ".agent-loop/",
            Self::Task => "task file",
            Self::Dotenv => ".env",
        }
    }

    /// Returns the file of the user's configuration directory with the same keys.
    pub fn user_file(self) -> Option<&'static str> {
        match self {
            Self::Settings => Some("ralph.toml"),
            Self::Models => Some("models.yaml"),
            Self::Agents => Some("agents.toml"),
            Self::AgentLoop | Self::Task | Self::Dotenv => None,
        }
    }
}

/// Which values of a key need no authority: they allow no more than the value in force without the
/// repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustBound {
    /// None but the value in force itself.
    Same,
    /// Values at or before the value in force in this order.
    Order(&'static [&'static str]),
    /// Numbers up to the value in force.
    AtMost,
    /// Numbers up to the value in force, where 0 means no limit.
    Limit,
    /// Lists whose items are all in the list in force.
    Within,
}

#[cfg(test)]
mod tests;
