//! Rebuilds a run whose directory is gone, after the user has confirmed its contract.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ralph_core::event::{Adoption, AdoptionSource};
use ralph_core::id::RunId;
use ralph_core::image::{AgentImage, ImageEffort};
use ralph_core::plan::RunPlan;
use ralph_core::ports::{ProviderProblem, Sandbox};
use ralph_core::state::RunState;
use ralph_core::task::TaskFile;
use ralph_engine::adoption::{self, AdoptedCommits, SandboxCopy, SavedRunError};
use ralph_engine::contract::{self, PinnedTask};
use ralph_engine::durable;
use ralph_engine::error::RunError;
use ralph_engine::git::{GitError, HostGit, HostRepo, OwnFiles};
use ralph_engine::journal::{Journal, RunOutline};
use ralph_engine::store::RunDir;

use super::create_run;
use super::orphans::{OrphanedRun, OrphanedRuns, SavedRun};
use super::saved_plan::{self, SavedPlan};
use crate::app::App;
use crate::error::AppError;
use crate::image::{self, ImageProgressSink};
use crate::planning::{self, PlanPurpose, PlannedRun, RunRequest, TASK_FILE};
use crate::providers::Providers;
use crate::prune::OrphanedSandbox;

/// A lost run, as the user sees it before the confirmation.
pub struct PendingAdoption {
    pub orphan: OrphanedRun,
    /// The contract in the snapshot or in the sandbox.
    pub contract: AdoptedContract,
    /// The plan of a run with a snapshot.
    pub saved: Option<SavedPlan>,
    copy: Option<SandboxCopy>,
}

/// The contract that a copy contains. The agent, or the author of the snapshot, could have changed it.
pub struct AdoptedContract {
    /// A file on the host with its text.
    pub file: PathBuf,
    pub task: TaskFile,
    /// Whether the task file in the working directory has the same text.
    pub is_known: bool,
}

/// Options of an adoption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdoptionOptions {
    /// The sandbox that the user accepts; the others are for a run without a plan.
    pub sandbox: Option<String>,
    pub agent: Option<String>,
    pub profile: Option<String>,
    pub model: Option<String>,
}

impl AdoptionOptions {
    fn has_plan_options(&self) -> bool {
        self.agent.is_some() || self.profile.is_some() || self.model.is_some()
    }
}

/// Finds a lost run, and reads the plan in its snapshot. Without a usable one, reads the contract in its
/// sandbox, whose processes end.
pub async fn inspect_orphan(query: &str, app: &App) -> Result<PendingAdoption, AppError> {
    let orphans = OrphanedRuns::find(app).await?;
    let Some(orphan) = orphans.get(query).cloned() else {
        if let Ok(run) = app.find_run(query) {
            let run = run.root().file_name().unwrap_or_default().to_string_lossy();
            return Err(AppError::usage(
                format!("run `{run}` need not be adopted"),
                "its directory exists",
                format!("continue it with `ralph resume {run}`"),
            ));
        }
        let docker = orphans.docker_problem.map(|problem| problem.what);
        let docker = docker.map_or_else(String::new, |why| format!("; docker is skipped: {why}"));
        return Err(AppError::runtime(
            format!("there is no orphaned run `{query}`"),
            format!("no sandbox and no snapshot in this repository has its files{docker}"),
            "list orphaned runs with `ralph runs --all`; in a clone, first `git fetch origin 'refs/ralph/*:refs/ralph/*'`",
        ));
    };
    let providers = app.providers()?;
    inspect_copies(orphan, app, &providers).await
}

