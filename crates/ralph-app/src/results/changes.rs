//! The changes of a run or of one iteration, as a patch.

use std::fs;
use std::path::PathBuf;

use ralph_core::state::RunState;
use ralph_engine::durable::StoreError;
use ralph_engine::git::GitError;
use ralph_engine::store::RunDir;

use crate::app::App;
use crate::error::AppError;

/// Returns the changes of the run's branch since its base commit.
pub async fn run_diff(dir: &RunDir, state: &RunState, app: &App) -> Result<Vec<u8>, AppError> {
    if state.head == state.plan.base {
        return Ok(Vec::new());
    }
    let repo = app.providers()?.git()?.repo(dir.repo());
    let patch = repo.patch(&state.plan.base, &state.head).await;
    patch.map_err(|error: GitError| {
        AppError::runtime(
            format!("cannot read the changes of run `{}`", state.plan.run),
            error.to_string(),
            error.hint(),
        )
    })
}

/// Returns the changes of one iteration, committed or not.
pub fn iteration_diff(dir: &RunDir, state: &RunState, number: u32) -> Result<Vec<u8>, AppError> {
    let directory = iteration_directory(dir, state, number)?;
    let path = directory.join("git_diff.patch");
    if directory == dir.open_iteration(number) && !path.exists() {
        return Err(AppError::runtime(
            format!("iteration {number} has no diff yet"),
            "it is written when the work of the iteration is done",
            format!("see `ralph logs {}`", state.plan.run),
        ));
    }
    Ok(fs::read(&path).map_err(StoreError::when("read", &path))?)
}

/// Returns the directory of an iteration, finished or open.
pub fn iteration_directory(
    dir: &RunDir,
    state: &RunState,
    number: u32,
) -> Result<PathBuf, AppError> {
    if number == 0 || number > state.iteration {
        let known = match state.iteration {
            0 => "it has not started an iteration yet".to_owned(),
            1 => "it has only iteration 1".to_owned(),
            last => format!("it has the iterations 1 to {last}"),
        };
        return Err(AppError::usage(
            format!("run `{}` has no iteration {number}", state.plan.run),
            known,
            "name one of these with `--iteration`",
        ));
    }
    let (finished, open) = (dir.iteration(number), dir.open_iteration(number));
    if finished.is_dir() || !open.is_dir() {
        return Ok(finished);
    }
    Ok(open)
}
