//! The starting point of a run whose repository is on a source host: the base commit is fetched into the
//! mirror that the runs of the repository share, and everything else is read there.

use ralph_core::id::CommitId;
use ralph_core::ports::{HostRepository, SourceHost};
use ralph_core::repo_address::RemoteRepo;
use ralph_core::task::BranchName;
use ralph_engine::git::{HostGit, RemoteBranches, RepositoryMirror};

use crate::app::App;
use crate::error::AppError;
use crate::providers::{RemoteSource, SourceConnection};
use crate::scm::{connect, host_error, remote_git_error};

/// Finds the base commit of a task in a repository on a source host. The base branch of the task is `None`
/// for the default branch; `wanted` is the branch to deliver.
pub(crate) async fn find_remote(
    repo: &RemoteRepo,
    (base, wanted): (Option<&BranchName>, String),
    app: &App,
) -> Result<RemoteSource, AppError> {
    let search = RemoteSearch {
        base: base.map(BranchName::as_str),
        wanted,
        app,
    };
    let key = format!("{repo} {:?} {}", search.base, search.wanted);
    let mut sources = app.source_connections().found.lock().await;
    if let Some(source) = sources.get(&key) {
        return Ok(source.clone());
    }
    let source = search.run(repo).await?;
    sources.insert(key, source.clone());
    Ok(source)
}

/// A search for the base commit.
struct RemoteSearch<'a> {
    /// The base branch of the task; `None` means the default branch.
    base: Option<&'a str>,
    /// The name of the branch to deliver.
    wanted: String,
    app: &'a App,
}

impl RemoteSearch<'_> {
    async fn run(&self, named: &RemoteRepo) -> Result<RemoteSource, AppError> {
        let connection = connect(named, self.app).await?;
        let mut problems = Vec::new();
        let mut notices = Vec::new();
        let found = inspect_host(&connection, &mut problems).await;
        let (repo, connection) = match &found {
            Some(found) => self.current_name(named, connection, found).await?,
            None => (named.clone(), connection),
        };
        if repo != *named {
            notices.push(format!("`{named}` is now `{repo}`, which the run uses"));
        }
        let transport = if problems.is_empty() || found.is_some() {
            connection.transport.clone()
        } else {
            // A public repository can be read without a credential.
            connection.anonymous_transport()
        };
        let git = self.app.providers()?.git()?.with_remote(transport);
        let branches = self.branches(&repo, &git).await;
        let branches = match branches {
            Ok(branches) => branches,
            Err(error) => return Err(AppError::combine(problems).unwrap_or(error)),
        };
        let (default_branch, base_branch, base) = self.base_commit(&repo, &branches)?;
        let mirrors = self.app.state_dir()?.mirrors();
        let mirror = RepositoryMirror::new(&git, &mirrors, &repo.to_string(), &base);
        let fetched = mirror
            .add_branch(&repo.git_url(), &base_branch, &base)
            .await;
        fetched.map_err(|error| remote_git_error(&repo, &error))?;
        if base_branch != default_branch {
            notices.push(format!(
                "the default branch of `{repo}` is `{default_branch}`; the work starts from `{base_branch}`"
            ));
        }
        Ok(RemoteSource {
            repo,
            scm: connection.scm.name(),
            credential: connection.credential.into_iter().next(),
            mirror: mirror.path().to_owned(),
            base_branch,
            base,
            taken: branches.heads.into_keys().collect(),
            problems,
            notices,
        })
    }

    /// Returns the repository under its current name, with the connection for it.
    async fn current_name(
        &self,
        named: &RemoteRepo,
        connection: SourceConnection,
        found: &HostRepository,
    ) -> Result<(RemoteRepo, SourceConnection), AppError> {
        let repo = named.renamed(&found.full_name).map_err(|error| {
            AppError::runtime(
                format!("cannot use `{named}`"),
                format!("the host returned a name that is not valid: {error}"),
                "check that the host is GitHub or GitHub Enterprise Server",
            )
        })?;
        if repo == *named {
            return Ok((repo, connection));
        }
        let connection = connect(&repo, self.app).await?;
        Ok((repo, connection))
    }

    async fn branches(&self, repo: &RemoteRepo, git: &HostGit) -> Result<RemoteBranches, AppError> {
        let variants = format!("{}*", self.wanted);
        let mut patterns = vec![variants.as_str()];
        patterns.extend(self.base);
        let branches = git.remote_branches(&repo.git_url(), &patterns).await;
        branches.map_err(|error| remote_git_error(repo, &error))
    }

    /// Returns the default branch, the base branch and its commit.
    fn base_commit(
        &self,
        repo: &RemoteRepo,
        branches: &RemoteBranches,
    ) -> Result<(String, String, CommitId), AppError> {
        let Some(default) = &branches.default else {
            return Err(AppError::runtime(
                format!("repository `{repo}` has no commits on its default branch"),
                "there is nothing to start from",
                "push a first commit",
            ));
        };
        let base = self.base.unwrap_or(default);
        let Some(commit) = branches.heads.get(base) else {
            return Err(AppError::runtime(
                format!("there is no branch `{base}` in `{repo}`"),
                "the work needs a branch to start from",
                format!(
                    "correct `base_branch` in the task file, or push the branch; the default branch is `{default}`"
                ),
            ));
        };
        Ok((default.clone(), base.to_owned(), commit.clone()))
    }
}

/// Returns what the host says about the repository, and adds the reasons against a run. `None` if the
/// host cannot be asked.
async fn inspect_host(
    connection: &SourceConnection,
    problems: &mut Vec<AppError>,
) -> Option<HostRepository> {
    let repo = &connection.repo;
    if let Err(error) = &connection.credential {
        problems.push(error.clone());
        return None;
    }
    let host = connection.scm.source_host()?;
    let found = match host.repository().await {
        Ok(found) => found,
        Err(error) => {
            problems.push(host_error(repo, &error));
            return None;
        }
    };
    if found.archived {
        problems.push(AppError::runtime(
            format!("repository `{}` is archived", found.full_name),
            "it accepts no branches and no pull requests",
            "ask its owner to unarchive it, or choose another repository",
        ));
    }
    let may_push = found.can_push != Some(false) || !connection.has_role;
    add_permissions(repo, host, may_push, problems).await;
    Some(found)
}

async fn add_permissions(
    repo: &RemoteRepo,
    host: &dyn SourceHost,
    may_push: bool,
    problems: &mut Vec<AppError>,
) {
    let access = match host.validate().await {
        Ok(access) => access,
        Err(error) => return problems.push(host_error(repo, &error)),
    };
    if !may_push {
        problems.push(AppError::runtime(
            format!(
                "`{}` may not push to `{}`",
                access.account,
                repo.full_name()
            ),
            "the role in the repository does not include it",
            "ask an administrator of the repository for the role Write",
        ));
    }
    if !access.missing.is_empty() {
        problems.push(AppError::runtime(
            format!(
                "the credential of `{}` lacks permissions for `{}`",
                access.account,
                repo.full_name()
            ),
            format!("missing: {}", access.missing.join(", ")),
            format!("grant them; `ralph scm check {repo}` shows all permissions"),
        ));
    }
}