async fn inspect_copies(
    mut orphan: OrphanedRun,
    app: &App,
    providers: &Providers,
) -> Result<PendingAdoption, AppError> {
    if let Some(saved) = &orphan.saved {
        match saved_plan::read(&orphan.run, saved, (&providers.git()?, providers)).await {
            Ok((saved, task)) => {
                let text = task.with_ticks(&BTreeSet::new());
                let contract = store_contract(&orphan.run, text.as_bytes(), app, providers)?;
                return Ok(PendingAdoption {
                    orphan,
                    contract,
                    saved: Some(saved),
                    copy: None,
                });
            }
            Err(SavedRunError::NoJournal) if orphan.sandbox.is_some() => {
                tracing::warn!("the snapshot of run `{}` has no journal", orphan.run);
                orphan.saved = None;
            }
            Err(error) => return Err(unusable(&orphan, saved, &error)),
        }
    }
    let copy = read_copy(&orphan, providers).await?;
    let contract = store_contract(&orphan.run, &copy.task, app, providers)?;
    Ok(PendingAdoption {
        orphan,
        contract,
        saved: None,
        copy: Some(copy),
    })
}

fn unusable(orphan: &OrphanedRun, saved: &SavedRun, error: &SavedRunError) -> AppError {
    let what = format!("cannot adopt run `{}` from {}", orphan.run, saved.reference);
    let fix = match error {
        SavedRunError::NoCommit { branch, .. } => {
            format!("fetch the branch `{branch}`, then try again")
        }
        SavedRunError::Git(_)
        | SavedRunError::Store(_)
        | SavedRunError::Journal(_)
        | SavedRunError::NoJournal
        | SavedRunError::Contract(_)
        | SavedRunError::OtherEnd { .. }
        | SavedRunError::OtherRun(_) => "fetch the ref again, then try again".to_owned(),
    };
    AppError::runtime(what, error.to_string(), fix)
}

async fn read_copy(orphan: &OrphanedRun, providers: &Providers) -> Result<SandboxCopy, AppError> {
    let sandbox = attach(orphan.sandbox.as_ref(), providers).await?;
    let Some(sandbox) = sandbox else {
        return Err(failed(orphan, "its sandbox is gone"));
    };
    let copy = SandboxCopy::read(&*sandbox).await;
    copy.map_err(|error| failed(orphan, &error.to_string()))
}

/// Stores the contract for the user to read, and parses it like every task file.
fn store_contract(
    run: &RunId,
    text: &[u8],
    app: &App,
    providers: &Providers,
) -> Result<AdoptedContract, AppError> {
    let tasks = providers.state.tasks();
    durable::create_dir(&tasks)?;
    let path = tasks.join(format!("adopted-{run}.md"));
    durable::write(&path, &providers.redactor.redact_bytes(text))?;
    let (file, task) = planning::read_task(&path, app)?;
    let own = planning::read_task(Path::new(TASK_FILE), app);
    let same = own.is_ok_and(|(_, own)| contract::digest(&own) == contract::digest(&task));
    Ok(AdoptedContract {
        file,
        task,
        is_known: same,
    })
}

async fn attach(
    sandbox: Option<&OrphanedSandbox>,
    providers: &Providers,
) -> Result<Option<Box<dyn Sandbox>>, AppError> {
    let Some(orphaned) = sandbox else {
        return Ok(None);
    };
    let attached = orphaned.attach(providers).await;
    attached.map_err(|ProviderProblem { what, fix }| {
        let name = format!("cannot use the sandbox `{}`", orphaned.id);
        AppError::runtime(name, what, fix)
    })
}

fn failed(orphan: &OrphanedRun, why: &str) -> AppError {
    AppError::runtime(
        format!("cannot adopt run `{}`", orphan.run),
        why,
        "copy single files out of the sandbox, see `docs/guides/recover.md`",
    )
}

