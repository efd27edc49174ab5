//! A repository with its issue tracker.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ralph_core::ports::{HostIssue, IssueLabel, IssueTracker};
use ralph_core::repo_address::{RemoteRepo, RepoAddress};
use ralph_core::spec::{IssueLabels, IssueStatus};
use ralph_engine::git::UserRepository;

use super::error::tracker_error;
use super::records::IssueRecords;
use crate::app::App;
use crate::config::IssueSettings;
use crate::error::AppError;
use crate::planning::{find_address, top_level};
use crate::scm::connect;

/// A repository whose issues are worked on.
pub struct IssueRepository {
    /// The context of the directory with the settings.
    pub(super) app: App,
    /// The repository with the issues.
    pub(super) address: RemoteRepo,
    /// The repository that the runs start from and deliver to.
    pub(super) source: RepoAddress,
    pub(super) tracker: Arc<dyn IssueTracker>,
    pub(super) settings: IssueSettings,
    pub(super) records: IssueRecords,
    /// The logins whose issues are worked on, in lower case.
    authors: BTreeSet<String>,
}

impl IssueRepository {
    /// Opens the repository at an address, or the one of the working directory. For a path, the remote `origin`
    /// there names the repository on the source host. A repository on a source host needs no clone; its settings
    /// are those of the working directory.
    pub async fn open(named: Option<&str>, app: &App) -> Result<Self, AppError> {
        let repository = Self::open_read_only(named, app).await?;
        repository.create_labels().await?;
        Ok(repository)
    }

    /// Opens the repository without creating its labels, to list its issues.
    pub async fn open_read_only(named: Option<&str>, app: &App) -> Result<Self, AppError> {
        let named = named.map(|named| find_address(named, app.environment()));
        let named = named.transpose()?;
        if let Some(address) = &named {
            app.typed_hosts().add(address);
        }
        let (address, directory) = match named {
            Some(RepoAddress::Remote(address)) => {
                let directory = app.repository().filter(|_| is_clone(&address, app));
                let directory =
                    directory.unwrap_or_else(|| app.environment().working_dir().to_owned());
                (address, directory)
            }
            Some(RepoAddress::Path(path)) => clone_at(Path::new(&path), app).await?,
            None => clone_at(app.environment().working_dir(), app).await?,
        };
        let app = app.in_directory(&directory);
        let tracker = connect(&address, &app).await?.issues?;
        let source = RepoAddress::Remote(address.clone());
        Self::connected((source, address), tracker, app).await
    }

    /// Connects a repository to an issue tracker, and creates its labels.
    pub(super) async fn with_tracker(
        addresses: (RepoAddress, RemoteRepo),
        tracker: Arc<dyn IssueTracker>,
        app: App,
    ) -> Result<Self, AppError> {
        let repository = Self::connected(addresses, tracker, app).await?;
        repository.create_labels().await?;
        Ok(repository)
    }

    async fn connected(
        (source, address): (RepoAddress, RemoteRepo),
        tracker: Arc<dyn IssueTracker>,
        app: App,
    ) -> Result<Self, AppError> {
        let settings = app.settings()?.issues;
        let authors = authors(&settings, &*tracker).await?;
        let records = IssueRecords::new(&app.state_dir()?, &address);
        Ok(Self {
            app,
            address,
            source,
            tracker,
            settings,
            records,
            authors,
        })
    }

    /// Returns `owner/name`.
    pub fn name(&self) -> String {
        self.address.full_name()
    }

    /// Returns the logins whose issues are worked on.
    pub fn authors(&self) -> Vec<String> {
        self.authors.iter().cloned().collect()
    }

    /// Returns the settings of the issues.
    pub fn settings(&self) -> &IssueSettings {
        &self.settings
    }

    pub(super) fn labels(&self) -> &IssueLabels {
        &self.settings.labels
    }

    /// Returns whether the author of an issue is one of the authors.
    pub(super) fn is_by_author(&self, issue: &HostIssue) -> bool {
        self.authors.contains(&issue.author.to_lowercase())
    }

    /// Returns an issue.
    pub(super) async fn issue(&self, number: u64) -> Result<Option<HostIssue>, AppError> {
        let found = self.tracker.issue(number).await;
        found.map_err(|error| tracker_error(&format!("cannot read issue #{number}"), &error))
    }

    /// Returns the open issues of a status, the oldest first.
    pub(super) async fn issues_with(
        &self,
        status: IssueStatus,
    ) -> Result<Vec<HostIssue>, AppError> {
        let labels = [self.labels().spec.as_str(), self.labels().status(status)];
        let found = self.tracker.open_issues(&labels).await;
        let what = format!("cannot list the issues of `{}`", self.name());
        found.map_err(|error| tracker_error(&what, &error))
    }

