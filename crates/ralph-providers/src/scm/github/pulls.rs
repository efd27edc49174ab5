//! Pull requests: at most one per branch, whatever response is lost.

use hyper::Method;
use ralph_core::ports::{HostError, HostErrorKind, PullDraft, PullRequest, PullState};
use ralph_core::pull_text::{PullEdit, PullOnHost, new_body, new_title, plan_edit};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::MAX_PAGES;
use super::host::{GitHubHost, is_ambiguous, parse_commit};
use super::transport::RequestEffect;

/// The documents that change the state; the REST API cannot.
const MARK_READY: &str = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{id isDraft}}}";
const CONVERT_TO_DRAFT: &str = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{id isDraft}}}";

/// A pull request.
#[derive(Debug, Deserialize)]
pub(super) struct GitHubPull {
    number: u64,
    node_id: String,
    html_url: String,
    state: String,
    #[serde(default)]
    draft: Option<bool>,
    merged_at: Option<String>,
    title: String,
    body: Option<String>,
    head: PullBranch,
    base: PullBranch,
    #[serde(default)]
    labels: Vec<PullLabel>,
}

#[derive(Debug, Deserialize)]
struct PullBranch {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

#[derive(Debug, Deserialize)]
struct PullLabel {
    name: String,
}

impl GitHubPull {
    fn state(&self) -> PullState {
        match (self.state.as_str(), &self.merged_at) {
            ("closed", Some(_)) => PullState::Merged,
            ("closed", None) => PullState::Closed,
            _ if self.is_draft() => PullState::Draft,
            _ => PullState::Open,
        }
    }

    fn is_draft(&self) -> bool {
        self.draft == Some(true)
    }

    /// Converts it to the port's type.
    pub(super) fn summary(&self) -> Result<PullRequest, HostError> {
        Ok(PullRequest {
            number: self.number,
            url: self.html_url.clone(),
            state: self.state(),
            head: parse_commit(&self.head.sha)?,
        })
    }

    fn plan(&self, draft: &PullDraft) -> PullEdit {
        let labels: Vec<String> = self.labels.iter().map(|label| label.name.clone()).collect();
        let current = PullOnHost {
            title: &self.title,
            body: self.body.as_deref().unwrap_or_default(),
            base: &self.base.name,
            is_draft: self.is_draft(),
            labels: &labels,
        };
        plan_edit(&current, draft)
    }
}

impl GitHubHost {
    /// Returns the open pull request of a branch, preferably into a base.
    pub(super) async fn find_open(
        &self,
        head: &str,
        base: Option<&str>,
    ) -> Result<Option<GitHubPull>, HostError> {
        let pulls = self.pulls_of(head, "open").await?;
        let has_base = |pull: &GitHubPull| base.is_some_and(|base| pull.base.name == base);
        let preferred = pulls.iter().position(has_base).unwrap_or(0);
        Ok(pulls.into_iter().nth(preferred))
    }

    /// Returns the newest pull request of a branch in any state.
    pub(super) async fn find_last(&self, head: &str) -> Result<Option<GitHubPull>, HostError> {
        let pulls = self.pulls_of(head, "all").await?;
        Ok(pulls.into_iter().max_by_key(|pull| pull.number))
    }

    async fn pulls_of(&self, head: &str, state: &str) -> Result<Vec<GitHubPull>, HostError> {
        let mut url = self.client.repo_url(&["pulls"]);
        let name = format!("{}:{head}", self.client.repo().owner());
        url.query_pairs_mut()
            .append_pair("state", state)
            .append_pair("head", &name)
            .append_pair("sort", "created")
            .append_pair("direction", "desc");
        let pulls: Vec<GitHubPull> = self.client.list_fresh(url).await?;
        // A server that ignores the filter must not make ralph adopt the pull request of another branch.
        Ok(pulls
            .into_iter()
            .filter(|pull| pull.head.name == head)
            .collect())
    }

    /// Returns a pull request.
    pub(super) async fn read_pull(&self, number: u64) -> Result<GitHubPull, HostError> {
        let url = self.client.repo_url(&["pulls", &number.to_string()]);
        Ok(self.client.get(url).await?.value)
    }