impl PendingAdoption {
    /// Returns the request with which a new run of the contract is planned. A run without a plan
    /// continues in its sandbox; the plan of a snapshot does not decide about its own sandbox.
    pub fn request(&self, options: &AdoptionOptions, app: &App) -> RunRequest {
        let repo = app.repository().map(|path| path.display().to_string());
        let repo = repo.or_else(|| Some(app.environment().working_dir().display().to_string()));
        let request = RunRequest {
            repo,
            ..RunRequest::for_file(&self.contract.file)
        };
        match &self.saved {
            Some(saved) => RunRequest {
                sandbox: options.sandbox.clone(),
                ..saved.request(request)
            },
            None => RunRequest {
                sandbox: self.orphan.sandbox.as_ref().map(|s| s.provider.to_owned()),
                agent: options.agent.clone(),
                profile: options.profile.clone(),
                model: options.model.clone(),
                ..request
            },
        }
    }

    /// Returns the parts of a snapshot's plan that a new run of its contract would not have here, so that
    /// the user has to accept them.
    pub async fn unapproved(
        &self,
        options: &AdoptionOptions,
        app: &App,
    ) -> Result<Vec<String>, AppError> {
        let sandbox = match (&self.saved, &self.orphan.sandbox) {
            (Some(saved), _) => Some(saved.plan.sandbox.as_str()),
            (None, sandbox) => sandbox.as_ref().map(|sandbox| sandbox.provider),
        };
        if let (Some(accepted), Some(sandbox)) = (&options.sandbox, sandbox)
            && accepted != sandbox
        {
            return Err(AppError::usage(
                format!("`--sandbox {accepted}` cannot be used"),
                format!("the run works in the sandbox `{sandbox}`"),
                "omit it",
            ));
        }
        match &self.saved {
            Some(saved) => {
                let request = self.request(options, app);
                saved.unapproved(&request, &self.contract, app).await
            }
            None => Ok(Vec::new()),
        }
    }

    /// Rebuilds the directory of the run, which is then paused. A failure leaves nothing behind.
    pub async fn adopt(
        self,
        options: &AdoptionOptions,
        app: &App,
        progress: ImageProgressSink<'_>,
    ) -> Result<RunDir, AppError> {
        let providers = app.providers()?;
        let dir = providers.state.run(&self.orphan.run);
        if !dir.reserve()? {
            return Err(AppError::runtime(
                format!("cannot adopt run `{}`", self.orphan.run),
                format!("the directory `{}` exists", dir.root().display()),
                "move it away, then try again",
            ));
        }
        let adopted = match self.orphan.saved.clone() {
            Some(saved) if !options.has_plan_options() => {
                Box::pin(self.adopt_saved(&saved, &dir, (app, &providers))).await
            }
            Some(_) => Err(AppError::usage(
                "`--agent`, `--model` and `--profile` cannot be used",
                "the run has a snapshot with its plan",
                "omit them",
            )),
            None => Box::pin(self.adopt_sandbox(options, &dir, (app, &providers), progress)).await,
        };
        if adopted.is_err()
            && let Err(error) = durable::remove_tree(dir.root())
        {
            tracing::warn!(%error, "cannot remove an incomplete run");
        }
        adopted.map(|()| dir)
    }

    async fn adopt_saved(
        self,
        saved: &SavedRun,
        dir: &RunDir,
        (app, providers): (&App, &Providers),
    ) -> Result<(), AppError> {
        let orphan = &self.orphan;
        let unusable = |error: SavedRunError| unusable(orphan, saved, &error);
        let git = providers.git()?;
        let repo = git.repo(dir.repo());
        let source = saved.repo.display().to_string();
        let snapshot = (source.as_str(), saved.reference.as_str(), &saved.commit);
        let restored = adoption::restore_files((dir, &repo), snapshot, &orphan.run).await;
        let (state, missing) = restored.map_err(unusable)?;
        if state.status.is_final() {
            return Err(AppError::usage(
                format!("run `{}` need not be adopted", orphan.run),
                format!("it has {}", state.status.as_str()),
                format!("its branch is `{}`", state.plan.branch),
            ));
        }
        require_docker(&state.plan, orphan, app).await?;
        let restored = adoption::restore_commits(&git, (dir, &repo), &source, &state).await;
        restored.map_err(unusable)?;
        let sandbox = attach(orphan.sandbox.as_ref(), providers).await?;
        let commits = match &sandbox {
            Some(sandbox) => Some(import_saved(&**sandbox, (dir, &repo), &state, providers).await?),
            None => None,
        };
        let adoption = Adoption {
            source: AdoptionSource::StateRef {
                reference: saved.reference.clone(),
                commit: saved.commit.clone(),
            },
            sandbox: sandbox.as_ref().map(|sandbox| sandbox.id().clone()),
            // A run of a source host stays there, whatever clone its files came from.
            repo: (state.plan.repo != source && state.plan.remote_repository().is_none())
                .then_some(source),
            claimed: None,
            missing_count: (missing.count > missing.named.len()).then_some(missing.count),
            missing: missing.named,
        };
        let (clock, redactor) = (providers.clock.clone(), providers.redactor.clone());
        let mut journal = Journal::open(dir, clock, redactor)?;
        Ok(adoption::record_adoption(
            dir,
            &mut journal,
            adoption,
            commits,
        )?)
    }

