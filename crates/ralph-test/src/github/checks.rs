//! Check runs, logs of jobs, and commit statuses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::repo::{FakeCheck, FakeRepo, FakeStatus};
use super::repository::RepoContext;
use super::response::{GitHubResponse, example};
use super::routes::GitHubCall;

/// The largest number of characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 140;

/// Responds to a request for checks, logs or statuses below `/repos/OWNER/NAME`.
pub(super) fn respond(
    repo: &mut FakeRepo,
    rest: &[&str],
    call: &GitHubCall<'_>,
    context: &RepoContext,
) -> GitHubResponse {
    match (call.method, rest) {
        ("GET", ["commits", revision, "check-runs"]) => check_runs(repo, revision, call),
        ("GET", ["commits", revision, "status"]) => combined(repo, revision, call, context),
        ("GET", ["commits", revision, "statuses"]) => {
            let commit = commit(repo, revision);
            let statuses = repo.statuses.get(&commit).into_iter().flatten().rev();
            let bodies: Vec<Value> = statuses.map(|each| status_body(each, call)).collect();
            call.list.page(&bodies)
        }
        ("POST", ["statuses", commit]) => set_status(repo, commit, call),
        ("GET", ["check-runs", id]) => match find(repo, id) {
            Some((commit, check)) => {
                GitHubResponse::new(200, check_body(repo, &commit, &check, call))
            }
            None => GitHubResponse::not_found(),
        },
        ("GET", ["check-runs", id, "annotations"]) => match find(repo, id) {
            Some((_, check)) => call.list.page(&annotations(&check)),
            None => GitHubResponse::not_found(),
        },
        ("GET", ["actions", "runs"]) => workflow_runs(repo, call),
        ("GET", ["actions", "jobs", id, "logs"]) => match find(repo, id) {
            Some((
                _,
                FakeCheck {
                    log: Some(_), id, ..
                },
            )) if !context.are_logs_denied => {
                // Another name of this machine: GitHub's logs are on another host, too.
                let host = call.list.api.replace("127.0.0.1", "localhost");
                let host = host.split("/api").next().unwrap_or_default();
                GitHubResponse::text(302, "").header("location", format!("{host}/job-logs/{id}"))
            }
            Some((_, FakeCheck { log: Some(_), .. })) => {
                GitHubResponse::error(403, "Must have admin rights to Repository.")
            }
            _ => GitHubResponse::not_found(),
        },
        _ => GitHubResponse::not_found(),
    }
}

fn commit(repo: &FakeRepo, revision: &str) -> String {
    let head = repo.head(revision).filter(|_| revision.len() != 40);
    head.unwrap_or_else(|| revision.to_owned())
}

fn find(repo: &FakeRepo, id: &str) -> Option<(String, FakeCheck)> {
    let id = ralph_core::parse_value::<u64>(id)?;
    repo.checks.iter().find_map(|(commit, checks)| {
        let check = checks.iter().find(|check| check.id == id)?;
        Some((commit.clone(), check.clone()))
    })
}

fn check_runs(repo: &FakeRepo, revision: &str, call: &GitHubCall<'_>) -> GitHubResponse {
    let commit = commit(repo, revision);
    let all = repo.checks.get(&commit).into_iter().flatten();
    let selected: Vec<&FakeCheck> = if call.list.parameter("filter").as_deref() == Some("all") {
        all.collect()
    } else {
        let latest = all.map(|check| (&check.name, check));
        latest.collect::<BTreeMap<_, _>>().into_values().collect()
    };
    let bodies = selected
        .iter()
        .map(|check| check_body(repo, &commit, check, call));
    call.list
        .counted_page("check_runs", &bodies.collect::<Vec<_>>())
}

/// Responds with a run of a workflow for each check.
fn workflow_runs(repo: &FakeRepo, call: &GitHubCall<'_>) -> GitHubResponse {
    let commit = call.list.parameter("head_sha").unwrap_or_default();
    let checks = repo.checks.get(&commit).into_iter().flatten();
    let runs = checks.map(|check| {
        let status = if check.conclusion.is_some() {
            "completed"
        } else {
            "in_progress"
        };
        json!({
            "id": check.id, "name": check.name, "status": status, "conclusion": check.conclusion,
            "html_url": format!("https://github.com/{}/actions/runs/{}", repo.full_name, check.id),
        })
    });
    call.list
        .counted_page("workflow_runs", &runs.collect::<Vec<_>>())
}