    /// Opens a pull request, or adopts the open one of the branch: one that exists, one that another process
    /// opens at the same time, or one whose response was lost.
    pub(super) async fn open_or_adopt(&self, draft: &PullDraft) -> Result<PullRequest, HostError> {
        let base = Some(draft.base.as_str());
        if let Some(existing) = self.find_open(&draft.head, base).await? {
            return self.apply(existing, draft).await;
        }
        let body = json!({
            "title": new_title(draft),
            "head": draft.head,
            "base": draft.base,
            "body": new_body(draft),
            "draft": draft.state == PullState::Draft,
        });
        let url = self.client.repo_url(&["pulls"]);
        let mut created = self
            .client
            .change(Method::POST, url.clone(), Some(body.clone()))
            .await;
        if created.as_ref().is_err_and(lacks_drafts) {
            // The marker in the body still records a draft, so that no update tries to make it one.
            tracing::info!("the repository has no draft pull requests");
            let mut body = body;
            body["draft"] = json!(false);
            created = self.client.change(Method::POST, url, Some(body)).await;
        }
        let opened: GitHubPull = match created {
            Ok(opened) => opened,
            Err(error) if is_ambiguous(&error) || is_rejected(&error) => {
                match self.find_open(&draft.head, base).await? {
                    Some(existing) => return self.apply(existing, draft).await,
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let missing: Vec<&str> = draft.labels.iter().map(String::as_str).collect();
        self.label(opened.number, &missing).await?;
        opened.summary()
    }

    /// Updates an open pull request: its labels and state first, because its text records them.
    pub(super) async fn apply(
        &self,
        mut pull: GitHubPull,
        draft: &PullDraft,
    ) -> Result<PullRequest, HostError> {
        if pull.state().is_closed() {
            return pull.summary();
        }
        let edit = pull.plan(draft);
        let labels: Vec<&str> = edit.labels.iter().map(String::as_str).collect();
        self.label(pull.number, &labels).await?;
        if let Some(is_draft) = edit.is_draft {
            self.set_draft(&pull, is_draft).await?;
            pull.draft = Some(is_draft);
        }
        if edit.changes_text() {
            self.edit(&pull, &edit).await?;
        }
        pull.summary()
    }

    /// Adds labels. Adding a label twice changes nothing, so a lost response is no problem.
    pub(super) async fn label(&self, number: u64, labels: &[&str]) -> Result<(), HostError> {
        if labels.is_empty() {
            return Ok(());
        }
        let number = number.to_string();
        let url = self.client.repo_url(&["issues", &number, "labels"]);
        let body = Some(json!({"labels": labels}));
        let add = || {
            self.client
                .change::<Value>(Method::POST, url.clone(), body.clone())
        };
        match add().await {
            Err(error) if is_ambiguous(&error) => add().await.map(drop),
            result => result.map(drop),
        }
    }

    async fn set_draft(&self, pull: &GitHubPull, is_draft: bool) -> Result<(), HostError> {
        let document = if is_draft {
            CONVERT_TO_DRAFT
        } else {
            MARK_READY
        };
        let change = || {
            let variables = json!({"id": pull.node_id});
            self.client
                .graphql(document, variables, RequestEffect::Change)
        };
        let Err(error) = change().await else {
            return Ok(());
        };
        if !is_ambiguous(&error) {
            return Err(error);
        }
        if self.read_pull(pull.number).await?.is_draft() == is_draft {
            return Ok(());
        }
        change().await.map(drop)
    }

    async fn edit(&self, pull: &GitHubPull, edit: &PullEdit) -> Result<(), HostError> {
        let url = self.client.repo_url(&["pulls", &pull.number.to_string()]);
        let mut body = json!({});
        let fields = [
            ("title", &edit.title),
            ("body", &edit.body),
            ("base", &edit.base),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                body[name] = value.as_str().into();
            }
        }
        let change = || {
            self.client
                .change::<GitHubPull>(Method::PATCH, url.clone(), Some(body.clone()))
        };
        let Err(error) = change().await else {
            return Ok(());
        };
        if !is_ambiguous(&error) {
            return Err(error);
        }
        let now = self.read_pull(pull.number).await?;
        if edit.body.is_some() && now.body == edit.body {
            return Ok(());
        }
        // A person may have changed the text meanwhile; only the same text is replaced.
        if now.body == pull.body && now.title == pull.title {
            return change().await.map(drop);
        }
        Err(error)
    }

    /// Returns the changed files of a pull request, at most `max`.
    pub(super) async fn files(&self, number: u64, max: usize) -> Result<Vec<String>, HostError> {
        let mut url = self
            .client
            .repo_url(&["pulls", &number.to_string(), "files"]);
        url.query_pairs_mut().append_pair("per_page", "100");
        let mut files = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take().filter(|_| files.len() < max) else {
                break;
            };
            let page = self.client.get::<Vec<PullFile>>(url).await?;
            files.extend(page.value.into_iter().map(|file| file.filename));
            next = page.next_page;
        }
        files.truncate(max);
        Ok(files)
    }
}

#[derive(Deserialize)]
struct PullFile {
    filename: String,
}

/// Returns whether the plan of a private repository does not include draft pull requests.
fn lacks_drafts(error: &HostError) -> bool {
    let text = "draft pull requests are not supported";
    matches!(&error.kind, HostErrorKind::Rejected { message } if message.to_ascii_lowercase().contains(text))
}

fn is_rejected(error: &HostError) -> bool {
    matches!(error.kind, HostErrorKind::Rejected { .. })
}
