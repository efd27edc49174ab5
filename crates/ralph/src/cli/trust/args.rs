//! The arguments of `ralph trust`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TrustArgs {
    /// The repository, or a task file in it [default: the working directory]
    pub path: Option<PathBuf>,
    #[command(flatten)]
    pub action: TrustActionArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The actions of `trust`; without one it shows the proposals and asks.
#[derive(Debug, Args)]
pub(in crate::cli) struct TrustActionArgs {
    /// Approve all proposals without asking
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub yes: bool,
    /// List the approvals of all repositories
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    pub list: bool,
    /// Revoke all approvals of the repository
    #[arg(long)]
    pub revoke: bool,
}
