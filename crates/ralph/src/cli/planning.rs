//! From a task file and flags to a complete plan. Nothing is started and nothing is written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ralph_core::id::CommitId;
use ralph_core::lint::{self, LintFinding, LintSeverity};
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::SandboxProvider;
use ralph_core::profile::ModelChoice;
use ralph_core::task::{Contract, TaskFile};
use ralph_engine::contract;
use ralph_engine::git::{GitVersion, HostGit};
use ralph_engine::journal::RunOutline;

use super::agent::AgentAccess;
use super::agent_script;
use super::args::RunArgs;
use super::container;
use super::context::Context;
use super::create_run::new_id;
use super::error::CliError;
use super::exit::ExitCode;
use super::lint as lint_command;
use super::network;
use super::repository;
use super::sandbox_choice;
use super::secrets;
use crate::config::RegularFileError;
use crate::providers::Providers;
use crate::providers::models::{absolute_script, agent_model_name, listed_price};

/// A plan with the task it was made from.
pub(super) struct PlannedRun {
    pub(super) plan: RunPlan,
    pub(super) task: TaskFile,
    /// Which model answers, and how it is asked.
    pub(super) choice: ModelChoice,
    /// Things a person should know before it starts.
    pub(super) notices: Vec<String>,
}

/// Reads a task file. Returns its path with all links followed, and its content.
pub(super) fn read_bytes(file: &Path, context: &Context) -> Result<(PathBuf, Vec<u8>), CliError> {
    let path = context.environment().working_dir().join(file);
    let bytes = lint_command::read_task_bytes(file, context).map_err(|error| {
        let fix = match &error {
            RegularFileError::Io(_) | RegularFileError::NotRegular { .. } => {
                "name another file, or write one with `ralph init`"
            }
            RegularFileError::OutsideRoot { .. } => error.hint(),
        };
        let what = format!("cannot read the task file `{}`", file.display());
        CliError::usage(what, error.to_string(), fix)
    })?;
    Ok((path.canonicalize().unwrap_or(path), bytes))
}

/// Reads and lints the task file. What is wrong with it is printed, all of it at once.
pub(super) fn read_task(file: &Path, context: &Context) -> Result<(PathBuf, TaskFile), CliError> {
    let shown = file.display();
    let (path, bytes) = read_bytes(file, context)?;
    let report = lint::check(&bytes);
    let usable = report.is_ok();
    match report.task {
        Some(task) if usable => Ok((path, task)),
        _ => {
            let errors: Vec<_> = report
                .findings
                .into_iter()
                .filter(|f| f.severity == LintSeverity::Error)
                .collect();
            context
                .output()
                .print_stderr_lines(&lint_command::finding_lines(&shown.to_string(), &errors));
            let (why, fix) = errors.first().map(describe_finding).unwrap_or_default();
            Err(CliError {
                what: format!("the task file `{shown}` is refused"),
                why,
                fix: format!("{fix}; check with `ralph lint {shown}`"),
                code: ExitCode::LintRefused,
            })
        }
    }
}

/// Returns where a finding is with what it says, and what to do about it.
pub(super) fn describe_finding(finding: &LintFinding) -> (String, String) {
    let place = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        (Some(line), None) => format!("line {line}: "),
        (None, _) => String::new(),
    };
    let message = &finding.message;
    (format!("{place}{message}"), finding.fix.clone())
}

