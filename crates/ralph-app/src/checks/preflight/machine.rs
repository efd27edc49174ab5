//! Checks of the machine: git, the state directory and disk space.

use std::path::{Path, PathBuf};

use ralph_core::ports::ProviderProblem;
use rustix::fs::{Access, access, statvfs};

use super::preflight_context::PreflightContext;
use crate::checks::CheckOutcome;

/// Free space that a run's files need, in bytes.
const MIN_STATE_BYTES: u64 = 1 << 30;
/// Free space that containers need, in bytes: a workspace and the files that tests write.
const MIN_ENGINE_BYTES: u64 = 2 << 30;

/// Checks that git can be started.
pub(in crate::checks) fn check_git(context: &PreflightContext<'_>) -> CheckOutcome {
    match &context.git {
        Ok(version) => CheckOutcome::Passed(version.trim().to_owned()),
        Err(error) => error.clone().into(),
    }
}

/// Checks that the state directory is writable or can be created.
pub(super) fn check_state_dir(context: &PreflightContext<'_>) -> CheckOutcome {
    let root = match &context.providers {
        Ok(providers) => providers.state.root(),
        Err(error) => return error.clone().into(),
    };
    let shown = root.display();
    let Some(existing) = nearest_existing(root) else {
        return CheckOutcome::failed(
            format!("no parent directory of `{shown}` exists"),
            "set RALPH_HOME to a directory that you can write to",
        );
    };
    let usable = existing.is_dir() && access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if !usable {
        return CheckOutcome::failed(
            format!("cannot write to `{}`", existing.display()),
            "make it a writable directory, or set RALPH_HOME to another one",
        );
    }
    CheckOutcome::Passed(if existing == root {
        shown.to_string()
    } else {
        format!("{shown}, which the first run creates")
    })
}

/// Checks the disk space for the state, and for containers if the engine is on this machine.
pub(super) fn check_disk(context: &PreflightContext<'_>) -> CheckOutcome {
    let mut directories = Vec::new();
    if let Ok(providers) = &context.providers {
        let fix = "free some space, or set RALPH_HOME to a directory on another disk";
        directories.push((providers.state.root().to_owned(), MIN_STATE_BYTES, fix));
    }
    if let Some((_, facts)) = &context.engine
        && facts.is_local_socket
        && !facts.is_desktop
        && Path::new(&facts.data_root).exists()
    {
        let fix = "free disk space with `docker system prune`, which removes everything that no container uses";
        directories.push((PathBuf::from(&facts.data_root), MIN_ENGINE_BYTES, fix));
    }
    let spaces = directories.iter().filter_map(|(path, needed, fix)| {
        let free = free_bytes(path)?;
        Some((path.as_path(), free, *needed, *fix))
    });
    check_space(&spaces.collect::<Vec<_>>())
}

fn check_space(spaces: &[(&Path, u64, u64, &str)]) -> CheckOutcome {
    let describe = |path: &Path, free| format!("`{}` has {} free", path.display(), gibibytes(free));
    let problems = spaces
        .iter()
        .filter(|(_, free, needed, _)| free < needed)
        .map(|(path, free, needed, fix)| ProviderProblem {
            what: format!(
                "{}, {} is needed",
                describe(path, *free),
                gibibytes(*needed)
            ),
            fix: (*fix).to_owned(),
        });
    CheckOutcome::from_problems(problems.collect(), || {
        let seen: Vec<String> = spaces
            .iter()
            .map(|(path, free, _, _)| describe(path, *free))
            .collect();
        seen.join(", ")
    })
}

fn gibibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Returns the free bytes at a path, or `None` if they cannot be determined.
fn free_bytes(path: &Path) -> Option<u64> {
    let existing = nearest_existing(path)?;
    let stat = statvfs(&existing).inspect_err(
        |error| tracing::warn!(%error, path = %existing.display(), "cannot measure the free space"),
    );
    let Ok(stat) = stat else {
        return None;
    };
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the path, or its nearest existing ancestor.
fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let mut ancestors = path.ancestors();
    ancestors
        .find(|ancestor| ancestor.exists())
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AppError;

    #[test]
    fn too_little_space_is_reported_with_numbers() {
        let (state, engine) = (Path::new("/state"), Path::new("/docker"));
        let fix = "free some space";
        assert_eq!(
            check_space(&[
                (state, 5 << 30, MIN_STATE_BYTES, fix),
                (engine, 2 << 30, MIN_ENGINE_BYTES, fix),
            ]),
            CheckOutcome::Passed("`/state` has 5.0 GiB free, `/docker` has 2.0 GiB free".into())
        );
        assert_eq!(
            check_space(&[
                (state, 300 << 20, MIN_STATE_BYTES, fix),
                (engine, 0, MIN_ENGINE_BYTES, fix),
            ]),
            CheckOutcome::Failed(vec![
                AppError::runtime("`/state` has 0.2 GiB free, 1.0 GiB is needed", "", fix),
                AppError::runtime("`/docker` has 0.0 GiB free, 2.0 GiB is needed", "", fix),
            ])
        );
    }
}
