//! The baseline: the checks at the base commit before the first iteration. Checks that are green
//! there prove nothing about the work, and if all of them are, there is nothing to do.
//!
//! The results are cached in the state directory, so that the next run from the same commit with
//! the same checks in the same kind of sandbox does not run them again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use ralph_core::event::{Event, VerificationEvent};
use ralph_core::id::Digest;
use ralph_core::plan::SetupPlan;
use ralph_core::ports::ExecStatus;
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;
use ralph_core::verdict::CheckResult;
use serde::{Deserialize, Serialize};

use crate::clean_room::NamedCommand;
use crate::clean_room::check_commit;
use crate::controls::Controls;
use crate::delivery::contract_checks;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::run::Run;
use crate::services::Services;
use crate::workbench::Workbench;

/// How long cached results are used. The commit stays the same, the programs of the machine do not.
const MAX_AGE: Duration = Duration::from_hours(24);
/// The most cached results.
const MAX_CACHED: usize = 200;
/// The largest cache file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The cached results of the checks at a base commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedBaseline {
    checks: Vec<CheckResult>,
    green: Vec<String>,
}

/// Runs the checks at the base commit, once, before the first iteration. Returns the final status
/// of the run if there is nothing to do.
pub(crate) async fn run_baseline_if_due(run: &mut Run) -> Result<Option<RunStatus>, RunError> {
    let is_due = run.recorder.state().iteration == 0
        && run.recorder.state().baseline.is_none()
        && run.pinned.contract().verification.baseline;
    if is_due {
        run_baseline(run).await?;
    }
    let is_done = run.recorder.state().has_nothing_to_do();
    Ok(is_done.then_some(RunStatus::Succeeded))
}

async fn run_baseline(run: &mut Run) -> Result<(), RunError> {
    let commands = contract_checks(&run.pinned);
    if commands.is_empty() {
        return Ok(());
    }
    let commit = run.recorder.state().plan.base.clone();
    let file = run.recorder.dir.baselines().join(baseline_file_name(
        run.recorder.state(),
        run.bench.setup.as_ref(),
        &commands,
    ));
    let (results, cached) = if let Some(results) = load_cached(&file) {
        (results, true)
    } else {
        let started = Event::Verification(VerificationEvent::BaselineStarted {
            commit: commit.clone(),
        });
        run.recorder.append(started)?;
        (
            run_base_checks(
                &mut run.recorder,
                &run.bench,
                &mut run.controls,
                &run.services,
                &commands,
            )
            .await?,
            false,
        )
    };
    if !cached && results.checks.iter().all(is_reproducible) {
        // Only an optimisation: a full disk does not stop the run here.
        durable::warn_if_failed("cache the baseline", store_cached(&file, &results));
    }
    let green = results.green.len();
    run.recorder.log_activity(&format!(
        "{green} of {} checks are green at the base commit, before any work",
        results.checks.len()
    ))?;
    run.recorder.append(VerificationEvent::BaselineFinished {
        commit,
        contract: run.pinned.digest().clone(),
        checks: results.checks,
        green: results.green,
        cached,
    })?;
    Ok(())
}

async fn run_base_checks(
    recorder: &mut Recorder,
    bench: &Workbench,
    controls: &mut Controls,
    services: &Services,
    commands: &[NamedCommand],
) -> Result<CachedBaseline, RunError> {
    let base = recorder.state().plan.base.clone();
    let checks = check_commit(recorder, bench, controls, services, &base, commands).await?;
    let green = checks
        .iter()
        .filter(|check| check.result.is_green() && check.objection.is_none())
        .map(|check| check.result.name.clone())
        .collect();
    let checks = checks.into_iter().map(|check| check.result).collect();
    Ok(CachedBaseline { checks, green })
}

/// Returns a file name that depends on everything that influences the results: commit, commands,
/// set-up and sandbox.
fn baseline_file_name(
    state: &RunState,
    setup: Option<&SetupPlan>,
    commands: &[NamedCommand],
) -> String {
    let plan = &state.plan;
    let commands: Vec<(&str, &str)> = commands
        .iter()
        .map(|named| (named.name.as_str(), named.command.as_str()))
        .collect();
    let key = serde_json::json!([
        plan.base,
        commands,
        plan.sandbox,
        plan.container,
        plan.network,
        setup,
        setup.and(state.setup_at_base.as_ref()),
    ]);
    let digest = Digest::compute(key.to_string().as_bytes());
    format!("{digest}.json").replace(':', "-")
}

/// Returns whether a check would end the same way again: a timeout may be caused by the machine.
fn is_reproducible(check: &CheckResult) -> bool {
    matches!(check.ended, ExecStatus::Exited(_))
}

fn load_cached(file: &Path) -> Option<CachedBaseline> {
    match read_cached(file) {
        Ok(cached) => cached,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!("cannot use the baseline in `{}`: {error}", file.display());
            None
        }
    }
}

/// Reads cached results; none if they are too old.
fn read_cached(file: &Path) -> io::Result<Option<CachedBaseline>> {
    let metadata = fs::metadata(file)?;
    let age = SystemTime::now().duration_since(metadata.modified()?);
    // A time in the future means that the clock was set back, so the age is unknown.
    if metadata.len() > MAX_BYTES || !age.is_ok_and(|age| age <= MAX_AGE) {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

fn store_cached(file: &Path, results: &CachedBaseline) -> Result<(), RunError> {
    let Some(directory) = file.parent() else {
        return Ok(());
    };
    durable::create_dir(directory)?;
    durable::warn_if_failed("remove old baselines", remove_oldest(directory));
    let text = serde_json::to_vec(results)
        .map_err(io::Error::from)
        .map_err(StoreError::when("write", file))?;
    drop(durable::write_unsynced(file, &text)?);
    Ok(())
}

/// Removes the oldest results to free room for one more.
fn remove_oldest(directory: &Path) -> io::Result<()> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    let surplus = (files.len() + 1).saturating_sub(MAX_CACHED);
    for (_, path) in files.iter().take(surplus) {
        durable::remove_leftover(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_for_a_while_and_not_without_limit() {
        let directory = tempfile::tempdir().unwrap();
        let results = CachedBaseline {
            checks: Vec::new(),
            green: vec!["M1.1".to_owned()],
        };
        let file = directory.path().join("a.json");
        assert_eq!(load_cached(&file), None);
        store_cached(&file, &results).unwrap();
        assert_eq!(load_cached(&file), Some(results.clone()));
        let old = SystemTime::now() - MAX_AGE - Duration::from_mins(1);
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert_eq!(load_cached(&file), None);
        for number in 0..MAX_CACHED + 5 {
            store_cached(&directory.path().join(number.to_string()), &results).unwrap();
        }
        let left = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, MAX_CACHED);
        assert!(!file.exists());
    }
}