/// Completes the plan of a new run.
pub(super) async fn plan_run(
    args: &RunArgs,
    file: PathBuf,
    task: TaskFile,
    access: Option<&AgentAccess>,
    (context, wiring): (&Context, &Providers),
) -> Result<PlannedRun, CliError> {
    let git = wiring.git()?;
    require_git(&git).await?;
    secrets::refuse_in_task(&task.with_ticks(&BTreeSet::new()), &wiring.redactor)?;
    let contract = &task.contract;
    let agent = network::agent_plan(access, args, context)?;
    let sandbox = sandbox_choice::require_known_provider(args, &task, context)?;
    let (container, limits) = container::resource_plans(&sandbox, contract, context).await?;
    let provider = wiring.sandbox_provider(&sandbox, container.as_ref(), limits)?;
    require_provider(&*provider).await?;
    let choice = match &agent {
        Some(agent) => ModelChoice::for_model(agent_model_name(agent)),
        None => resolve_model(args, &task, context, wiring)?,
    };
    let source = SourceRepository::find(args, &task, &file, &git, context).await?;
    if let Some(access) = access {
        agent_script::require_committed_script(&access.preset, &source, &git).await?;
    }
    let title = (task.title.clone()).unwrap_or_else(|| contract.task_id.to_string());
    let wanted = contract.branch(task.title.as_deref());
    let branch = free_branch(&wanted, &source.path, &git, wiring).await?;
    let mut notices = source.notices(&git, &file).await;
    let network = network::plan_for_run(&sandbox, access, &source, &git, context).await?;
    let (network, idle_list) = network.unzip();
    notices.extend(idle_list.flatten());
    notices.extend(access.and_then(AgentAccess::destination));
    notices.extend(secrets::unredacted_warning(&wiring.redactor));
    notices.extend(sandbox_choice::weaker_sandbox_notice(
        args, contract, &sandbox,
    ));
    let plan = RunPlan {
        run: new_id(wiring.clock.now()),
        task_id: contract.task_id.clone(),
        title,
        task_file: file.to_string_lossy().into_owned(),
        contract: contract::digest(&task),
        repo: source.path.to_string_lossy().into_owned(),
        base_branch: source.base_branch,
        base: source.base,
        branch,
        engine: agent
            .as_ref()
            .map_or(EngineKind::Actions, |_| EngineKind::Agent),
        sandbox,
        isolation: provider.isolation(),
        local: container::local_plan(&*provider, limits),
        container,
        network,
        agent,
        model: choice.model.clone(),
        scm: "local".into(),
        delivery: delivery_for(contract),
        limits: contract.limits(),
        test_command: contract.test_command.clone().unwrap_or_default(),
        checkboxes: task.checkboxes.len(),
        mode: contract.mode,
    };
    Ok(PlannedRun {
        plan,
        task,
        choice,
        notices,
    })
}

/// Returns the model that answers, after a look whether it can and what it costs.
fn resolve_model(
    args: &RunArgs,
    task: &TaskFile,
    context: &Context,
    wiring: &Providers,
) -> Result<ModelChoice, CliError> {
    let (model, profile) = (args.model.as_deref(), args.profile.as_deref());
    let choice = model_choice(model, profile, Some(task), context)?;
    require_price(&choice, task, &args.file, context)?;
    wiring.models.create(&choice, &[])?;
    Ok(choice)
}

async fn require_provider(provider: &dyn SandboxProvider) -> Result<(), CliError> {
    match provider.preflight().await.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(CliError::runtime(
            format!("sandbox `{}` cannot be used", provider.name()),
            problem.what,
            problem.fix,
        )),
    }
}

fn delivery_for(contract: &Contract) -> Delivery {
    if contract.pr.enabled {
        Delivery::PullRequest
    } else {
        Delivery::Branch
    }
}

/// Returns what git says about its version, which must not be too old.
pub(super) async fn require_git(git: &HostGit) -> Result<String, CliError> {
    let said = git.run_as_user(Path::new("/"), &["--version"]).await;
    let said = said.map_err(|error| {
        CliError::runtime(
            "git cannot be used",
            error.to_string(),
            "install git and make sure it is on PATH",
        )
    })?;
    match GitVersion::parse(&said).filter(GitVersion::is_too_old) {
        None => Ok(said),
        Some(version) => Err(CliError::runtime(
            format!("git {version} is too old"),
            GitVersion::requirement(),
            "upgrade git",
        )),
    }
}

