//! From the command line to a command and back to an exit code.

use std::ffi::OsString;
use std::future::Future;

use clap::Parser as _;

use super::args::{Cli, Command};
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::{
    allow, audit, completions, debug, demo, diagnose, errand, export, image, init, lint, logs,
    models, order, preflight, profile, proxy, prune, replay, resume, run, runs, selftest, show,
    steer, task, tokens, trust, usage,
};
use crate::config::Environment;

/// Runs the program: parses the arguments, does what they say, reports what went wrong.
pub fn main() -> std::process::ExitCode {
    keep_private();
    let arguments: Vec<OsString> = order::command_first(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &arguments).into(),
    };
    let context = Context::new(Environment::read());
    let is_json = cli.command.is_json();
    let ended = dispatch(cli.command, &context).unwrap_or_else(|error| {
        let error = error.redacted(&context.redactor());
        context.output().error(&error, is_json);
        error.code
    });
    ended.into()
}

/// Keeps the user's other processes, such as those of a local sandbox, from reading the credentials
/// in this one's environment and memory.
#[cfg(target_os = "linux")]
fn keep_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Where it cannot be done, nothing is worse than without it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
}

#[cfg(not(target_os = "linux"))]
fn keep_private() {}

fn dispatch(command: Command, context: &Context) -> Result<ExitCode, CliError> {
    use ralph_core::run::Command as Steer;
    match command {
        Command::Init(args) => init::run(&args, context),
        Command::Lint(args) => lint::run(&args, context),
        Command::Run(args) => wait_for(run::run(args, context)),
        Command::Runs(args) => runs::run(&args, context),
        Command::Show(args) => show::run(&args, context),
        Command::Logs(args) => logs::run(&args, context),
        Command::Pause(args) => steer::run(&args, &Steer::Pause, context),
        Command::Resume(args) => wait_for(resume::run(args, context)),
        Command::Rotate(args) => steer::run(&args, &Steer::Rotate, context),
        Command::Stop(args) => steer::run(&args, &Steer::Stop, context),
        Command::Profile(args) => profile::run(&args, context),
        Command::Task(args) => task::run(&args, context),
        Command::Export(args) => wait_for(export::run(args, context)),
        Command::Models(args) => models::run(args, context),
        Command::Guardrail(args) => wait_for(errand::guardrail(args, context)),
        Command::Note(args) => wait_for(errand::note(args, context)),
        Command::Message(args) => wait_for(errand::message(args, context)),
        Command::Allow(args) => wait_for(allow::run(args, context)),
        Command::Diagnose(args) => wait_for(diagnose::run(args, context)),
        Command::Debug(args) => wait_for(debug::run(args, context)),
        Command::Audit(args) => audit::run(&args, context),
        Command::Replay(args) => replay::run(&args, context),
        Command::StoreToken(args) => tokens::store(&args, context),
        Command::CheckToken(args) => wait_for(tokens::check(args, context)),
        Command::GetToken(args) => wait_for(tokens::get(args, context)),
        Command::Image(args) => wait_for(image::run(args, context)),
        Command::Proxy(args) => proxy::run(&args, context),
        Command::Demo(args) => wait_for(demo::run(args, context)),
        Command::Preflight(args) => wait_for(preflight::run(args, context)),
        Command::Trust(args) => wait_for(trust::run(args, context)),
        Command::Selftest(args) => wait_for(selftest::run(args, context)),
        Command::PruneSandboxes(args) => wait_for(prune::run(args, context)),
        Command::Completions(args) => completions::run(&args, context),
    }
}

/// Starts the machinery for commands that do several things at once, and only for those. One thread
/// is enough: a run waits for its model and its commands, and handing each of their answers from one
/// thread to another would cost more than what is done with it.
pub(super) fn wait_for(
    command: impl Future<Output = Result<ExitCode, CliError>>,
) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CliError::runtime(
                "cannot start",
                error.to_string(),
                "look at the limits of this user (`ulimit -a`)",
            )
        })?;
    runtime.block_on(command)
}
