//! Dispatches the command line to a command and returns its exit code.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use clap::FromArgMatches as _;
use ralph_app::AppError;
use ralph_app::config::Environment;

use super::command_line::{Cli, CliCommand, command_line};
use super::context::Context;
use super::exit::ExitCode;
use super::{
    adopt, allow, answer, argument_order, askpass, attach, audit, complete, completions, config,
    continue_run, cost, debug, demo, diagnose, diff, discard, export, gc, image, init, issue, lint,
    logs, merge, mode, models, pr, preflight, profile, proxy, prune, reindex, replay, resume, rm,
    run, runs, scm, seed_flags, selftest, serve, show, steer, task, tokens, top, trust, usage,
};
use crate::diagnostics_log::StderrLog;

/// How long the end of a command waits for the collector of telemetry.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the program: parses the arguments, executes the command and reports errors.
pub fn main() -> std::process::ExitCode {
    disable_process_inspection();
    if let Some(code) = askpass::answer_git() {
        return code;
    }
    if let Some(words) = complete::requested_words() {
        return complete::run(&words, &Context::new(process_environment())).into();
    }
    let arguments = seed_flags::command_for_flags(std::env::args_os().collect());
    let arguments: Vec<OsString> = argument_order::command_first(arguments);
    let matches = command_line().try_get_matches_from(&arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &arguments).into(),
    };
    let arguments = arguments.into_iter().skip(1).collect();
    let context = Context::new(process_environment()).with_arguments(arguments);
    let is_json = cli.command.is_json();
    let stderr = if let CliCommand::Serve(args) = &cli.command {
        args.stderr_log(context.app.environment())
    } else {
        Ok(StderrLog::default())
    };
    let (stderr, refused) = match stderr {
        Ok(stderr) => (stderr, None),
        Err(error) => (StderrLog::default(), Some(error)),
    };
    context.start_log(cli.log_verbosity(), stderr);
    let (redactor, output) = (context.app.redactor(), context.output());
    let telemetry = context.app.telemetry();
    let is_server = matches!(cli.command, CliCommand::Serve(_));
    let code = refused
        .map_or_else(|| dispatch(cli.command, context), Err)
        .unwrap_or_else(|error| {
            tracing::debug!(%error, "the command failed");
            let error = error.redacted(&redactor);
            output.print_error(&error, is_json);
            ExitCode::for_error(error.kind)
        });
    // The runs of this process may have spans that the collector does not have yet. A server has sent its
    // own.
    if !is_server {
        telemetry.flush(FLUSH_TIMEOUT);
    }
    code.into()
}

/// Reads the variables and the working directory of this process.
fn process_environment() -> Environment {
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    Environment::new(std::env::vars_os(), directory)
}

/// Prevents the user's other processes, such as those of a local sandbox, from reading the
/// credentials in this process's environment and memory.
#[cfg(target_os = "linux")]
fn disable_process_inspection() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A failure only removes the additional protection.
    let _set = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
fn disable_process_inspection() {}

fn dispatch(command: CliCommand, context: Context) -> Result<ExitCode, AppError> {
    use ralph_core::run::Command as Steer;
    let owned_context = context;
    let context = &owned_context;
    match command {
        CliCommand::Init(args) => block_on(init::run(&args, context)),
        CliCommand::Lint(args) => lint::run(&args, context),
        CliCommand::Run(args) => block_on(run::run(args, context)),
        CliCommand::Issue(args) => block_on(issue::run(args, context)),
        CliCommand::Poll(args) => block_on(issue::poll(args, context)),
        CliCommand::Runs(args) => block_on(runs::run(args, context)),
        CliCommand::Show(args) => block_on(show::run(args, context)),
        CliCommand::Logs(args) => block_on(logs::run(&args, context)),
        CliCommand::Attach(args) => block_on(attach::run(&args, context)),
        CliCommand::Top(args) => block_on(top::run(args, context)),
        CliCommand::Pause(args) => block_on(steer::run(&args, &Steer::Pause, context)),
        CliCommand::Resume(args) => block_on(resume::run(args, context)),
        CliCommand::Continue(args) => block_on(continue_run::run(args, context)),
        CliCommand::Rotate(args) => block_on(steer::run(&args, &Steer::Rotate, context)),
        CliCommand::Stop(args) => block_on(steer::run(&args, &Steer::Stop, context)),
        CliCommand::Profile(args) => block_on(profile::run(args, context)),
        CliCommand::Task(args) => block_on(task::run(args, context)),
        CliCommand::Diff(args) => block_on(diff::run(args, context)),
        CliCommand::Pr(args) => block_on(pr::run(args, context)),
        CliCommand::Merge(args) => block_on(merge::run(args, context)),
        CliCommand::Discard(args) => block_on(discard::run(args, context)),
        CliCommand::Export(args) => block_on(export::run(args, context)),
        CliCommand::Config(args) => config::run(&args, context),
        CliCommand::Cost(args) => cost::run(&args, context),
        CliCommand::Models(args) => models::run(args, context),
        CliCommand::Guardrail(args) => block_on(steer::guardrail(args, context)),
        CliCommand::Note(args) => block_on(steer::note(args, context)),
        CliCommand::Message(args) => block_on(steer::message(args, context)),
        CliCommand::Answer(args) => block_on(answer::run(args, context)),
        CliCommand::Mode(args) => block_on(mode::run(args, context)),
        CliCommand::Allow(args) => block_on(allow::run(args, context)),
        CliCommand::Diagnose(args) => block_on(diagnose::run(args, context)),
        CliCommand::Debug(args) => block_on(debug::run(args, context)),
        CliCommand::Audit(args) => audit::run(&args, context),
        CliCommand::Replay(args) => replay::run(&args, context),
        CliCommand::StoreToken(args) => tokens::store(&args, context),
        CliCommand::CheckToken(args) => block_on(tokens::check(args, context)),
        CliCommand::GetToken(args) => block_on(tokens::get(args, context)),
        CliCommand::Scm(args) => block_on(scm::run(args, context)),
        CliCommand::Image(args) => block_on(image::run(args, context)),
        CliCommand::Proxy(args) => proxy::run(&args, context),
        CliCommand::Serve(args) => serve::run(&args, owned_context),
        CliCommand::Demo(args) => demo::run(args, owned_context),
        CliCommand::Preflight(args) => block_on(preflight::run(args, context)),
        CliCommand::Trust(args) => block_on(trust::run(args, context)),
        CliCommand::Selftest(args) => block_on(selftest::run(args, context)),
        CliCommand::PruneSandboxes(args) => block_on(prune::run(args, context)),
        CliCommand::Adopt(args) => block_on(adopt::run(args, context)),
        CliCommand::Rm(args) => block_on(rm::run(args, context)),
        CliCommand::Gc(args) => block_on(gc::run(args, context)),
        CliCommand::Reindex(args) => block_on(reindex::run(args, owned_context)),
        CliCommand::Completions(args) => completions::run(&args, context),
    }
}

/// Runs an asynchronous command on one thread: a run mostly waits for its model and its commands,
/// so more threads would only add the cost of passing results between them.
pub(super) fn block_on(
    command: impl Future<Output = Result<ExitCode, AppError>>,
) -> Result<ExitCode, AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            AppError::runtime(
                "cannot start the async runtime",
                error.to_string(),
                "check the limits of this user (`ulimit -a`)",
            )
        })?;
    runtime.block_on(command)
}