    async fn adopt_sandbox(
        self,
        options: &AdoptionOptions,
        dir: &RunDir,
        (app, providers): (&App, &Providers),
        progress: ImageProgressSink<'_>,
    ) -> Result<(), AppError> {
        let request = self.request(options, app);
        let contract = self.contract;
        let Some(copy) = self.copy else {
            return Err(failed(&self.orphan, "its contract is unknown"));
        };
        let task = (contract.file, contract.task);
        let planned = planning::plan_run(&request, task, app, PlanPurpose::Start);
        let mut planned = Box::pin(planned).await?;
        let sandbox = attach(self.orphan.sandbox.as_ref(), providers).await?;
        let Some(sandbox) = sandbox else {
            return Err(failed(&self.orphan, "its sandbox is gone"));
        };
        let git = providers.git()?;
        let repo = git.repo(dir.repo());
        planned.plan.run = self.orphan.run.clone();
        let from = choose_branch(&mut planned, &copy, providers)?;
        let restored = (dir, &repo);
        find_base(&self.orphan, (&mut planned.plan, &copy), &git, restored).await?;
        let access = planned.access.take();
        let agent = access.as_ref().map(|access| access.preset.image.as_str());
        let agent = agent.map_or(AgentImage::Plain, AgentImage::for_agent);
        let plan = (&mut planned.plan, agent);
        image::ensure_image(plan, ImageEffort::Reuse, progress, (app, providers)).await?;
        let own = own_files(&planned.task);
        let commits = adoption::import_commits(
            &*sandbox,
            (dir, &repo),
            (&from, &planned.plan.branch),
            &planned.plan.base,
            (&providers.redactor, own),
        );
        let commits = commits.await.map_err(|error| engine_error(&error))?;
        let adoption = Adoption {
            source: AdoptionSource::Sandbox,
            sandbox: Some(sandbox.id().clone()),
            repo: None,
            claimed: Some(copy.claimed),
            missing: Vec::new(),
            missing_count: None,
        };
        let mut journal = create_journal(dir, planned, providers)?;
        copy.store(dir, &providers.redactor)?;
        Ok(adoption::record_adoption(
            dir,
            &mut journal,
            adoption,
            Some(commits),
        )?)
    }
}

/// Imports the commits and files that the sandbox has beyond the snapshot.
async fn import_saved(
    sandbox: &dyn Sandbox,
    (dir, repo): (&RunDir, &HostRepo),
    state: &RunState,
    providers: &Providers,
) -> Result<AdoptedCommits, AppError> {
    let task = contract::load_contract(dir, &state.contract).map_err(|e| engine_error(&e))?;
    match SandboxCopy::read(sandbox).await {
        Ok(copy) => copy.store_newer(state.iteration, dir, &providers.redactor)?,
        // The snapshot suffices; the agent may have damaged its copies.
        Err(error) => tracing::warn!(%error, "the files of the sandbox are left out"),
    }
    let branch = state.plan.branch.as_str();
    let imported = adoption::import_commits(
        sandbox,
        (dir, repo),
        (branch, branch),
        &state.head,
        (&providers.redactor, own_files(&task)),
    );
    imported.await.map_err(|error| engine_error(&error))
}

