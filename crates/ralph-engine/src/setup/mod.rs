//! Set-up: installs the dependencies of a project in a sandbox, before the work and before each
//! check.
//!
//! - `inputs` determines the command in force, and the digest of everything that it depends on.
//! - `install` runs the command, or copies the result of an earlier set-up.
//! - `cache` stores results in the state directory; `archive` copies them from and to a sandbox.
//!
//! Docs: `docs/design/0029-setup-results-are-shared-only-from-the-base-commit.md`.

mod archive;
mod cache;
mod inputs;
mod install;

use ralph_core::event::RunEvent;
use ralph_core::id::CommitId;

pub use cache::{MAX_SETUP_CACHE_BYTES, SetupCache};
pub(crate) use inputs::{SetupInputs, setup_in_force};
pub(crate) use install::{SetupOrigin, install};

use crate::error::RunError;
use crate::git::SandboxGit;
use crate::run::Run;

/// Installs the dependencies in the work sandbox, if they are not installed or if a lockfile or
/// manifest has changed since.
pub(crate) async fn set_up_workspace_if_due(run: &mut Run) -> Result<(), RunError> {
    let plan = &run.recorder.state().plan;
    run.bench.setup = setup_in_force(plan, run.pinned.contract());
    let Some(setup) = run.bench.setup.clone() else {
        return Ok(());
    };
    let base = plan.base.clone();
    let inputs = SetupInputs::read(&*run.bench.sandbox, &setup, plan).await?;
    let digest = inputs.digest();
    if run.recorder.state().setup.as_ref() == Some(&digest)
        || run.bench.settled_setup.as_ref() == Some(&digest)
    {
        return Ok(());
    }
    let is_untouched = run.recorder.state().iteration == 0 && is_at(run, &base).await?;
    let origin = if is_untouched {
        SetupOrigin::Commit {
            tree: base.to_string(),
            is_base: true,
        }
    } else {
        SetupOrigin::Workspace
    };
    let sandbox = run.bench.sandbox.clone();
    let outcome = install(
        &mut run.recorder,
        &mut run.controls,
        &*sandbox,
        &setup,
        (&inputs, &origin),
    )
    .await?;
    if !outcome.changed.is_empty() {
        let message = format!(
            "set-up changed committed files, which become part of the work: {}",
            outcome.changed.join(", ")
        );
        run.recorder.append(RunEvent::Notice { message })?;
    }
    if outcome.ended.is_success() {
        // Work continues in it after a power cut.
        sandbox.sync().await?;
        // Set-up may update lockfiles itself, which must not cause another one.
        let plan = &run.recorder.state().plan;
        let after = SetupInputs::read(&*sandbox, &setup, plan).await?;
        run.bench.settled_setup = Some(after.digest());
        return Ok(());
    }
    if is_untouched || run.recorder.state().setup_at_base.as_ref() == Some(&digest) {
        return Err(outcome.into_error(&setup.command));
    }
    // The work changed the dependencies, so the model has to correct them.
    run.bench.settled_setup = Some(digest);
    run.recorder
        .log_error(&outcome.describe_failure(&setup.command))
}

/// Returns whether the work sandbox contains exactly this commit.
async fn is_at(run: &Run, commit: &CommitId) -> Result<bool, RunError> {
    let tree = SandboxGit::new(&*run.bench.sandbox).status().await?;
    Ok(tree.head.as_ref() == Some(commit) && tree.entries.is_empty())
}
