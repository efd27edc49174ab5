//! Checks of a commit: check runs and statuses.

use hyper::Method;
use ralph_core::id::CommitId;
use ralph_core::ports::{
    CheckConclusion, CheckReport, CommitState, CommitStatus, HostCheck, HostError, HostErrorKind,
};
use ralph_core::pull_text::cut;
use serde::Deserialize;
use serde_json::{Value, json};

use super::host::{GitHubHost, is_ambiguous, is_forbidden};
use super::transport::{ApiRequest, RequestEffect};

/// The longest description of a status, in characters.
const MAX_DESCRIPTION_CHARS: usize = 140;

/// The largest number of annotations in the output of a check.
const MAX_ANNOTATIONS: usize = 50;

#[derive(Deserialize)]
struct CheckRunPage {
    check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
struct CheckRun {
    id: u64,
    name: String,
    status: String,
    conclusion: Option<String>,
    details_url: Option<String>,
    html_url: Option<String>,
    output: CheckRunOutput,
}

#[derive(Deserialize)]
struct CheckRunOutput {
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct WorkflowRunPage {
    workflow_runs: Vec<WorkflowRun>,
}

/// A run of a workflow, which has several check runs.
#[derive(Deserialize)]
struct WorkflowRun {
    name: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
    html_url: String,
}

impl WorkflowRun {
    fn into_check(self) -> HostCheck {
        let status = self.status.unwrap_or_else(|| "queued".to_owned());
        let conclusion = self.conclusion.filter(|_| status == "completed");
        HostCheck {
            id: None,
            name: self.name.unwrap_or_else(|| "workflow".to_owned()),
            url: Some(self.html_url),
            conclusion: conclusion.as_deref().map(conclude),
            state: conclusion.unwrap_or(status),
        }
    }
}

#[derive(Deserialize)]
struct StatusPage {
    statuses: Vec<StatusOfCommit>,
}

#[derive(Deserialize)]
struct StatusOfCommit {
    context: String,
    state: String,
    target_url: Option<String>,
}

#[derive(Deserialize)]
struct CheckAnnotation {
    path: String,
    start_line: u64,
    message: Option<String>,
}

impl CheckRun {
    fn into_check(self) -> HostCheck {
        let conclusion = self.conclusion.filter(|_| self.status == "completed");
        HostCheck {
            id: Some(self.id),
            name: self.name,
            url: self.html_url.or(self.details_url),
            conclusion: conclusion.as_deref().map(conclude),
            state: conclusion.unwrap_or(self.status),
        }
    }
}

impl StatusOfCommit {
    fn into_check(self) -> HostCheck {
        let conclusion = match self.state.as_str() {
            "pending" => None,
            "success" => Some(CheckConclusion::Passed),
            _ => Some(CheckConclusion::Failed),
        };
        HostCheck {
            id: None,
            name: self.context,
            url: self.target_url,
            conclusion,
            state: self.state,
        }
    }
}

/// Returns the result of a completed check. An unknown one has not passed.
fn conclude(conclusion: &str) -> CheckConclusion {
    match conclusion {
        "success" | "neutral" | "skipped" => CheckConclusion::Passed,
        _ => CheckConclusion::Failed,
    }
}

impl GitHubHost {
    /// Returns the latest check runs and statuses of a commit.
    pub(super) async fn read_checks(&self, commit: &CommitId) -> Result<CheckReport, HostError> {
        let mut url = self
            .client
            .repo_url(&["commits", commit.as_str(), "check-runs"]);
        url.query_pairs_mut().append_pair("filter", "latest");
        let runs = self
            .client
            .pages(url, RequestEffect::Read, |page: CheckRunPage| {
                page.check_runs
            });
        let runs: Vec<HostCheck> = match runs.await {
            Ok(runs) => runs.into_iter().map(CheckRun::into_check).collect(),
            Err(error) if is_forbidden(&error) => self.read_workflow_runs(commit).await?,
            Err(error) => return Err(error),
        };
        let url = self
            .client
            .repo_url(&["commits", commit.as_str(), "status"]);
        let statuses = self
            .client
            .pages(url, RequestEffect::Read, |page: StatusPage| page.statuses);
        let statuses = statuses.await?.into_iter().map(StatusOfCommit::into_check);
        let mut checks: Vec<HostCheck> = runs.into_iter().chain(statuses).collect();
        checks.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(CheckReport { checks })
    }

    /// Returns the runs of workflows, for a token that cannot read checks: GitHub has no such permission for
    /// fine-grained tokens.
    async fn read_workflow_runs(&self, commit: &CommitId) -> Result<Vec<HostCheck>, HostError> {
        let mut url = self.client.repo_url(&["actions", "runs"]);
        url.query_pairs_mut()
            .append_pair("head_sha", commit.as_str());
        let runs = self
            .client
            .pages(url, RequestEffect::Read, |page: WorkflowRunPage| {
                page.workflow_runs
            });
        Ok(runs
            .await?
            .into_iter()
            .map(WorkflowRun::into_check)
            .collect())
    }

