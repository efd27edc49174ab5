//! Creates the run's own repository at the start of a process, or checks and repairs it.
//!
//! The run's repository borrows the objects of its base from the mirror of the user's repository. Every
//! recorded commit was synced before its record. If a disk lost it nevertheless, the commits are
//! recovered from the repository that they were pushed to or from the sandbox; a run whose commits are
//! lost is paused.

use std::path::PathBuf;
use std::{fs, io};

use ralph_core::event::RunEvent;
use ralph_core::id::CommitId;

use crate::durable::{StoreError, warn_if_failed};
use crate::error::RunError;
use crate::git::{BaseOrigin, GitError, HostRepo, RepositoryMirror, SandboxGit, locks};
use crate::journal::Journal;
use crate::services::Services;
use crate::store::RunDir;

/// Restores the run's repository to the commit that the journal names.
pub(crate) async fn restore_repository(
    journal: &mut Journal,
    services: &Services,
    dir: &RunDir,
    repo: &HostRepo,
) -> Result<(), RunError> {
    let state = journal.state();
    let (plan, head) = (state.plan.clone(), state.head.clone());
    locks::remove_stale_locks(&dir.repo()).await?;
    if repo.is_complete(&plan.base, &head).await? {
        // A crash may have come between the branch update and its record: the import is repeated.
        return Ok(repo.set_branch(&plan.branch, &head).await?);
    }
    let existed = dir.repo().exists();
    let mirror = RepositoryMirror::new(&services.git, &dir.mirrors(), &plan.repo, &plan.base);
    let remote = plan.remote_repository().map(|repo| repo.git_url());
    let source = remote.as_deref().unwrap_or(&plan.repo);
    let shared = mirror.add_base(source, &plan.run, &plan.base).await;
    if existed && shared.is_ok() && repo.is_complete(&plan.base, &head).await? {
        let message = format!(
            "the objects that the runs of `{}` share were damaged or missing; they were fetched again",
            plan.repo
        );
        journal.append(RunEvent::Notice { message })?;
        return Ok(repo.set_branch(&plan.branch, &head).await?);
    }
    let pack = match &shared {
        Ok(()) => Vec::new(),
        Err(_) => base_from_sandbox(journal, services).await?,
    };
    let origin = match shared {
        Ok(()) => BaseOrigin::Mirror(&mirror),
        Err(error) if pack.is_empty() => return Err(error.into()),
        Err(_) => BaseOrigin::Pack(&pack),
    };
    let aside = dir.recovered().join(format!("repo-{}.git", state.epoch));
    repo.move_aside(&aside)?;
    repo.prepare(origin, &plan.base, &plan.branch).await?;
    if head != plan.base {
        recover_commits(journal, services, (dir, repo, &mirror), &head).await?;
        repo.set_branch(&plan.branch, &head).await?;
    }
    if existed && head != plan.base {
        let message = format!(
            "the run's repository was damaged, for example by a power cut; it was rebuilt up to commit {}, and the damaged one is in `{}`",
            head.short(),
            aside.display()
        );
        journal.append(RunEvent::Notice { message })?;
    }
    Ok(())
}

/// Returns the base commit with its history from the sandbox, as a pack: the user's repository does not
/// have it any more. Empty if there is no sandbox, or if it does not have it either.
async fn base_from_sandbox(journal: &Journal, services: &Services) -> Result<Vec<u8>, RunError> {
    let state = journal.state();
    let Some(id) = &state.sandbox else {
        return Ok(Vec::new());
    };
    let Some(sandbox) = services.sandboxes.attach(id).await? else {
        return Ok(Vec::new());
    };
    let packed = SandboxGit::new(&*sandbox)
        .pack_history(&state.plan.base)
        .await;
    Ok(packed.unwrap_or_else(|error| {
        tracing::warn!("cannot read the base commit of the sandbox: {error}");
        Vec::new()
    }))
}

/// Recovers the commits of the run from all available sources.
async fn recover_commits(
    journal: &Journal,
    services: &Services,
    (dir, repo, mirror): (&RunDir, &HostRepo, &RepositoryMirror),
    head: &CommitId,
) -> Result<(), RunError> {
    let state = journal.state();
    let (plan, base) = (&state.plan, &state.plan.base);
    // Failures are only logged: the completeness of the commits is checked afterwards.
    let fetched = repo.recover_from(services.scm.remote(), &plan.branch).await;
    warn_if_failed("recover commits from the source host", fetched);
    for aside in quarantined_repositories(dir)? {
        mirror.restore_lending(&aside)?;
        let fetched = repo
            .recover_from(&aside.to_string_lossy(), &plan.branch)
            .await;
        warn_if_failed("recover commits from a damaged repository", fetched);
    }
    if repo.is_complete(base, head).await? {
        return Ok(());
    }
    if let Some(id) = &state.sandbox
        && let Some(sandbox) = services.sandboxes.attach(id).await?
    {
        match SandboxGit::new(&*sandbox).pack(base, head).await {
            Ok(pack) => {
                let unpacked = repo.recover_from_pack(&pack).await;
                warn_if_failed("unpack the commits of the sandbox", unpacked);
            }
            Err(error) => tracing::warn!("cannot read the commits of the sandbox: {error}"),
        }
    }
    if repo.is_complete(base, head).await? {
        return Ok(());
    }
    Err(GitError::Lost {
        commit: head.short().to_owned(),
        remote: services.scm.remote().to_owned(),
    }
    .into())
}

/// Returns the repositories of the run that were moved aside; one of them may have commits that the
/// others lost.
fn quarantined_repositories(dir: &RunDir) -> Result<Vec<PathBuf>, StoreError> {
    let recovered = dir.recovered();
    let failed = StoreError::when("list", &recovered);
    let entries = match fs::read_dir(&recovered) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "git"));
    Ok(paths)
}
