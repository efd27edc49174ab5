//! Set-up: installs the dependencies of a project in a sandbox, before the work and before each
//! check.
//!
//! - `inputs` determines the command in force, and the digest of everything that it depends on.
//! - `install` runs the command, or copies the result of an earlier set-up of the same commit.
//! - `cache` stores results in the state directory, `garbage` removes them; `archive` copies them from
//!   and to a sandbox.
//!
//! Docs: `docs/design/0029-setup-results-belong-to-one-commit.md`.

mod archive;
mod cache;
mod garbage;
mod inputs;
mod install;

use ralph_core::event::RunEvent;
use ralph_core::id::{CommitId, Digest};

pub(crate) use cache::CheckoutIdentity;
pub use garbage::{
    MAX_SETUP_CACHE_BYTES, SetupGarbage, SetupGarbageScope, SetupRunState, setup_disk_use,
};
pub(crate) use inputs::{SetupInputs, setup_in_force};
pub(crate) use install::{InstallOutcome, SetupJob, SetupOrigin, changed_files};

use crate::error::RunError;
use crate::git::SandboxGit;
use crate::run::Run;

/// How often one process runs set-up for the same dependencies in the work sandbox.
const MAX_ATTEMPTS: u32 = 3;

/// Dependencies that could not be installed in the work sandbox.
pub(crate) struct FailedSetup {
    digest: Digest,
    attempts: u32,
}

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
    if is_settled(run, &digest) {
        return Ok(());
    }
    // The agent could write ignored files of a sandbox that was adopted.
    let state = run.recorder.state();
    let is_new = state.iteration == 0 && state.adoption.is_none();
    let is_untouched = is_new && is_at(run, &base).await?;
    let origin = if is_untouched {
        SetupOrigin::Checkout(CheckoutIdentity {
            tree: base.to_string(),
            is_base: true,
        })
    } else {
        SetupOrigin::Workspace
    };
    let sandbox = run.bench.sandbox.clone();
    let job = SetupJob {
        sandbox: &*sandbox,
        setup: &setup,
        inputs: &inputs,
        origin: &origin,
    };
    let outcome = job.install(&mut run.recorder, &mut run.controls).await?;
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
        run.bench.failed_setup = None;
        return Ok(());
    }
    if is_untouched || run.recorder.state().setup_at_base.as_ref() == Some(&digest) {
        return Err(outcome.into_error(&setup.command, ""));
    }
    // The work changed the dependencies, so the model has to correct them, unless it was an outage.
    let attempts = record_failure(run, digest);
    let text = outcome.describe_failure(&setup.command);
    let next = if attempts < MAX_ATTEMPTS {
        "it runs again before the next iteration"
    } else {
        "it runs again when a lockfile or manifest changes"
    };
    run.recorder.log_error(&format!(
        "{text}\nattempt {attempts} of {MAX_ATTEMPTS}; {next}"
    ))
}

/// Returns whether dependencies are installed, or could not be installed repeatedly.
fn is_settled(run: &Run, digest: &Digest) -> bool {
    let failed = run.bench.failed_setup.as_ref();
    run.recorder.state().setup.as_ref() == Some(digest)
        || run.bench.settled_setup.as_ref() == Some(digest)
        || failed.is_some_and(|failed| failed.digest == *digest && failed.attempts >= MAX_ATTEMPTS)
}

/// Counts the failures to install the same dependencies.
fn record_failure(run: &mut Run, digest: Digest) -> u32 {
    let earlier = run.bench.failed_setup.take();
    let earlier = earlier.filter(|failed| failed.digest == digest);
    let attempts = earlier.map_or(0, |failed| failed.attempts) + 1;
    run.bench.failed_setup = Some(FailedSetup { digest, attempts });
    attempts
}

/// Returns whether the work sandbox contains exactly this commit.
async fn is_at(run: &Run, commit: &CommitId) -> Result<bool, RunError> {
    let tree = SandboxGit::new(&*run.bench.sandbox).status().await?;
    Ok(tree.head.as_ref() == Some(commit) && tree.entries.is_empty())
}