    /// Gives an issue exactly one status. The new label is added first, so that a crash leaves no issue without
    /// a status.
    pub(super) async fn set_status(&self, number: u64, to: IssueStatus) -> Result<(), AppError> {
        let Some(issue) = self.issue(number).await? else {
            return Ok(());
        };
        let failed =
            |error| tracker_error(&format!("cannot set the labels of issue #{number}"), &error);
        let labels = self.labels();
        if !labels.has_status(&issue.labels, to) {
            let added = self.tracker.add_labels(number, &[labels.status(to)]).await;
            added.map_err(failed)?;
        }
        let others = IssueStatus::ALL.into_iter().filter(|other| *other != to);
        for other in others.filter(|other| labels.has_status(&issue.labels, *other)) {
            let removed = self
                .tracker
                .remove_label(number, labels.status(other))
                .await;
            removed.map_err(failed)?;
        }
        Ok(())
    }

    /// Moves an issue from one status to another. Removing the label decides, because the host removes it only
    /// once. Returns whether this process moved it.
    pub(super) async fn transition(
        &self,
        number: u64,
        from: IssueStatus,
        to: IssueStatus,
    ) -> Result<bool, AppError> {
        let failed =
            |error| tracker_error(&format!("cannot set the labels of issue #{number}"), &error);
        let labels = self.labels();
        let removed = self.tracker.remove_label(number, labels.status(from)).await;
        let is_won = removed.map_err(failed)?;
        if is_won {
            let added = self.tracker.add_labels(number, &[labels.status(to)]).await;
            added.map_err(failed)?;
        }
        Ok(is_won)
    }

    async fn create_labels(&self) -> Result<(), AppError> {
        let labels = self.labels();
        let colored = |status: IssueStatus| {
            let (color, description) = match status {
                IssueStatus::Ready => ("0e8a16", "ralph may start"),
                IssueStatus::InProgress => ("fbca04", "ralph works on it"),
                IssueStatus::Done => ("5319e7", "all steps are done and verified"),
                IssueStatus::NeedsAttention => ("d93f0b", "waits for a human"),
                IssueStatus::Blocked => ("b60205", "waits for other issues"),
            };
            IssueLabel {
                name: labels.status(status).to_owned(),
                color: color.to_owned(),
                description: description.to_owned(),
            }
        };
        let spec = IssueLabel {
            name: labels.spec.clone(),
            color: "1d76db".to_owned(),
            description: "a specification that ralph can work on".to_owned(),
        };
        let all: Vec<IssueLabel> = std::iter::once(spec)
            .chain(IssueStatus::ALL.into_iter().map(colored))
            .collect();
        let what = format!("cannot create the labels of `{}`", self.name());
        let created = self.tracker.create_labels(&all).await;
        created.map_err(|error| tracker_error(&what, &error))
    }
}

/// Returns whether the working directory is in a clone of a repository.
fn is_clone(address: &RemoteRepo, app: &App) -> bool {
    let working = app.working_repository();
    working.is_some_and(|working| working.origin == Some(address.to_string()))
}

/// Returns the repository on a source host that a directory is part of a clone of, and the clone's top level.
async fn clone_at(directory: &Path, app: &App) -> Result<(RemoteRepo, PathBuf), AppError> {
    let path = top_level(directory, &app.git_read_only()).await?;
    let address = origin(&path, app).await?;
    Ok((address, path))
}

/// Returns the logins of the authors in lower case.
async fn authors(
    settings: &IssueSettings,
    tracker: &dyn IssueTracker,
) -> Result<BTreeSet<String>, AppError> {
    let mut authors = BTreeSet::new();
    for author in &settings.authors {
        if author != IssueSettings::ME {
            authors.insert(author.to_lowercase());
            continue;
        }
        let viewer = tracker.viewer().await;
        let viewer = viewer
            .map_err(|error| tracker_error("cannot find the user of the credential", &error))?;
        let Some(login) = viewer else {
            return Err(AppError::usage(
                "`issues.authors` has `@me`, and the credential has no user",
                "a GitHub App cannot be the author that you mean",
                "list the logins in your ~/.config/ralph/config.toml: `[issues]` and `authors = [\"octocat\"]`",
            ));
        };
        authors.insert(login.to_lowercase());
    }
    Ok(authors)
}

/// Returns the repository on a source host that the remote `origin` names.
async fn origin(path: &Path, app: &App) -> Result<RemoteRepo, AppError> {
    let no_host = |why: String| {
        AppError::usage(
            format!("`{}` has no issues", path.display()),
            why,
            "add the remote `origin` of a repository on GitHub, or name another one with `--repo`",
        )
    };
    let repository = UserRepository::new(app.git_read_only(), path.to_owned());
    let url = repository
        .origin_url()
        .await
        .map_err(|error| no_host(error.to_string()))?;
    let Some(url) = url else {
        return Err(no_host("it has no remote `origin`".to_owned()));
    };
    match RepoAddress::parse_remote_url(&url) {
        Ok(RepoAddress::Remote(address)) => Ok(address),
        Ok(RepoAddress::Path(_)) => Err(no_host("its remote `origin` is a path".to_owned())),
        Err(error) => Err(no_host(format!(
            "its remote `origin` cannot be used: {error}"
        ))),
    }
}
