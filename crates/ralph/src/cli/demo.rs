//! `ralph demo`: a small real project, a task, a scripted model; everything else is the real thing.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use ralph_core::image::ImageEffort;

use super::args::{DemoArgs, RunArgs, UnfinishedRunArgs};
use super::context::Context;
use super::create_run::UnfinishedRunPolicy;
use super::error::CliError;
use super::exit::ExitCode;
use super::{create_run, planning, run};
use crate::providers::Providers;

/// The project as it is before the run.
const PROJECT_FILES: [(&str, &str); 3] = [
    ("slug.sh", include_str!("../../demo/slug.sh")),
    ("tests/run.sh", include_str!("../../demo/tests/run.sh")),
    ("README.md", include_str!("../../demo/README.md")),
];
const TASK: &str = include_str!("../../demo/ralph_task.md");
const REPLIES: &str = include_str!("../../demo/replies.jsonl");

/// Makes the project, runs its task and tells where everything is.
pub(super) async fn run(args: DemoArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.providers()?;
    let dir = match args.dir {
        Some(dir) => context.environment().working_dir().join(dir),
        None => create_demo_dir(&wiring)?,
    };
    create_project(&dir, &wiring).await?;
    let say = |text: String| context.output().print_text(&text).map(drop);
    say(format!(
        "A small project with failing tests is in {}\n\
         Its task has four boxes. A scripted model works on it: one wrong patch, one red test,\n\
         one early claim of success. The sandbox, git, the checks and the clean room are real.\n\n",
        dir.display()
    ))?;
    let run_args = demo_run_args(&dir);
    let (file, task) = planning::read_task(&run_args.file, context)?;
    let ways = (context, &wiring);
    let mut planned = planning::plan_run(&run_args, file, task, None, ways).await?;
    create_run::reserve(&mut planned.plan, &wiring)?;
    let (id, branch) = (planned.plan.run.clone(), planned.plan.branch.clone());
    let work = run::RunStart {
        planned,
        access: None,
        effort: ImageEffort::Reuse,
        unfinished_runs: UnfinishedRunPolicy::Allow,
        is_json: run_args.json,
    };
    let code = Box::pin(run::start(work, context, &wiring)).await?;
    let state = wiring.state.run(&id).state()?;
    let pull = state
        .pull
        .map_or_else(|| "none".to_owned(), |pull| pull.url);
    let files = wiring.state.run(&id);
    say(format!(
        "\nWhere everything is:\n\
         \x20 project       {project}\n\
         \x20 the work      git -C {project} diff main..{branch}\n\
         \x20 pull request  {pull}\n\
         \x20 iterations    {iterations}\n\
         \x20 journal       {journal}\n\
         Look at it: ralph show {id} · ralph replay {id} · ralph logs {id} · ralph audit {id}\n",
        project = dir.display(),
        iterations = files.root().join("iterations").display(),
        journal = files.journal().display(),
    ))?;
    Ok(code)
}

/// Returns the command line of the run.
fn demo_run_args(dir: &Path) -> RunArgs {
    RunArgs {
        file: dir.join("ralph_task.md"),
        repo: None,
        sandbox: None,
        engine: None,
        agent: None,
        profile: None,
        model: Some(format!("scripted:{}", dir.join("replies.jsonl").display())),
        rebuild: false,
        dry_run: false,
        json: false,
        again: UnfinishedRunArgs {
            new: true,
            resume: false,
        },
    }
}

/// Makes a directory that nobody had before.
fn create_demo_dir(wiring: &Providers) -> Result<PathBuf, CliError> {
    let stamp = wiring.clock.now().as_microsecond();
    let dir = std::env::temp_dir().join(format!("ralph-demo-{stamp}"));
    let made = fs::DirBuilder::new().mode(0o700).create(&dir);
    made.map(|()| dir.clone()).map_err(|error| {
        CliError::runtime(
            format!("cannot make `{}`", dir.display()),
            error.to_string(),
            "name a directory with `--dir`",
        )
    })
}

async fn create_project(dir: &Path, wiring: &Providers) -> Result<(), CliError> {
    let occupied = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(CliError::usage(
            format!("cannot put the demo into `{}`", dir.display()),
            "the directory is not empty",
            "name another with `--dir`",
        ));
    }
    let git = wiring.git()?;
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
            CliError::runtime(
                "cannot make the demo's repository",
                error.to_string(),
                error.hint(),
            )
        })?;
    }
    write(&dir.join("ralph_task.md"), TASK)?;
    write(&dir.join("replies.jsonl"), REPLIES)
}

fn write(path: &PathBuf, text: &str) -> Result<(), CliError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| {
            CliError::runtime(
                format!("cannot write `{}`", path.display()),
                error.to_string(),
                "name a directory you can write with `--dir`",
            )
        })
}
