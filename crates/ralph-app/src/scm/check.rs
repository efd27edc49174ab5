//! `ralph scm check`: whether ralph can work with a repository on its source host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ralph_core::ports::{HostError, HostErrorKind};
use ralph_core::repo_address::{RemoteRepo, RepoAddress};
use ralph_engine::git::{GitError, UserRepository};
use url::Url;

use super::credential::{CredentialKind, CredentialSource, find_credential};
use super::failure::FailureContext;
use super::report::{GitHubReport, LocalReport, ScmReport};
use crate::app::App;
use crate::error::AppError;
use crate::providers::github::{
    GitHubClient, GitHubConnection, GitHubReply, GitHubRepository, GitHubTiming, GrantedAccess,
    PermissionCheck, RateLimit, TokenPace, access_of_installation, access_of_scopes, compare,
    needed_names, probe_of,
};
use crate::providers::github_client;
use crate::providers::models::proxy_settings;
use crate::tokens::{BaseUrl, GITHUB_API};

/// Checks the repository at an address, or the one of the working directory.
pub async fn check_repository(
    address: Option<&RepoAddress>,
    app: &App,
) -> Result<ScmReport, AppError> {
    if let Some(address) = address {
        app.typed_hosts().add(address);
    }
    let repo = match address {
        Some(RepoAddress::Remote(repo)) => repo.clone(),
        Some(RepoAddress::Path(path)) => match origin(Path::new(path), app).await? {
            RepoAddress::Remote(repo) => repo,
            RepoAddress::Path(path) => return Ok(ScmReport::Local(LocalReport { path })),
        },
        None => match origin(Path::new("."), app).await? {
            RepoAddress::Remote(repo) => repo,
            RepoAddress::Path(path) => return Ok(ScmReport::Local(LocalReport { path })),
        },
    };
    let check = GitHubCheck::new(repo, app).await?;
    Ok(ScmReport::GitHub(Box::new(check.run().await?)))
}

/// Returns the address of the remote `origin` of a repository, or its own path if there is none.
async fn origin(path: &Path, app: &App) -> Result<RepoAddress, AppError> {
    let directory: PathBuf = match path.strip_prefix("~") {
        Ok(rest) => app
            .environment()
            .home()
            .unwrap_or(Path::new("/"))
            .join(rest),
        Err(_) => app.environment().working_dir().join(path),
    };
    let shown = directory.display().to_string();
    let not_found = |why: String| {
        AppError::runtime(
            format!("there is no git repository at `{}`", path.display()),
            why,
            "name a repository: `ralph scm check OWNER/NAME`, an address, or a path",
        )
    };
    let directory = directory
        .canonicalize()
        .map_err(|error| not_found(error.to_string()))?;
    let git_error = |error: GitError| not_found(error.to_string());
    let git = app.git_read_only();
    let args = ["rev-parse", "--git-dir"];
    git.run_as_user(&directory, &args)
        .await
        .map_err(git_error)?;
    let repository = UserRepository::new(git, directory.clone());
    let Some(url) = repository.origin_url().await.map_err(git_error)? else {
        return Ok(RepoAddress::Path(directory.display().to_string()));
    };
    RepoAddress::parse_remote_url(&url).map_err(|error| {
        AppError::runtime(
            format!("the remote `origin` of `{shown}` is not on a supported source host"),
            error.to_string(),
            "name the repository: `ralph scm check OWNER/NAME`",
        )
    })
}

/// A check of a repository on GitHub.
struct GitHubCheck<'a> {
    repo: RemoteRepo,
    api: BaseUrl,
    client: GitHubClient,
    kind: CredentialKind,
    source: CredentialSource,
    app: &'a App,
}

impl<'a> GitHubCheck<'a> {
    async fn new(repo: RemoteRepo, app: &'a App) -> Result<Self, AppError> {
        let (api, url) = api_url(&repo, app)?;
        let found = find_credential(&repo, &api, app).await?;
        let network = proxy_settings(app.environment());
        let connection = GitHubConnection {
            api: url,
            network: &network,
            clock: app.clock(),
            redactor: app.redactor(),
            source: None,
            pace: TokenPace::default(),
            timing: GitHubTiming::default(),
        };
        Ok(Self {
            client: github_client(connection, found.credential, repo.clone())?,
            repo,
            api,
            kind: found.kind,
            source: found.source,
            app,
        })
    }

    fn explain(&self, error: &HostError) -> AppError {
        let context = FailureContext {
            repo: &self.repo,
            api: &self.api,
            kind: self.kind,
            source: self.source.clone(),
        };
        context.explain(error)
    }