    /// Returns the end of a check's log, or else its output.
    pub(super) async fn read_failure(
        &self,
        check: &HostCheck,
        max_bytes: usize,
    ) -> Result<String, HostError> {
        let described = format!(
            "check `{}`: {}{}",
            check.name,
            check.state,
            check
                .url
                .as_ref()
                .map_or(String::new(), |url| format!(", see {url}"))
        );
        let Some(id) = check.id else {
            return Ok(start_of(&described, max_bytes));
        };
        if let Some(log) = self.job_log(id, max_bytes).await? {
            return Ok(log);
        }
        let output = self.check_output(id).await?;
        Ok(start_of(&format!("{described}\n{output}"), max_bytes))
    }

    /// Returns the end of a job's log; `None` if the check has no job, or the credential may not read it.
    async fn job_log(&self, id: u64, max_bytes: usize) -> Result<Option<String>, HostError> {
        let id = id.to_string();
        let request = ApiRequest {
            effect: RequestEffect::ReadRedirect,
            ..ApiRequest::get(self.client.repo_url(&["actions", "jobs", &id, "logs"]))
        };
        let response = match self.client.call(&request).await {
            Ok(response) => response,
            Err(error) => {
                return match error.kind {
                    HostErrorKind::Forbidden { .. }
                    | HostErrorKind::NotFound { .. }
                    | HostErrorKind::Rejected { .. }
                    | HostErrorKind::Unexpected { .. } => Ok(None),
                    HostErrorKind::Unauthorized { .. }
                    | HostErrorKind::WrongClock { .. }
                    | HostErrorKind::Renamed { .. }
                    | HostErrorKind::Archived
                    | HostErrorKind::Protected { .. }
                    | HostErrorKind::RateLimited { .. }
                    | HostErrorKind::Certificate { .. }
                    | HostErrorKind::Unavailable { .. } => Err(error),
                };
            }
        };
        let readable =
            |log: &[u8]| Some(readable_log(log, max_bytes)).filter(|log| !log.is_empty());
        let Some(location) = response.redirect(&request.url) else {
            return Ok(readable(&response.body));
        };
        let end = self.client.transport.download_end(&location, max_bytes);
        match end.await {
            Ok(end) => Ok(readable(&end)),
            // The output of the check is better than no text.
            Err(error) => {
                tracing::info!(%error, "cannot download the log of a job");
                Ok(None)
            }
        }
    }

    async fn check_output(&self, id: u64) -> Result<String, HostError> {
        let id = id.to_string();
        let url = self.client.repo_url(&["check-runs", &id]);
        let run: CheckRun = self.client.get(url).await?.value;
        let mut url = self.client.repo_url(&["check-runs", &id, "annotations"]);
        let limit = MAX_ANNOTATIONS.to_string();
        url.query_pairs_mut().append_pair("per_page", &limit);
        let annotations: Vec<CheckAnnotation> = self.client.get(url).await?.value;
        let CheckRunOutput {
            title,
            summary,
            text,
        } = run.output;
        let texts = [title, summary, text].into_iter().flatten();
        let lines = annotations.into_iter().map(|each| {
            let message = each.message.unwrap_or_default();
            format!("{}:{}: {message}", each.path, each.start_line)
        });
        Ok(texts.chain(lines).collect::<Vec<_>>().join("\n"))
    }

    /// Sets a status. Setting it twice is harmless: the last one of a context counts.
    pub(super) async fn write_status(
        &self,
        commit: &CommitId,
        status: &CommitStatus,
    ) -> Result<(), HostError> {
        let state = match status.state {
            CommitState::Pending => "pending",
            CommitState::Success => "success",
            CommitState::Failure => "failure",
            CommitState::Error => "error",
        };
        let mut body = json!({
            "state": state,
            "context": status.context,
            "description": cut(&status.description, MAX_DESCRIPTION_CHARS, "…"),
        });
        if let Some(url) = &status.url {
            body["target_url"] = url.as_str().into();
        }
        let url = self.client.repo_url(&["statuses", commit.as_str()]);
        let set = || {
            self.client
                .change::<Value>(Method::POST, url.clone(), Some(body.clone()))
        };
        match set().await {
            Err(error) if is_ambiguous(&error) => set().await.map(drop),
            result => result.map(drop),
        }
    }
}

/// Returns the start of a text with at most this many bytes.
fn start_of(text: &str, max_bytes: usize) -> String {
    text[..text.floor_char_boundary(max_bytes)].to_owned()
}

/// Returns the end of a log without the time at the start of each line.
fn readable_log(log: &[u8], max_bytes: usize) -> String {
    let text = String::from_utf8_lossy(log);
    let lines = text.lines().map(|line| {
        let line = line.trim_start_matches('\u{feff}');
        match line.split_once(' ') {
            Some((time, rest)) if is_time(time) => rest,
            Some(_) | None => line,
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let start = text.len().saturating_sub(max_bytes);
    text[text.ceil_char_boundary(start)..].to_owned()
}

/// Returns whether a word is a time like `2026-03-01T08:00:00.1234567Z`.
fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && word.ends_with('Z')
}
