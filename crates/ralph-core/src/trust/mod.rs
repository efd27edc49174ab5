//! Authority over settings: one table for every key of every file that a repository contains.
//!
//! A repository is untrusted content. It may tune a run ([`TrustAuthority::Harmless`]) or propose
//! values that the user approves per repository and content ([`TrustAuthority::Proposal`]); all
//! other values require the user's own configuration or command line
//! ([`TrustAuthority::UserOnly`]). [`RULES`] is the table, [`judge`] applies it to one value.

mod judge;
mod proposal;
mod rules;

pub use judge::{is_weaker_sandbox, judge};
pub use proposal::{ApprovedProposal, TrustProposal, TrustScope, UserOnlyValue};
pub use rules::{RULES, TrustRule, rule};

/// The authority that a value needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAuthority {
    /// The user's own configuration, environment or command line; never a repository.
    UserOnly,
    /// A repository may propose the value, and the user approves exactly this content.
    Proposal,
    /// A repository's file suffices.
    Harmless,
}

/// A repository file that configures a run.
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
    /// Returns the file's name in a repository.
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

/// The values of a key that need no authority because they allow no more than the value in force
/// without the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustBound {
    /// Only the value in force itself.
    Same,
    /// Values at or before the value in force in this order.
    Order(&'static [&'static str]),
    /// Numbers up to the value in force.
    AtMost,
    /// Numbers up to the value in force; 0 means no limit.
    Limit,
    /// Subsets of the list in force.
    Within,
}

#[cfg(test)]
mod tests;
