//! Issues, their labels and comments.

use async_trait::async_trait;
use hyper::Method;
use ralph_core::ports::{
    HostError, HostErrorKind, HostIssue, IssueLabel, IssueTracker, KeyedComment, ScmError,
};
use ralph_core::pull_text::{keyed_comment, text_of_comment};
use serde::Deserialize;
use serde_json::{Value, json};

use super::host::{GitHubHost, HostIdentity, is_ambiguous};

#[derive(Deserialize)]
struct GitHubIssue {
    number: u64,
    html_url: String,
    title: String,
    body: Option<String>,
    #[serde(default)]
    labels: Vec<Value>,
    user: Option<IssueAuthor>,
    state: String,
    pull_request: Option<Value>,
}

#[derive(Deserialize)]
struct IssueAuthor {
    login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct IssueComment {
    id: u64,
    body: Option<String>,
    user: Option<IssueAuthor>,
}

#[derive(Deserialize)]
struct LabelOfRepository {
    name: String,
}

impl GitHubIssue {
    fn into_issue(self) -> HostIssue {
        // A label is an object, or in old issues its name.
        let name = |label: &Value| label["name"].as_str().or(label.as_str()).map(str::to_owned);
        HostIssue {
            number: self.number,
            url: self.html_url,
            title: self.title,
            body: self.body.unwrap_or_default(),
            labels: self.labels.iter().filter_map(name).collect(),
            // The account of the author may be deleted.
            author: self.user.map_or("ghost".to_owned(), |user| user.login),
            open: self.state == "open",
        }
    }
}

impl HostIdentity {
    /// Returns whether a comment is ralph's own: anyone can write a comment with its marker.
    fn wrote(&self, comment: &IssueComment) -> bool {
        let Some(author) = &comment.user else {
            return false;
        };
        match self {
            Self::User(login) | Self::App(login) => author.login.eq_ignore_ascii_case(login),
            Self::UnknownApp => author.kind == "Bot",
        }
    }
}

impl GitHubHost {
    /// Returns the own comment with a key: its id and its text.
    async fn own_comment(
        &self,
        number: u64,
        key: &str,
    ) -> Result<Option<(u64, String)>, HostError> {
        let identity = self.identity().await?;
        let number = number.to_string();
        let url = self.client.repo_url(&["issues", &number, "comments"]);
        let comments: Vec<IssueComment> = self.client.list_fresh(url).await?;
        let mut own = comments.iter().filter(|comment| identity.wrote(comment));
        Ok(own.find_map(|comment| {
            let text = text_of_comment(comment.body.as_deref()?, key)?;
            Some((comment.id, text))
        }))
    }

