//! `ralph selftest`: tests a sandbox provider on this machine.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::checks::{SelftestRequest, run_selftest};
use tokio::sync::watch;

use super::checks::CheckReport;
use super::context::Context;
use super::exit::ExitCode;
use super::prune::ProviderName;

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub(super) struct SelftestArgs {
    /// The sandbox provider
    #[arg(
        long = "type",
        value_enum,
        value_name = "TYPE",
        default_value = "docker"
    )]
    pub provider: ProviderName,
    /// Test this coding agent [default: claude]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Option<String>,
    /// Use no token and no network: a local replacement for the provider answers the agent
    #[arg(long)]
    pub offline: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Tests a provider. A failed check sets the exit code to 1.
pub(super) async fn run(args: SelftestArgs, context: &Context) -> Result<ExitCode, AppError> {
    let mut checks = CheckReport::new("selftest", context, args.json);
    // Signals end the test; nothing else cancels it.
    let (_cancel, cancelled) = watch::channel(false);
    let request = SelftestRequest {
        provider: args.provider.into(),
        agent: args.agent,
        offline: args.offline,
        cancelled,
    };
    Box::pin(run_selftest(&request, &context.app, &mut checks)).await?;
    checks.finish()
}
