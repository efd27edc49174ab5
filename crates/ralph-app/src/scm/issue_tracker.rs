//! The issue tracker of a repository.

use std::sync::Arc;

use ralph_core::ports::IssueTracker;
use ralph_core::repo_address::RemoteRepo;

use super::check::{api_address, invalid_api};
use super::credential::find_credential;
use crate::app::App;
use crate::error::AppError;
use crate::providers::github::{GitHubConnection, GitHubTiming, MutationPace};
use crate::providers::github_host;
use crate::providers::models::proxy_settings;

/// Connects to the issues of a repository.
pub(crate) async fn issue_tracker(
    repo: &RemoteRepo,
    app: &App,
) -> Result<Arc<dyn IssueTracker>, AppError> {
    let api = api_address(repo, app)?;
    let found = find_credential(repo, &api, app).await?;
    let network = proxy_settings(app.environment());
    let connection = GitHubConnection {
        api: api.as_str().parse().map_err(|_| invalid_api(&api))?,
        network: &network,
        clock: app.clock(),
        redactor: app.redactor(),
        source: None,
        pace: MutationPace::default(),
        timing: GitHubTiming::default(),
    };
    let host = github_host(connection, found.credential, repo.clone())?;
    Ok(Arc::new(host))
}
