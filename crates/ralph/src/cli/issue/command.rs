//! Runs the two commands.

use std::sync::Arc;

use ralph_app::AppError;
use ralph_app::issues::{
    IssueCaller, IssueRepository, PollEnd, PollOptions, poll_issues, work_on_issue,
};
use tokio::sync::watch;

use super::args::{IssueArgs, PollArgs};
use super::output::{IssueOutput, RunDisplay};
use crate::cli::context::Context;
use crate::cli::drive::forward_signals;
use crate::cli::exit::ExitCode;

/// Works on one issue.
pub(in crate::cli) async fn run(args: IssueArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (interrupt, interrupted) = watch::channel(false);
    let signals = tokio::task::spawn(forward_signals(interrupt));
    let repository =
        Arc::new(IssueRepository::open(args.work.repo.as_deref(), &context.app).await?);
    let output = IssueOutput::new(context, args.json, RunDisplay::Alone)?;
    let options = args.work.options();
    let work = work_on_issue(
        (&repository, args.number),
        IssueCaller::Person,
        &options,
        &output,
        interrupted,
    );
    let end = Box::pin(work).await;
    signals.abort();
    Ok(ExitCode::for_issue(&end?))
}

/// Works on every issue that is ready.
pub(in crate::cli) async fn poll(args: PollArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (interrupt, interrupted) = watch::channel(false);
    let signals = tokio::task::spawn(forward_signals(interrupt));
    let repository =
        Arc::new(IssueRepository::open(args.work.repo.as_deref(), &context.app).await?);
    let workers = args.workers.unwrap_or(repository.settings().workers);
    let display = if workers == 1 {
        RunDisplay::Alone
    } else {
        RunDisplay::BesideOthers
    };
    let output = Arc::new(IssueOutput::new(context, args.json, display)?);
    let options = PollOptions {
        interval: args.interval,
        timeout: args.timeout,
        workers: usize::try_from(workers).unwrap_or(1),
        run: args.work.options(),
    };
    let polled = poll_issues(repository, options, output.clone(), interrupted).await;
    signals.abort();
    output.print_end(match polled? {
        PollEnd::TimedOut => "poll timeout reached",
        PollEnd::Interrupted => "poll interrupted",
    });
    Ok(ExitCode::Success)
}
