//! Runs the first task, prints its results, and serves the dashboard.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use ralph_app::AppError;
use ralph_app::planning::{self, PlanPurpose};
use ralph_app::runs::{RunStart, UnfinishedRunPolicy};
use ralph_core::id::RunId;
use ralph_core::image::ImageEffort;
use ralph_server::has_dashboard;

use super::location::DemoLocation;
use super::project::SLUG;
use super::served_runs;
use crate::cli::context::Context;
use crate::cli::drive::drive;
use crate::cli::exit::ExitCode;
use crate::cli::{run as run_command, serve};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DemoArgs {
    /// Create the demo in this directory instead of a temporary one
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Serve the dashboard even if standard output is not a terminal
    #[arg(long, conflicts_with = "no_serve")]
    serve: bool,
    /// End after the first run, without the dashboard
    #[arg(long)]
    no_serve: bool,
    /// Serve the dashboard on this port [default: any free one]
    #[arg(long, conflicts_with = "no_serve")]
    port: Option<u16>,
}

impl DemoArgs {
    /// Returns whether the dashboard is served. A script that reads the output expects an end.
    fn serves(&self) -> bool {
        self.serve || (!self.no_serve && io::stdout().is_terminal() && has_dashboard())
    }
}

/// Runs the first task. If it succeeds, serves the dashboard until a signal.
pub(in crate::cli) fn run(args: DemoArgs, context: Context) -> Result<ExitCode, AppError> {
    serve::block_on(run_demo(args, context))
}

async fn run_demo(args: DemoArgs, context: Context) -> Result<ExitCode, AppError> {
    let (serves, port) = (args.serves(), args.port.unwrap_or(0));
    let now = context.app.clock().now();
    let location = DemoLocation::prepare(args.dir, context.app.environment(), now)?;
    let context = context.with_state_dir(&location.state());
    let code = run_first_task(&location, &context).await?;
    if code != ExitCode::Success {
        return Ok(code);
    }
    if !serves {
        let more = if has_dashboard() {
            "`ralph demo --serve` also shows this run and three others in a browser.\n"
        } else {
            "This build has no dashboard: it was made without Node 20 or newer.\n"
        };
        print(&context, more)?;
        return Ok(code);
    }
    Box::pin(served_runs::serve(&location, port, context)).await
}

/// Creates the project, runs its task and prints the locations of the results.
async fn run_first_task(location: &DemoLocation, context: &Context) -> Result<ExitCode, AppError> {
    let app = &context.app;
    SLUG.create(location, &app.providers()?).await?;
    print(
        context,
        &format!(
            "A small project with failing tests is in {}\n\
             Its task has four boxes. A scripted model works on it: one wrong patch, one red test,\n\
             one early claim of success. The sandbox, git, the checks and the clean room are real.\n\n",
            location.repository(SLUG.name).display()
        ),
    )?;
    let request = SLUG.request(location);
    let task = planning::read_task(&request.file, app)?;
    let planned = planning::plan_run(&request, task, app, PlanPurpose::Start).await?;
    let start = RunStart {
        planned,
        effort: ImageEffort::Reuse,
        unfinished_runs: UnfinishedRunPolicy::Allow,
        on_reserved: None,
    };
    let (run, mode) = Box::pin(run_command::prepare(start, false, context)).await?;
    let plan = &run.journal().state().plan;
    let (id, branch) = (plan.run.clone(), plan.branch.clone());
    let code = Box::pin(drive(run, mode)).await?;
    print_results((&id, &branch), location, context)?;
    Ok(code)
}

fn print_results(
    (id, branch): (&RunId, &str),
    location: &DemoLocation,
    context: &Context,
) -> Result<(), AppError> {
    let run_dir = context.app.state_dir()?.run(id);
    let pull = run_dir.state()?.pull;
    let pull = pull.map_or_else(|| "none".to_owned(), |pull| pull.url);
    let text = format!(
        "\nResults:\n\
         \x20 project       {project}\n\
         \x20 the work      git -C {project} diff main..{branch}\n\
         \x20 pull request  {pull}\n\
         \x20 iterations    {iterations}\n\
         \x20 journal       {journal}\n\
         The demo has a state directory of its own. To inspect the run:\n\
         \x20 export RALPH_HOME={state}\n\
         \x20 ralph show {id} · ralph replay {id} · ralph logs {id} · ralph audit {id}\n",
        project = location.repository(SLUG.name).display(),
        iterations = run_dir.root().join("iterations").display(),
        journal = run_dir.journal().display(),
        state = location.state(),
    );
    print(context, &text)
}

fn print(context: &Context, text: &str) -> Result<(), AppError> {
    context.output().print_text(text).map(drop)
}