fn own_files(task: &TaskFile) -> OwnFiles {
    if task.contract.commit_state {
        OwnFiles::Committed
    } else {
        OwnFiles::Excluded
    }
}

fn engine_error(error: &RunError) -> AppError {
    AppError::runtime("cannot adopt the run", error.to_string(), "try again")
}

/// Refuses to adopt a run of containers while they cannot be listed: its work may be in one.
async fn require_docker(plan: &RunPlan, orphan: &OrphanedRun, app: &App) -> Result<(), AppError> {
    if plan.sandbox != "docker" || orphan.sandbox.is_some() {
        return Ok(());
    }
    match OrphanedRuns::find(app).await?.docker_problem {
        Some(problem) => Err(AppError::runtime(
            format!("cannot search for the container of run `{}`", orphan.run),
            problem.what,
            problem.fix,
        )),
        None => Ok(()),
    }
}

/// Sets the branch of the plan to the one in the sandbox, if it belongs to the task and no other run
/// uses it. Returns the branch in the sandbox.
fn choose_branch(
    planned: &mut PlannedRun,
    copy: &SandboxCopy,
    providers: &Providers,
) -> Result<String, AppError> {
    let contract = &planned.task.contract;
    let wanted = contract.branch(planned.task.title.as_deref());
    let is_of_task = |name: &&String| {
        let rest = name.strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let found = copy.branch.as_ref().filter(is_of_task).cloned();
    let from = found.unwrap_or(wanted);
    let runs = providers.state.runs()?;
    let mut others = runs.iter().map(|id| {
        let journal = providers.state.run(id).journal();
        RunOutline::read(&journal).branch
    });
    if !others.any(|branch| branch.as_ref() == Some(&from)) {
        planned.plan.branch.clone_from(&from);
    }
    Ok(from)
}

/// Creates the run's repository at the commit from which the sandbox's history started.
async fn find_base(
    orphan: &OrphanedRun,
    (plan, copy): (&mut RunPlan, &SandboxCopy),
    git: &HostGit,
    (dir, repo): (&RunDir, &HostRepo),
) -> Result<(), AppError> {
    let (source, base_branch) = (plan.repo.clone(), plan.base_branch.clone());
    let unusable = |error: GitError| failed(orphan, &error.to_string());
    let prepared = adoption::prepare_repository(git, (dir, repo), &source, plan);
    prepared.await.map_err(unusable)?;
    // Without a readable history, the work starts from the newest commit of the base branch.
    if copy.commits.is_empty() {
        return Ok(());
    }
    let base = adoption::find_base(repo, &copy.commits).await;
    let Some(base) = base.map_err(unusable)? else {
        let why = format!("its history has no commit of branch `{base_branch}` in `{source}`");
        return Err(failed(orphan, &why));
    };
    plan.base = base;
    let prepared = adoption::prepare_repository(git, (dir, repo), &source, plan);
    prepared.await.map_err(unusable)
}

fn create_journal(
    dir: &RunDir,
    planned: PlannedRun,
    providers: &Providers,
) -> Result<Journal, AppError> {
    let PlannedRun {
        plan, task, choice, ..
    } = planned;
    let creating = providers.state.lock_creation()?;
    dir.create()?;
    PinnedTask::pin(dir, plan.task_file.clone().into(), task)?;
    let (clock, redactor) = (providers.clock.clone(), providers.redactor.clone());
    let mut journal = Journal::create(dir, plan, clock, redactor)?;
    drop(creating);
    journal.append_all(create_run::model_event(choice))?;
    Ok(journal)
}
