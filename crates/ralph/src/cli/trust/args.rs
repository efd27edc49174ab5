//! The arguments of `ralph trust`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TrustArgs {
    /// The repository, or a task file in it [default: the working directory]
    pub path: Option<PathBuf>,
    /// What to do besides showing.
    #[command(flatten)]
    pub task: TrustActionArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `trust` does besides showing.
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
