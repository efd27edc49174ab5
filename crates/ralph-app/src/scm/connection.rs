//! The connection of this process to the source host of a repository: its API, and git's access to it.

use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::plan::RunPlan;
use ralph_core::ports::{IssueTracker, Scm};
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::Secret;
use ralph_engine::git::RemoteTransport;
use url::Url;

use super::check::api_url;
use super::credential::{CredentialKind, FoundCredential, find_credential};
use crate::app::App;
use crate::error::AppError;
use crate::providers::github::{
    GitHubConnection, GitHubCredential, GitHubHost, GitHubTiming, GitHubTokenSource,
};
use crate::providers::models::proxy_settings;
use crate::providers::{AbsentScm, SourceConnection, github_host};

/// The directory for sockets, in the state directory.
const SOCKETS: &str = "git";

/// Opens the connection to the source host of a plan, if its repository is on one. Call this before
/// creating the services of the run.
pub(crate) async fn connect_for_plan(plan: &RunPlan, app: &App) -> Result<(), AppError> {
    match plan.remote_repository() {
        Some(repo) => connect(&repo, app).await.map(drop),
        None => Ok(()),
    }
}

/// Opens the connection to a repository, unless it is open. A missing credential is part of the
/// connection.
pub(crate) async fn connect(repo: &RemoteRepo, app: &App) -> Result<SourceConnection, AppError> {
    if let Some(connection) = app.source_connections().get(repo) {
        return Ok(connection);
    }
    let (address, api) = api_url(repo, app)?;
    let found = find_credential(repo, &address, app).await;
    let kind = found.as_ref().map(|found| found.kind).into_iter().next();
    let (scm, issues, credential): (Arc<dyn Scm>, Result<Arc<dyn IssueTracker>, _>, _) = match found
    {
        Ok(found) => {
            let credential = format!("{} from {}", found.kind, found.source);
            let host = Arc::new(open_host(repo, api, found, app)?);
            (host.clone(), Ok(host), Ok(credential))
        }
        Err(error) => {
            let scm = AbsentScm::new(repo, error.to_string());
            (Arc::new(scm), Err(error.clone()), Err(error))
        }
    };
    let connection = SourceConnection {
        repo: repo.clone(),
        transport: transport(repo, &*scm, app)?,
        scm,
        issues,
        credential,
        has_role: kind.is_some_and(CredentialKind::has_role),
    };
    app.source_connections().insert(connection.clone());
    Ok(connection)
}

fn open_host(
    repo: &RemoteRepo,
    api: Url,
    found: FoundCredential,
    app: &App,
) -> Result<GitHubHost, AppError> {
    let network = proxy_settings(app.environment());
    let connection = GitHubConnection {
        api,
        network: &network,
        clock: app.clock(),
        redactor: app.redactor(),
        source: Some(Arc::new(TokenReader {
            repo: repo.clone(),
            app: app.in_directory(app.environment().working_dir()),
        })),
        pace: app.source_connections().pace.clone(),
        timing: GitHubTiming::default(),
    };
    github_host(connection, found.credential, repo.clone())
}

fn transport(repo: &RemoteRepo, scm: &dyn Scm, app: &App) -> Result<RemoteTransport, AppError> {
    let askpass = std::env::current_exe().map_err(|error| {
        AppError::runtime(
            "cannot give git a credential",
            format!("the path of this program is unknown: {error}"),
            "reinstall ralph",
        )
    })?;
    Ok(RemoteTransport {
        authority: repo.authority(),
        credential: scm.git_credential(),
        askpass,
        directory: app.environment().state_dir()?.join(SOCKETS),
        variables: app.environment().transport_variables(),
    })
}

/// Searches the places of a credential again: the user may have replaced the token.
struct TokenReader {
    repo: RemoteRepo,
    app: App,
}

#[async_trait]
impl GitHubTokenSource for TokenReader {
    async fn read(&self) -> Option<Secret> {
        // Reads the `.env` of the working directory again.
        let app = self.app.in_directory(self.app.environment().working_dir());
        let found = async {
            let (address, _) = api_url(&self.repo, &app)?;
            find_credential(&self.repo, &address, &app).await
        };
        match found.await {
            Ok(found) => match found.credential {
                GitHubCredential::Token(token) => Some(token),
                GitHubCredential::App { .. } => None,
            },
            Err(error) => {
                tracing::warn!(%error, "the credential of GitHub is gone");
                None
            }
        }
    }
}