    async fn run(self) -> Result<GitHubReport, AppError> {
        let acts_as = self.acts_as().await?;
        let reply = match self.client.repository().await {
            Ok(reply) => reply,
            Err(error) => return Err(self.explain_missing(&error, &acts_as).await),
        };
        let found = &reply.value;
        let repo = self.repo.renamed(&found.full_name).map_err(|error| {
            AppError::runtime(
                format!("{} did not answer like GitHub", self.api),
                format!("the name of the repository is not valid: {error}"),
                "check that the host is GitHub or GitHub Enterprise Server",
            )
        })?;
        let (branch, rate_limit) = self.branch_protection(&repo, &reply).await?;
        let permissions = self.permissions(&reply).await?;
        let is_renamed = !repo
            .full_name()
            .eq_ignore_ascii_case(&self.repo.full_name());
        let mut report = GitHubReport {
            host: self.repo.host().to_owned(),
            api: self.api.to_string(),
            repository: repo.full_name(),
            renamed_from: is_renamed.then(|| self.repo.full_name()),
            default_branch: found.default_branch.clone(),
            is_default_branch_protected: branch,
            is_private: found.private,
            is_archived: found.archived,
            credential_kind: self.kind.to_string(),
            credential_source: self.source.to_string(),
            credential_expiry: reply.token_expiry.clone(),
            acts_as,
            permissions,
            rate_limit,
            problems: Vec::new(),
            notes: Vec::new(),
        };
        self.add_problems(found, &mut report);
        Ok(report)
    }

    /// Returns the account that the credential acts as.
    async fn acts_as(&self) -> Result<String, AppError> {
        let explain = |error: HostError| self.explain(&error);
        if let Some(app) = self.client.app().await.map_err(explain)? {
            return Ok(format!("{}[bot]", app.slug.unwrap_or(app.name)));
        }
        match self.client.user().await {
            Ok(user) => Ok(user.value.login),
            // The token of an installation is valid and has no user.
            Err(HostError {
                kind: HostErrorKind::Forbidden { sso_url: None, .. },
                ..
            }) => Ok("the App that created the token".to_owned()),
            Err(error) => Err(self.explain(&error)),
        }
    }

    /// Explains why the repository cannot be read. An App may not be installed there.
    async fn explain_missing(&self, error: &HostError, acts_as: &str) -> AppError {
        let is_missing = matches!(error.kind, HostErrorKind::NotFound { .. });
        if self.kind != CredentialKind::App || !is_missing {
            return self.explain(error);
        }
        let accounts = match self.client.installed_for().await {
            Ok(accounts) => accounts,
            Err(error) => return self.explain(&error),
        };
        let installed = if accounts.is_empty() {
            "it has no installation".to_owned()
        } else {
            format!("it is installed for `{}`", accounts.join("`, `"))
        };
        let slug = acts_as.trim_end_matches("[bot]");
        AppError::runtime(
            format!(
                "the App `{slug}` is not installed on `{}`",
                self.repo.full_name()
            ),
            format!("{installed}; {error}"),
            format!(
                "check the name, or install the App: https://{}/apps/{slug}/installations/new",
                self.repo.authority()
            ),
        )
    }

    /// Returns whether the default branch is protected, and the rate limit of the last response.
    async fn branch_protection(
        &self,
        repo: &RemoteRepo,
        reply: &GitHubReply<GitHubRepository>,
    ) -> Result<(Option<bool>, Option<RateLimit>), AppError> {
        match self.client.branch(repo, &reply.value.default_branch).await {
            Ok(branch) => Ok((Some(branch.value.protected), branch.rate_limit)),
            // The repository has no commits, or the credential may not read them.
            Err(HostError {
                kind: HostErrorKind::NotFound { .. } | HostErrorKind::Forbidden { .. },
                ..
            }) => Ok((None, reply.rate_limit)),
            Err(error) => Err(self.explain(&error)),
        }
    }

    async fn permissions(
        &self,
        reply: &GitHubReply<GitHubRepository>,
    ) -> Result<Vec<PermissionCheck>, AppError> {
        let granted = self.client.installation_permissions().await;
        if let Some(granted) = granted.map_err(|error| self.explain(&error))? {
            return Ok(compare(|name| access_of_installation(&granted, name)));
        }
        if let Some(scopes) = &reply.scopes {
            let is_private = reply.value.private;
            return Ok(compare(|name| access_of_scopes(scopes, is_private, name)));
        }
        let readable = self.probe(&reply.value.default_branch).await?;
        Ok(compare(|name| {
            let is_readable = readable.get(name).copied().unwrap_or(true);
            if is_readable {
                GrantedAccess::AtLeastRead
            } else {
                GrantedAccess::None
            }
        }))
    }

