//! Prepares a run for its next iteration: repository, sandbox, branch, files. Every step checks the
//! existing state first, so it can be repeated after a crash.

use std::collections::BTreeMap;

use ralph_core::event::{Event, IterationEvent, RunEvent, SandboxEvent, SandboxPurpose};
use ralph_core::plan::{GitIdentity, RunPlan};
use ralph_core::ports::{Labels, ProviderProblem, Sandbox, SandboxProvider, SandboxSpec};

use crate::contract::PinnedTask;
use crate::durable;
use crate::error::RunError;
use crate::git::{BundleSource, HostRepo, RemoteOrigin, SandboxGit};
use crate::journal::Journal;
use crate::services::Services;
use crate::store::RunDir;
use crate::workspace::{HostFiles, TamperFinding, Workspace};

/// A prepared workspace.
pub(crate) struct PreparedWorkspace {
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) workspace: Workspace,
    pub(crate) findings: Vec<TamperFinding>,
    pub(crate) is_new: bool,
}

/// Returns the labels of a run's sandbox.
pub(crate) fn labels(run: &str, epoch: u32, purpose: &str) -> Labels {
    [
        ("run", run),
        ("generation", &epoch.to_string()),
        ("purpose", purpose),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// Attaches or creates the sandbox, with the repository on its branch and the run's files in it.
pub(crate) async fn prepare_workspace(
    journal: &mut Journal,
    services: &Services,
    dir: &RunDir,
    repo: &HostRepo,
    files: &HostFiles,
    pinned: &mut PinnedTask,
) -> Result<PreparedWorkspace, RunError> {
    let ticked = pinned.task().current_ids(&journal.state().ticked);
    if ticked != journal.state().ticked {
        journal.append(IterationEvent::BoxesTicked {
            ticked: ticked.iter().cloned().collect(),
        })?;
    }
    let task = pinned.write_ticks(&ticked)?;
    remove_orphaned_sandboxes(journal, &*services.sandboxes).await?;
    if let Some(sandbox) = attach_existing(journal, services).await? {
        if journal.state().workspace_ready {
            SandboxGit::new(&*sandbox).remove_locks().await?;
            let (workspace, findings) = Workspace::attach(&*sandbox, files, task).await?;
            return Ok(PreparedWorkspace {
                sandbox,
                workspace,
                findings,
                is_new: false,
            });
        }
        if journal.state().has_adopted_sandbox() {
            return adopt_sandbox(journal, sandbox, (dir, repo), files, pinned, task).await;
        }
        // Its preparation was interrupted: a fresh sandbox is faster than finding out which steps
        // are done.
        sandbox.remove().await?;
        journal.append(SandboxEvent::SandboxRemoved {
            sandbox: sandbox.id().clone(),
        })?;
    }
    let sandbox = create_sandbox(journal, services, SandboxPurpose::Work).await?;
    require_git(&*sandbox, &journal.state().plan).await?;
    let branch = journal.state().plan.branch.clone();
    install_branch(&*sandbox, dir, repo, &journal.state().plan).await?;
    let git = SandboxGit::new(&*sandbox);
    git.check_out().await?;
    git.hide_own_files(pinned.own_files()).await?;
    let workspace = Workspace::install(&*sandbox, files, task).await?;
    let head = repo.head(&branch).await?;
    // Work continues in it after a power cut, so no file of the checkout may be empty.
    sandbox.sync().await?;
    journal.append(SandboxEvent::WorkspaceReady { branch, head })?;
    Ok(PreparedWorkspace {
        sandbox,
        workspace,
        findings: Vec::new(),
        is_new: true,
    })
}

/// Prepares the sandbox of a lost run: its files stay, its repository is replaced by one that the
/// agent never wrote to.
async fn adopt_sandbox(
    journal: &mut Journal,
    sandbox: Box<dyn Sandbox>,
    (dir, repo): (&RunDir, &HostRepo),
    files: &HostFiles,
    pinned: &PinnedTask,
    task: String,
) -> Result<PreparedWorkspace, RunError> {
    let (plan, head) = (&journal.state().plan, journal.state().head.clone());
    let branch = plan.branch.clone();
    install_branch(&*sandbox, dir, repo, plan).await?;
    let git = SandboxGit::new(&*sandbox);
    git.reset_to_branch(&branch, &head, pinned.own_files())
        .await?;
    let workspace = Workspace::install(&*sandbox, files, task).await?;
    sandbox.sync().await?;
    journal.append(SandboxEvent::WorkspaceReady { branch, head })?;
    Ok(PreparedWorkspace {
        sandbox,
        workspace,
        findings: Vec::new(),
        is_new: false,
    })
}

/// Refuses a sandbox whose git is unusable for the following steps.
async fn require_git(sandbox: &dyn Sandbox, plan: &RunPlan) -> Result<(), RunError> {
    let Some(why) = SandboxGit::new(sandbox).unusable_reason().await? else {
        return Ok(());
    };
    Err(RunError::UnusableSandbox(match &plan.container {
        Some(container) => ProviderProblem {
            what: format!("image `{}` {why}", container.image),
            fix: "build the image with git 2.30 or newer".into(),
        },
        None => ProviderProblem {
            what: format!("sandbox `{}` {why}", plan.sandbox),
            fix: "install or upgrade git".into(),
        },
    }))
}

/// Returns the author of a run's commits.
fn commit_author(plan: &RunPlan) -> GitIdentity {
    let settings = plan.settings.as_ref();
    let author = settings.and_then(|settings| settings.author.clone());
    author.unwrap_or_default()
}

/// Installs the branch of a plan, which the host has, as the repository of a sandbox.
pub(crate) async fn install_branch(
    sandbox: &dyn Sandbox,
    dir: &RunDir,
    repo: &HostRepo,
    plan: &RunPlan,
) -> Result<(), RunError> {
    // In the repository's directory, so that a stale lock of git is found.
    let bundle = dir.repo().join("out.bundle");
    repo.bundle(&plan.branch, &bundle).await?;
    let installed = SandboxGit::new(sandbox)
        .install(BundleSource {
            bundle: &bundle,
            branch: &plan.branch,
            author: &commit_author(plan),
            remote: RemoteOrigin::of_plan(plan).as_ref(),
        })
        .await;
    // Only a copy of commits in the repository.
    durable::remove_leftover(&bundle);
    installed
}

/// Returns environment variables that keep tools from writing files beside the sources: checks must
/// not change the work.
fn tool_environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())])
}