    async fn write_comment(&self, number: u64, comment: &KeyedComment) -> Result<(), HostError> {
        let text = keyed_comment(&comment.key, &comment.body);
        let body = Some(json!({"body": text}));
        if let Some((id, current)) = self.own_comment(number, &comment.key).await? {
            if Some(current) == text_of_comment(&text, &comment.key) {
                return Ok(());
            }
            let id = id.to_string();
            let url = self.client.repo_url(&["issues", "comments", &id]);
            let edit = || {
                self.client
                    .change::<Value>(Method::PATCH, url.clone(), body.clone())
            };
            return match edit().await {
                // The same text twice is the same comment.
                Err(error) if is_ambiguous(&error) => edit().await.map(drop),
                result => result.map(drop),
            };
        }
        let number_text = number.to_string();
        let url = self.client.repo_url(&["issues", &number_text, "comments"]);
        match self.client.change::<Value>(Method::POST, url, body).await {
            Ok(_) => Ok(()),
            Err(error) if is_ambiguous(&error) => {
                match self.own_comment(number, &comment.key).await? {
                    Some(_) => Ok(()),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn delete_label(&self, number: u64, label: &str) -> Result<bool, HostError> {
        let number_text = number.to_string();
        let parts = ["issues", &number_text, "labels", label];
        let url = self.client.repo_url(&parts);
        let remove = || {
            self.client
                .change::<Value>(Method::DELETE, url.clone(), None)
        };
        let mut result = remove().await;
        if let Err(error) = &result
            && is_ambiguous(error)
        {
            // If the label is still there, the request was not performed. Otherwise this process or another one
            // has removed it, and it is unknown which.
            let issue = self.read_issue(number).await?;
            let has_label = |name: &String| name.eq_ignore_ascii_case(label);
            if issue.is_some_and(|issue| issue.into_issue().labels.iter().any(has_label)) {
                result = remove().await;
            }
        }
        match result {
            Ok(_) => Ok(true),
            Err(HostError {
                kind: HostErrorKind::NotFound { .. },
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn read_issue(&self, number: u64) -> Result<Option<GitHubIssue>, HostError> {
        let url = self.client.repo_url(&["issues", &number.to_string()]);
        match self.client.get::<GitHubIssue>(url).await {
            // A transferred issue has another number, and is one of another repository.
            Ok(reply) => Ok(Some(reply.value).filter(|issue| issue.number == number)),
            Err(HostError {
                kind: HostErrorKind::NotFound { .. } | HostErrorKind::Rejected { .. },
                ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn add_missing_labels(&self, labels: &[IssueLabel]) -> Result<(), HostError> {
        let known = self.client.repo_url(&["labels"]);
        let known: Vec<LabelOfRepository> = self.client.list_fresh(known).await?;
        for label in labels {
            let is_same = |known: &LabelOfRepository| known.name.eq_ignore_ascii_case(&label.name);
            if known.iter().any(is_same) {
                continue;
            }
            let url = self.client.repo_url(&["labels"]);
            let body = json!({
                "name": label.name, "color": label.color, "description": label.description,
            });
            let create = || {
                self.client
                    .change::<Value>(Method::POST, url.clone(), Some(body.clone()))
            };
            let created = match create().await {
                Err(error) if is_ambiguous(&error) => create().await,
                result => result,
            };
            match created {
                Ok(_) => {}
                // Another process, or the first attempt, has created it.
                Err(HostError {
                    kind: HostErrorKind::Rejected { message },
                    ..
                }) if message.contains("already_exists") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl IssueTracker for GitHubHost {
    async fn viewer(&self) -> Result<Option<String>, ScmError> {
        Ok(match self.identity().await? {
            HostIdentity::User(login) => Some(login.clone()),
            HostIdentity::App(_) | HostIdentity::UnknownApp => None,
        })
    }

    async fn issue(&self, number: u64) -> Result<Option<HostIssue>, ScmError> {
        let found = self.read_issue(number).await?;
        let issue = found.filter(|issue| issue.pull_request.is_none());
        Ok(issue.map(GitHubIssue::into_issue))
    }

    async fn open_issues(&self, labels: &[&str]) -> Result<Vec<HostIssue>, ScmError> {
        let mut url = self.client.repo_url(&["issues"]);
        url.query_pairs_mut()
            .append_pair("state", "open")
            .append_pair("sort", "created")
            .append_pair("direction", "asc");
        if !labels.is_empty() {
            url.query_pairs_mut()
                .append_pair("labels", &labels.join(","));
        }
        let found: Vec<GitHubIssue> = self.client.list(url).await?;
        let issues = found.into_iter();
        let issues = issues.filter(|issue| issue.pull_request.is_none());
        Ok(issues.map(GitHubIssue::into_issue).collect())
    }

    async fn set_body(&self, number: u64, body: &str) -> Result<(), ScmError> {
        let url = self.client.repo_url(&["issues", &number.to_string()]);
        let change = || {
            let body = Some(json!({"body": body}));
            self.client
                .change::<Value>(Method::PATCH, url.clone(), body)
        };
        let Err(error) = change().await else {
            return Ok(());
        };
        if !is_ambiguous(&error) {
            return Err(error.into());
        }
        // A person may have edited it meanwhile, so it is not replaced again.
        let now = self.read_issue(number).await?;
        let current = now.and_then(|issue| issue.body).unwrap_or_default();
        if current == body {
            Ok(())
        } else {
            Err(error.into())
        }
    }

    async fn add_labels(&self, number: u64, labels: &[&str]) -> Result<(), ScmError> {
        Ok(self.label(number, labels).await?)
    }

    async fn remove_label(&self, number: u64, label: &str) -> Result<bool, ScmError> {
        Ok(self.delete_label(number, label).await?)
    }

    async fn create_labels(&self, labels: &[IssueLabel]) -> Result<(), ScmError> {
        Ok(self.add_missing_labels(labels).await?)
    }

    async fn comment(&self, number: u64, comment: &KeyedComment) -> Result<(), ScmError> {
        Ok(self.write_comment(number, comment).await?)
    }

    async fn find_comment(&self, number: u64, key: &str) -> Result<Option<String>, ScmError> {
        let found = self.own_comment(number, key).await?;
        Ok(found.map(|(_, text)| text))
    }
}
