//! One clean room: created, filled with a checkout, used for one command, removed.

use std::path::PathBuf;

use ralph_core::event::{SandboxEvent, SandboxPurpose};
use ralph_core::id::CommitId;
use ralph_core::plan::{GitIdentity, SetupPlan};
use ralph_core::ports::{Exec, ExecOutcome, Sandbox};
use ralph_core::surface::{ChangedPath, PathChange};

use super::fingerprint::{RepoFingerprint, RoomChanges};
use crate::capture::{Capture, Captured};
use crate::check_results::CHECK_TIMEOUT;
use crate::controls::Controls;
use crate::durable;
use crate::error::RunError;
use crate::git::{BundleSource, GitError, RemoteOrigin, SandboxGit};
use crate::live_output::LiveSource;
use crate::prepare;
use crate::recorder::Recorder;
use crate::run::attend;
use crate::services::Services;
use crate::setup::{
    CheckoutIdentity, InstallOutcome, SetupInputs, SetupJob, SetupOrigin, changed_files,
};
use crate::workbench::Workbench;

/// The files of a clean room: those of a commit, some of them optionally as in the base commit.
#[derive(Debug, Clone)]
pub(crate) struct RoomTree {
    commit: CommitId,
    base: Option<CommitId>,
    /// Files that are taken from the base commit.
    restored: Vec<String>,
    /// Files that the base commit does not have.
    removed: Vec<String>,
}