/// Flag, task, environment, file: the first that names a model wins.
pub(super) fn model_choice(
    model: Option<&str>,
    profile: Option<&str>,
    task: Option<&TaskFile>,
    context: &Context,
) -> Result<ModelChoice, CliError> {
    let environment = context.environment();
    let profiles = context.profiles()?;
    let mut choice = if let Some(model) = model {
        ModelChoice::for_model(model)
    } else {
        let named = profile
            .or(task.and_then(|task| task.contract.model_profile_default.as_deref()))
            .or(environment.default_profile())
            .or(profiles.default_name());
        let Some(name) = named else {
            return Err(CliError::usage(
                "no model is chosen",
                "neither a flag, the task, the environment nor config/models.yaml names one",
                "use `--model` or `--profile`",
            ));
        };
        profiles.resolve(name)?.to_model_choice(name)
    };
    choice.model = absolute_script(&choice.model, environment.working_dir());
    if choice.price.is_none() {
        choice.price = listed_price(&profiles, &choice, environment)?;
    }
    Ok(choice)
}

/// Refuses a task whose only limit of spending is money, if nobody knows what the model costs.
fn require_price(
    choice: &ModelChoice,
    task: &TaskFile,
    file: &Path,
    context: &Context,
) -> Result<(), CliError> {
    let Some(finding) = lint::unenforceable_cost_limit(task, &choice.model, choice.price.as_ref())
    else {
        return Ok(());
    };
    let shown = file.display().to_string();
    let (why, fix) = describe_finding(&finding);
    context
        .output()
        .print_stderr_lines(&lint_command::finding_lines(&shown, &[finding]));
    Err(CliError {
        what: format!("the task file `{shown}` is refused"),
        why,
        fix,
        code: ExitCode::LintRefused,
    })
}

/// The repository that the work starts from.
pub(super) struct SourceRepository {
    pub(super) path: PathBuf,
    pub(super) base_branch: String,
    pub(super) base: CommitId,
}

impl SourceRepository {
    pub(super) async fn find(
        args: &RunArgs,
        task: &TaskFile,
        file: &Path,
        git: &HostGit,
        context: &Context,
    ) -> Result<Self, CliError> {
        let named = args.repo.clone().or_else(|| {
            task.contract
                .repo_url
                .as_ref()
                .map(|url| url.as_str().to_owned())
        });
        let path = match named {
            Some(named) => local_path(&named, context.environment().working_dir())?,
            None => file.parent().unwrap_or(Path::new("/")).to_owned(),
        };
        let path = top_level(&path, git).await?;
        let base_branch = match &task.contract.base_branch {
            Some(branch) => branch.as_str().to_owned(),
            None => current_branch(&path, git).await?,
        };
        let base = base_commit(&path, &base_branch, git).await?;
        repository::require_complete_history(&path, &base_branch, git).await?;
        Ok(Self {
            path,
            base_branch,
            base,
        })
    }

    /// Returns the differences between the user's working directory and a sandbox.
    async fn notices(&self, git: &HostGit, task_file: &Path) -> Vec<String> {
        let mut notices = self.uncommitted(git, task_file).await;
        notices.extend(repository::work_tree_notices(&self.path, &self.base, git).await);
        notices
    }

    /// Says what of the user's working directory is not taken along.
    async fn uncommitted(&self, git: &HostGit, task_file: &Path) -> Vec<String> {
        let status = git
            .run_as_user(
                &self.path,
                &["status", "--porcelain", "--untracked-files=no"],
            )
            .await
            .unwrap_or_default();
        let own = task_file
            .strip_prefix(&self.path)
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let dirty = status
            .lines()
            .filter(|line| line.get(3..) != Some(own.as_str()))
            .count();
        if dirty == 0 {
            return Vec::new();
        }
        let files = crate::terminal::format::plural(
            dirty as u64,
            "uncommitted change",
            "uncommitted changes",
        );
        vec![format!(
            "not taken along from `{}`: {files}; the work starts from commit {}",
            self.path.display(),
            self.base.short()
        )]
    }
}

