//! `ralph demo`: a real run on a small project with a task and a scripted model.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use ralph_app::AppError;
use ralph_app::planning::{self, PlanPurpose, RunRequest, TASK_FILE};
use ralph_app::providers::Providers;
use ralph_app::runs::{RunStart, UnfinishedRunPolicy};
use ralph_core::image::ImageEffort;

use super::context::Context;
use super::drive::drive;
use super::exit::ExitCode;
use super::run;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Create the demo in this directory instead of a temporary one
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// The project before the run.
const PROJECT_FILES: [(&str, &str); 3] = [
    ("slug.sh", include_str!("../../demo/slug.sh")),
    ("tests/run.sh", include_str!("../../demo/tests/run.sh")),
    ("README.md", include_str!("../../demo/README.md")),
];
const TASK: &str = include_str!("../../demo/ralph_task.md");
const REPLIES: &str = include_str!("../../demo/replies.jsonl");

/// Creates the project, runs its task and prints the locations of the results.
pub(super) async fn run(args: DemoArgs, context: &Context) -> Result<ExitCode, AppError> {
    let app = &context.app;
    let providers = app.providers()?;
    let dir = match args.dir {
        Some(dir) => app.environment().working_dir().join(dir),
        None => create_demo_dir(&providers)?,
    };
    create_project(&dir, &providers).await?;
    let print = |text: String| context.output().print_text(&text).map(drop);
    print(format!(
        "A small project with failing tests is in {}\n\
         Its task has four boxes. A scripted model works on it: one wrong patch, one red test,\n\
         one early claim of success. The sandbox, git, the checks and the clean room are real.\n\n",
        dir.display()
    ))?;
    let request = demo_request(&dir);
    let task = planning::read_task(&request.file, app)?;
    let planned = planning::plan_run(&request, task, app, PlanPurpose::Start).await?;
    let start = RunStart {
        planned,
        effort: ImageEffort::Reuse,
        unfinished_runs: UnfinishedRunPolicy::Allow,
        on_reserved: None,
    };
    let (run, mode) = Box::pin(run::prepare(start, false, context)).await?;
    let plan = &run.journal().state().plan;
    let (id, branch) = (plan.run.clone(), plan.branch.clone());
    let code = Box::pin(drive(run, mode)).await?;
    let state = providers.state.run(&id).state()?;
    let pull = state
        .pull
        .map_or_else(|| "none".to_owned(), |pull| pull.url);
    let run_dir = providers.state.run(&id);
    print(format!(
        "\nResults:\n\
         \x20 project       {project}\n\
         \x20 the work      git -C {project} diff main..{branch}\n\
         \x20 pull request  {pull}\n\
         \x20 iterations    {iterations}\n\
         \x20 journal       {journal}\n\
         Inspect it: ralph show {id} · ralph replay {id} · ralph logs {id} · ralph audit {id}\n",
        project = dir.display(),
        iterations = run_dir.root().join("iterations").display(),
        journal = run_dir.journal().display(),
    ))?;
    Ok(code)
}

/// Returns the request of the demo's run.
fn demo_request(dir: &Path) -> RunRequest {
    let replies = dir.join("replies.jsonl");
    RunRequest {
        model: Some(format!("scripted:{}", replies.display())),
        ..RunRequest::for_file(dir.join(TASK_FILE))
    }
}

/// Creates a temporary directory that only the user can read.
fn create_demo_dir(providers: &Providers) -> Result<PathBuf, AppError> {
    let stamp = providers.clock.now().as_microsecond();
    let dir = std::env::temp_dir().join(format!("ralph-demo-{stamp}"));
    let created = fs::DirBuilder::new().mode(0o700).create(&dir);
    created.map(|()| dir.clone()).map_err(|error| {
        AppError::runtime(
            format!("cannot create `{}`", dir.display()),
            error.to_string(),
            "name a directory with `--dir`",
        )
    })
}

async fn create_project(dir: &Path, providers: &Providers) -> Result<(), AppError> {
    let occupied = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(AppError::usage(
            format!("cannot create the demo in `{}`", dir.display()),
            "the directory is not empty",
            "name another with `--dir`",
        ));
    }
    let git = providers.git()?;
    planning::require_git(&git).await?;
    for (name, text) in PROJECT_FILES {
        write(&dir.join(name), text)?;
    }
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "."],
        &["commit", "--quiet", "--message=Start"],
    ] {
        git.run_as_user(dir, args).await.map_err(|error| {
            AppError::runtime(
                "cannot create the demo's repository",
                error.to_string(),
                error.hint(),
            )
        })?;
    }
    write(&dir.join("ralph_task.md"), TASK)?;
    write(&dir.join("replies.jsonl"), REPLIES)
}

fn write(path: &PathBuf, text: &str) -> Result<(), AppError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| {
            AppError::runtime(
                format!("cannot write `{}`", path.display()),
                error.to_string(),
                "name a writable directory with `--dir`",
            )
        })
}