impl RoomTree {
    /// The files of a commit, which the run's branch must contain.
    pub(crate) fn for_commit(commit: &CommitId) -> Self {
        Self {
            commit: commit.clone(),
            base: None,
            restored: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// Replaces changed files by those of the base commit: modified and deleted ones are restored,
    /// added ones removed.
    pub(crate) fn with_base_files(mut self, base: &CommitId, changed: &[ChangedPath]) -> Self {
        self.base = Some(base.clone());
        for ChangedPath { path, change } in changed {
            match change {
                PathChange::Added => self.removed.push(path.clone()),
                PathChange::Modified | PathChange::Deleted => self.restored.push(path.clone()),
            }
        }
        self
    }
}

/// A bundle of the run's branch in a file of the host; the file is removed on drop.
#[derive(Debug)]
pub(crate) struct BranchBundle {
    file: PathBuf,
    branch: String,
    remote: Option<RemoteOrigin>,
    /// The set-up of every room that the bundle is installed in.
    setup: Option<SetupPlan>,
}

impl Drop for BranchBundle {
    fn drop(&mut self) {
        // Only a copy of commits in the repository.
        durable::remove_leftover(&self.file);
    }
}

/// A command that ran in a clean room.
pub(super) struct RoomResult {
    pub(super) outcome: ExecOutcome,
    pub(super) output: Captured,
    pub(super) changes: RoomChanges,
}

/// Bundles the branch once for all clean rooms of a verification.
pub(super) async fn create_branch_bundle(
    recorder: &Recorder,
    bench: &Workbench,
) -> Result<BranchBundle, RunError> {
    let bundle = BranchBundle {
        // In the repository's directory, so that `remove_stale_locks` finds a lock that a crash
        // left behind.
        file: recorder.dir.repo().join("room.bundle"),
        branch: recorder.state().plan.branch.clone(),
        remote: RemoteOrigin::of_plan(&recorder.state().plan),
        setup: bench.setup.clone(),
    };
    bench.repo.bundle(&bundle.branch, &bundle.file).await?;
    Ok(bundle)
}

/// Runs one shell command in a clean room that exists only for it.
pub(super) async fn run_in_room(
    recorder: &mut Recorder,
    controls: &mut Controls,
    services: &Services,
    bundle: &BranchBundle,
    tree: &RoomTree,
    command: &str,
) -> Result<RoomResult, RunError> {
    let room =
        prepare::create_sandbox(&mut recorder.journal, services, SandboxPurpose::CleanRoom).await?;
    let result = execute_in_room(recorder, controls, &*room, bundle, tree, command).await;
    room.remove().await?;
    let sandbox = room.id().clone();
    recorder.append(SandboxEvent::SandboxRemoved { sandbox })?;
    result
}

async fn execute_in_room(
    recorder: &mut Recorder,
    controls: &mut Controls,
    room: &dyn Sandbox,
    bundle: &BranchBundle,
    tree: &RoomTree,
    command: &str,
) -> Result<RoomResult, RunError> {
    let git = SandboxGit::new(room);
    install_repository(&git, bundle).await?;
    check_out_tree(&git, tree).await?;
    if let Some(setup) = &bundle.setup {
        let source = (bundle, tree);
        let failed = set_up_room(recorder, controls, room, setup, source).await?;
        // Set-up may have changed committed files, and the check is about the commit.
        check_out_tree(&git, tree).await?;
        if let Some(failed) = failed {
            return Ok(failed);
        }
    }
    let fingerprint = RepoFingerprint::capture(room).await?;
    if fingerprint.head() != tree.commit.as_str() {
        let output = fingerprint.head().to_owned();
        let command = "rev-parse HEAD".to_owned();
        return Err(GitError::Unexpected { command, output }.into());
    }
    let title = format!("{command}   # in the clean room");
    let live = recorder.live_output(LiveSource::Command(&title));
    let mut capture = Capture::new(&recorder.redactor).with_live(live);
    let timeout = recorder.command_timeout(CHECK_TIMEOUT);
    let running = room.exec(Exec::shell(command, timeout), None, &mut capture);
    let outcome = attend(&mut recorder.journal, controls, running).await??;
    Ok(RoomResult {
        outcome,
        output: capture.finish(),
        changes: fingerprint.compare(room).await?,
    })
}

async fn install_repository(git: &SandboxGit<'_>, bundle: &BranchBundle) -> Result<(), RunError> {
    git.install(BundleSource {
        bundle: &bundle.file,
        branch: &bundle.branch,
        // Nothing commits in a clean room.
        author: &GitIdentity::default(),
        remote: bundle.remote.as_ref(),
    })
    .await
}

async fn check_out_tree(git: &SandboxGit<'_>, tree: &RoomTree) -> Result<(), RunError> {
    git.check_out_commit(&tree.commit).await?;
    match &tree.base {
        Some(base) => {
            git.replace_files_from(base, &tree.restored, &tree.removed)
                .await
        }
        None => Ok(()),
    }
}

/// Replaces the repository, which set-up could write: an index flag or a filter in its configuration
/// would hide changed files from git. Returns the committed files that set-up changed. The next
/// checkout writes every file.
async fn renew_repository(
    room: &dyn Sandbox,
    bundle: &BranchBundle,
    tree: &RoomTree,
) -> Result<Vec<String>, RunError> {
    let git = SandboxGit::new(room);
    install_repository(&git, bundle).await?;
    let replaced = (tree.restored.as_slice(), tree.removed.as_slice());
    git.stage_commit(&tree.commit, tree.base.as_ref(), replaced)
        .await?;
    let changed = changed_files(room).await?;
    git.remove_index().await?;
    Ok(changed)
}

/// Installs the dependencies in a clean room, in a second attempt if the first one fails. Returns the
/// result of the check if that failed: it is red, because the commit is not usable without its
/// dependencies. A failure that no work caused is an error instead.
async fn set_up_room(
    recorder: &mut Recorder,
    controls: &mut Controls,
    room: &dyn Sandbox,
    setup: &SetupPlan,
    (bundle, tree): (&BranchBundle, &RoomTree),
) -> Result<Option<RoomResult>, RunError> {
    let plan = &recorder.state().plan;
    let is_base = tree.commit == plan.base && tree.base.is_none();
    let inputs = SetupInputs::read(room, setup, plan).await?;
    let name = if is_base {
        tree.commit.to_string()
    } else {
        format!("{tree:?}")
    };
    let origin = SetupOrigin::Checkout(CheckoutIdentity {
        tree: name,
        is_base,
    });
    let job = SetupJob {
        sandbox: room,
        setup,
        inputs: &inputs,
        origin: &origin,
    };
    let mut outcome = set_up_once(recorder, controls, &job, (bundle, tree)).await?;
    if !outcome.ended.is_success() {
        check_out_tree(&SandboxGit::new(room), tree).await?;
        outcome = set_up_once(recorder, controls, &job, (bundle, tree)).await?;
    }
    if outcome.ended.is_success() {
        return Ok(None);
    }
    if is_base {
        return Err(outcome.into_error(&setup.command, ""));
    }
    if recorder.state().setup.as_ref() == Some(&inputs.digest()) {
        let location = format!(
            " twice in a clean room of commit {}, although the work sandbox has the same dependencies",
            tree.commit.short()
        );
        return Err(outcome.into_error(&setup.command, &location));
    }
    let mut output = outcome.output;
    let note = format!(
        "\nset-up `{}` failed, so the check did not run\n",
        setup.command
    );
    output.stderr.push_str(&note);
    output.both.push_str(&note);
    Ok(Some(RoomResult {
        outcome: outcome.outcome,
        output,
        changes: RoomChanges::default(),
    }))
}

async fn set_up_once(
    recorder: &mut Recorder,
    controls: &mut Controls,
    job: &SetupJob<'_>,
    (bundle, tree): (&BranchBundle, &RoomTree),
) -> Result<InstallOutcome, RunError> {
    let performed = job.perform(recorder, controls).await?;
    let changed = if performed.is_copied {
        Vec::new()
    } else {
        renew_repository(job.sandbox, bundle, tree).await?
    };
    let concluded = (performed, changed);
    let outcome = job.conclude(recorder, controls, concluded).await?;
    if !outcome.changed.is_empty() && recorder.state().open.is_some() {
        recorder.log_error(&format!(
            "clean room: set-up `{}` changed committed files, which were restored: {}",
            job.setup.command,
            outcome.changed.join(", ")
        ))?;
    }
    Ok(outcome)
}