fn check_body(repo: &FakeRepo, commit: &str, check: &FakeCheck, call: &GitHubCall<'_>) -> Value {
    let id = check.id;
    let html = format!(
        "https://github.com/{}/actions/runs/1/job/{id}",
        repo.full_name
    );
    let end = check.conclusion.as_ref().map(|_| call.time());
    let mut value = example(
        include_str!("bodies/check_run.json"),
        &json!({
            "id": id, "name": check.name, "head_sha": commit, "status": check.status,
            "conclusion": check.conclusion, "completed_at": end, "details_url": html, "html_url": html,
        }),
    );
    value["output"] = json!({
        "title": null, "summary": check.summary, "text": null,
        "annotations_count": check.annotations.len(), "annotations_url": format!("{html}/annotations"),
    });
    value["app"]["slug"] = if check.log.is_some() {
        "github-actions"
    } else {
        "octoapp"
    }
    .into();
    value
}

fn annotations(check: &FakeCheck) -> Vec<Value> {
    let annotations = check.annotations.iter();
    let bodies = annotations.map(|(path, line, message)| {
        json!({
            "path": path, "start_line": line, "end_line": line, "start_column": null, "end_column": null,
            "annotation_level": "failure", "title": null, "message": message, "raw_details": null,
            "blob_href": "https://github.com/octo/app/blob/main/x",
        })
    });
    bodies.collect()
}

/// Responds with the latest status of each context.
fn combined(
    repo: &FakeRepo,
    revision: &str,
    call: &GitHubCall<'_>,
    context: &RepoContext,
) -> GitHubResponse {
    let commit = commit(repo, revision);
    let all = repo.statuses.get(&commit).into_iter().flatten();
    let latest: BTreeMap<_, _> = all.map(|status| (&status.context, status)).collect();
    let has = |state: &str| latest.values().any(|status| status.state == state);
    let state = if has("failure") || has("error") {
        "failure"
    } else if has("pending") || latest.is_empty() {
        "pending"
    } else {
        "success"
    };
    let bodies = latest.values().map(|status| {
        let mut body = status_body(status, call);
        if let Some(fields) = body.as_object_mut() {
            fields.remove("creator");
        }
        body
    });
    let mut response = call
        .list
        .counted_page("statuses", &bodies.collect::<Vec<_>>());
    response.body["state"] = state.into();
    response.body["sha"] = commit.as_str().into();
    response.body["repository"] = context.settings.clone();
    let url = format!(
        "{}/repos/{}/commits/{commit}",
        call.list.api, repo.full_name
    );
    response.body["url"] = format!("{url}/status").into();
    response.body["commit_url"] = url.into();
    response
}

fn set_status(repo: &mut FakeRepo, commit: &str, call: &GitHubCall<'_>) -> GitHubResponse {
    let state = call.field("state").unwrap_or_default();
    if !["error", "failure", "pending", "success"].contains(&state) {
        return GitHubResponse::invalid("Status", "state", "invalid", "");
    }
    let description = call.field("description");
    if description.is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        let message = "description is too long (maximum is 140 characters)";
        return GitHubResponse::invalid("Status", "description", "custom", message);
    }
    let status = FakeStatus {
        id: repo.next_id(),
        context: call.field("context").unwrap_or("default").to_owned(),
        state: state.to_owned(),
        description: description.map(str::to_owned),
        target_url: call.field("target_url").map(str::to_owned),
    };
    let body = status_body(&status, call);
    repo.statuses
        .entry(commit.to_owned())
        .or_default()
        .push(status);
    GitHubResponse::new(201, body)
}

fn status_body(status: &FakeStatus, call: &GitHubCall<'_>) -> Value {
    example(
        include_str!("bodies/commit_status.json"),
        &json!({
            "id": status.id, "state": status.state, "context": status.context,
            "description": status.description, "target_url": status.target_url,
            "created_at": call.time(), "updated_at": call.time(),
        }),
    )
}