pub(super) fn local_path(named: &str, directory: &Path) -> Result<PathBuf, CliError> {
    let remote = named.contains("://") && !named.starts_with("file://");
    if remote || named.starts_with("git@") {
        let shown = named.rsplit('@').next().unwrap_or(named);
        return Err(CliError::usage(
            format!("repository `{shown}` is not available"),
            "this version works on repositories of this machine",
            "clone it, then use `--repo PATH`",
        ));
    }
    Ok(directory.join(named.trim_start_matches("file://")))
}

pub(super) async fn top_level(path: &Path, git: &HostGit) -> Result<PathBuf, CliError> {
    if !path.is_dir() {
        return Err(repository::no_repository(path, "no such directory"));
    }
    repository::require_utf8_path(path)?;
    let top = match git
        .run_as_user(path, &["rev-parse", "--show-toplevel"])
        .await
    {
        Ok(top) => top,
        // A bare repository has no work tree; its own directory is what counts.
        Err(_) => git
            .run_as_user(path, &["rev-parse", "--absolute-git-dir"])
            .await
            .map_err(|error| repository::unreadable(path, &error))?,
    };
    let top = PathBuf::from(top.trim_end_matches('\n'));
    top.canonicalize()
        .map_err(|error| repository::no_repository(path, error.to_string()))
}

async fn current_branch(path: &Path, git: &HostGit) -> Result<String, CliError> {
    let branch = git
        .run_as_user(path, &["symbolic-ref", "--quiet", "--short", "HEAD"])
        .await
        .map_err(|_| {
            CliError::runtime(
                format!("no branch is checked out in `{}`", path.display()),
                "the work needs a branch to start from",
                "check one out, or set `base_branch` in the task file",
            )
        })?;
    if branch.contains(char::REPLACEMENT_CHARACTER) {
        return Err(CliError::runtime(
            format!("the branch in `{}` cannot be used", path.display()),
            "its name is not UTF-8",
            "check out another branch, or set `base_branch` in the task file",
        ));
    }
    Ok(branch.trim().to_owned())
}

/// Returns the commit of a revision, if there is one.
pub(super) async fn commit_at(path: &Path, revision: &str, git: &HostGit) -> Option<CommitId> {
    let revision = format!("{revision}^{{commit}}");
    let found = git
        .run_as_user(path, &["rev-parse", "--verify", "--quiet", &revision])
        .await;
    CommitId::parse(found.ok()?.trim())
}

async fn base_commit(path: &Path, branch: &str, git: &HostGit) -> Result<CommitId, CliError> {
    let reference = format!("refs/heads/{branch}");
    if let Some(commit) = commit_at(path, &reference, git).await {
        return Ok(commit);
    }
    let empty = git
        .run_as_user(path, &["rev-list", "--all", "--max-count=1"])
        .await
        .is_ok_and(|text| text.is_empty());
    Err(if empty {
        CliError::runtime(
            format!("repository `{}` has no commits", path.display()),
            "there is nothing to start from",
            "make a first commit",
        )
    } else {
        CliError::runtime(
            format!("there is no branch `{branch}` in `{}`", path.display()),
            "the work needs a branch to start from",
            "correct `base_branch` in the task file, or make the branch",
        )
    })
}

/// Returns the wanted branch name, or the next one with `-v2`, `-v3`… that no run has used.
pub(super) async fn free_branch(
    wanted: &str,
    repo: &Path,
    git: &HostGit,
    wiring: &Providers,
) -> Result<String, CliError> {
    let mut taken: Vec<String> = git
        .run_as_user(
            repo,
            &[
                "for-each-ref",
                "--format=%(refname:lstrip=2)",
                "refs/heads/",
            ],
        )
        .await
        .map(|text| text.lines().map(str::to_owned).collect())
        .unwrap_or_default();
    for id in wiring.state.runs()? {
        let outline = RunOutline::read(&wiring.state.run(&id).journal());
        if outline.repo.as_ref().map(Path::new) == Some(repo) {
            taken.extend(outline.branch);
        }
    }
    let numbered = (2..).map(|number| format!("{wanted}-v{number}"));
    let free = std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| !taken.contains(name));
    Ok(free.unwrap_or_else(|| wanted.to_owned()))
}
