//! The command.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{docker, local};
use crate::cli::checks::{CheckOutcome, CheckReport};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::maintenance_args::{ProviderName, SelftestArgs};
use crate::cli::planning;

/// The first check of every provider.
pub(super) const PREREQUISITES: &str = "prerequisites";

/// Tries out a provider. What is wrong makes the exit code 1.
pub(in crate::cli) async fn run(
    args: SelftestArgs,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let mut checks = CheckReport::new("selftest", context, args.json);
    match args.provider {
        ProviderName::Docker => Box::pin(docker::run(&args, &mut checks, context)).await?,
        ProviderName::Local => Box::pin(local::run(&mut checks, context)).await?,
    }
    checks.finish()
}

/// Looks for the programs that every run needs.
pub(super) async fn prerequisites(context: &Context) -> CheckOutcome {
    match planning::require_git(&context.git_read_only()).await {
        Ok(version) => CheckOutcome::Passed(version.trim().to_owned()),
        Err(error) => error.into(),
    }
}

/// Says of checks that they were not made.
pub(super) fn skip_checks(
    checks: &mut CheckReport,
    names: &[&'static str],
    why: &str,
) -> Result<(), CliError> {
    for name in names {
        checks.add(name, CheckOutcome::NotRun(why.to_owned()))?;
    }
    Ok(())
}

/// Listens to signals that tell the program to end. One that comes while nobody asks is not lost.
pub(super) struct Interrupts(Option<[Signal; 3]>);

impl Interrupts {
    /// Listens from now on.
    pub(super) fn listen() -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        match kinds.map(signal) {
            [Ok(terminal), Ok(terminate), Ok(hangup)] => Self(Some([terminal, terminate, hangup])),
            _ => Self(None),
        }
    }

    /// Does the work until a signal comes, which makes none of it.
    pub(super) async fn run_until_signal<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let Some([terminal, terminate, hangup]) = &mut self.0 else {
            return Some(work.await);
        };
        tokio::select! {
            biased;
            _ = terminal.recv() => None,
            _ = terminate.recv() => None,
            _ = hangup.recv() => None,
            done = work => Some(done),
        }
    }
}