/// Creates a sandbox and records it.
pub(crate) async fn create_sandbox(
    journal: &mut Journal,
    services: &Services,
    purpose: SandboxPurpose,
) -> Result<Box<dyn Sandbox>, RunError> {
    let name = match purpose {
        SandboxPurpose::Work => "work",
        SandboxPurpose::CleanRoom => "clean_room",
    };
    let state = journal.state();
    let spec = SandboxSpec {
        labels: labels(state.plan.run.as_str(), state.epoch, name),
        env: tool_environment(),
    };
    let sandbox = services.sandboxes.create(&spec).await?;
    journal.append(SandboxEvent::SandboxCreated {
        sandbox: sandbox.id().clone(),
        purpose,
    })?;
    Ok(sandbox)
}

async fn attach_existing(
    journal: &mut Journal,
    services: &Services,
) -> Result<Option<Box<dyn Sandbox>>, RunError> {
    let Some(id) = journal.state().sandbox.clone() else {
        return Ok(None);
    };
    let sandbox = services.sandboxes.attach(&id).await?;
    if sandbox.is_none() {
        let message = format!(
            "sandbox `{id}` is gone; a new one is created from the last commit that the host has"
        );
        journal.append_all([
            Event::Run(RunEvent::Notice { message }),
            Event::Sandbox(SandboxEvent::SandboxRemoved { sandbox: id }),
        ])?;
    }
    Ok(sandbox)
}

/// Removes all sandboxes of this run except its workspace: clean rooms, and those created just
/// before a crash.
pub(crate) async fn remove_orphaned_sandboxes(
    journal: &mut Journal,
    sandboxes: &dyn SandboxProvider,
) -> Result<(), RunError> {
    let run = journal.state().plan.run.to_string();
    let work = journal.state().sandbox.clone();
    let is_adopted = journal.state().adoption.is_some();
    for info in sandboxes.list().await? {
        if info.labels.get("run") != Some(&run) || Some(&info.id) == work.as_ref() {
            continue;
        }
        // A workspace from before the loss of the directory may contain the last copy of work.
        let may_have_work = info.labels.get("purpose").is_none_or(|p| p != "clean_room");
        if is_adopted && may_have_work {
            continue;
        }
        if let Some(sandbox) = sandboxes.attach(&info.id).await? {
            sandbox.remove().await?;
        }
        journal.append(SandboxEvent::SandboxRemoved { sandbox: info.id })?;
    }
    // Clean rooms that are already removed.
    for room in journal.state().clean_rooms.clone() {
        journal.append(SandboxEvent::SandboxRemoved { sandbox: room })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