    /// Reads each resource: GitHub does not disclose the permissions of a fine-grained token.
    async fn probe(&self, branch: &str) -> Result<BTreeMap<&'static str, bool>, AppError> {
        let mut readable = BTreeMap::new();
        for name in needed_names() {
            let Some(resource) = probe_of(name) else {
                continue;
            };
            match self.client.read(branch, resource).await {
                Ok(()) => {
                    readable.insert(name, true);
                }
                Err(error) => match error.kind {
                    HostErrorKind::Forbidden { .. } => {
                        readable.insert(name, false);
                    }
                    HostErrorKind::Unauthorized { .. }
                    | HostErrorKind::WrongClock { .. }
                    | HostErrorKind::RateLimited { .. }
                    | HostErrorKind::Certificate { .. }
                    | HostErrorKind::Unavailable { .. } => return Err(self.explain(&error)),
                    // A repository without commits has no such resource.
                    HostErrorKind::NotFound { .. }
                    | HostErrorKind::Renamed { .. }
                    | HostErrorKind::Archived
                    | HostErrorKind::Protected { .. }
                    | HostErrorKind::Rejected { .. }
                    | HostErrorKind::Unexpected { .. } => {}
                },
            }
        }
        Ok(readable)
    }

    fn add_problems(&self, found: &GitHubRepository, report: &mut GitHubReport) {
        let repository = report.repository.clone();
        let acts_as = report.acts_as.clone();
        if found.archived || found.disabled {
            let state = if found.archived {
                "archived"
            } else {
                "disabled"
            };
            report.problems.push(AppError::runtime(
                format!("repository `{repository}` is {state}"),
                "it accepts no branches and no pull requests",
                "ask its owner to unarchive it, or choose another repository",
            ));
        }
        let may_push = found.permissions.as_ref().is_none_or(|role| role.push);
        // The role is that of a user; the permissions of an App are compared below.
        if !may_push && self.kind.has_role() {
            report.problems.push(AppError::runtime(
                format!("`{acts_as}` may not push to `{repository}`"),
                "the role in the repository does not include it",
                "ask an administrator of the repository for the role Write",
            ));
        }
        let missing = report.permissions.iter().filter(|check| check.is_missing());
        for check in missing {
            let (name, needs) = (check.name, check.needs.as_str());
            if check.is_optional {
                let note = format!(
                    "without the permission {name} ({needs}), ralph cannot {}",
                    check.used_for
                );
                report.notes.push(note);
            } else {
                report.problems.push(AppError::runtime(
                    format!("the permission {name} ({needs}) is missing"),
                    format!("ralph needs it to {}", check.used_for),
                    self.permission_fix(name, needs),
                ));
            }
        }
        if report.permissions.iter().any(PermissionCheck::is_unknown) {
            let note =
                "GitHub does not disclose whether this token may write; the first push shows it";
            report.notes.push(note.to_owned());
        }
        if let Some(old) = &report.renamed_from {
            let note = format!(
                "`{old}` was renamed: update the remote, `git remote set-url origin {}`",
                self.repo_url(&repository)
            );
            report.notes.push(note);
        }
        if let Some(problem) = self.app.environment().dotenv_problem() {
            report.notes.push(format!("`.env` was not read: {problem}"));
        }
    }

    fn repo_url(&self, repository: &str) -> String {
        format!("https://{}/{repository}.git", self.repo.authority())
    }

    fn permission_fix(&self, name: &str, needs: &str) -> String {
        match self.kind {
            CredentialKind::App => format!(
                "add {name} ({needs}) to the permissions of the App, and accept them for its installation"
            ),
            CredentialKind::ClassicToken | CredentialKind::OauthToken => {
                "create a token with the scope `repo` (and `workflow`)".to_owned()
            }
            CredentialKind::FineGrainedToken
            | CredentialKind::InstallationToken
            | CredentialKind::OtherToken => {
                format!("add {name} ({needs}) to the permissions of the token")
            }
        }
    }
}

/// Returns the address of the API as text and as a URL.
pub(super) fn api_url(repo: &RemoteRepo, app: &App) -> Result<(BaseUrl, Url), AppError> {
    let api = api_address(repo, app)?;
    let url = api.as_str().parse().map_err(|_| invalid_api(&api))?;
    Ok((api, url))
}

/// Returns the address of the API: the user's, or that of the repository's host.
fn api_address(repo: &RemoteRepo, app: &App) -> Result<BaseUrl, AppError> {
    let parse = |text: &str, name: &str| {
        BaseUrl::parse(text).map_err(|error| {
            AppError::usage(
                format!("{name} is not the address of an API"),
                error.to_string(),
                "use an address like `https://github.example.com/api/v3`",
            )
        })
    };
    if let Some(text) = app.environment().github_api_url() {
        return parse(text, "GITHUB_API_URL");
    }
    let configured = app.settings()?.github.api_url;
    if !configured.is_empty() {
        return parse(&configured, "`github.api_url`");
    }
    if repo.is_on_github_com() {
        return parse(GITHUB_API, "github.com");
    }
    parse(&format!("https://{}/api/v3", repo.authority()), repo.host())
}

fn invalid_api(api: &BaseUrl) -> AppError {
    AppError::usage(
        format!("`{api}` is not the address of an API"),
        "it is not a URL",
        "use an address like `https://github.example.com/api/v3`",
    )
}
