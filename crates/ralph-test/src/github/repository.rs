//! A repository: its permissions, its branches, and the operations below it.

use serde_json::{Value, json};

use super::repo::FakeRepo;
use super::response::{GitHubResponse, example};
use super::routes::GitHubCall;
use super::state::{FakeGitHubState, FakeGitHubToken};
use super::{checks, issues, pulls};

/// Responds to a request below `/repos/OWNER/NAME`.
pub(super) fn respond(
    state: &mut FakeGitHubState,
    full_name: &str,
    rest: &[&str],
    call: &GitHubCall<'_>,
) -> GitHubResponse {
    if !state.repositories.contains_key(full_name) {
        return GitHubResponse::not_found();
    }
    let resource = resource(rest);
    if let Some(denied) = denied(state, resource, call) {
        return denied;
    }
    if call.method != "GET" && state.is_archived(full_name) {
        return GitHubResponse::error(403, "Repository was archived so is read-only.");
    }
    let settings = repository_body(state, full_name);
    if rest.is_empty() {
        return GitHubResponse::new(200, settings);
    }
    let context = RepoContext {
        settings,
        are_branches_protected: state.are_branches_protected,
        are_drafts_supported: state.are_drafts_supported,
        are_logs_denied: state.are_logs_denied,
    };
    let login = match call.token {
        FakeGitHubToken::Installation => "ralph-app[bot]".to_owned(),
        FakeGitHubToken::Classic(_) | FakeGitHubToken::FineGrained(_) => state.login.clone(),
    };
    let repo = state.repo(full_name);
    match rest {
        ["pulls", rest @ ..] => pulls::respond(repo, rest, call, &context, &login),
        ["issues" | "labels", ..] => issues::respond(repo, rest, call, &login),
        ["commits", _, "check-runs" | "status" | "statuses"]
        | ["check-runs" | "statuses" | "actions", ..] => {
            checks::respond(repo, rest, call, &context)
        }
        ["branches", branch @ ..] => branch_body(repo, &branch.join("/"), &context),
        ["commits", revision @ ..] => commit(repo, &revision.join("/")),
        _ => GitHubResponse::not_found(),
    }
}

/// The settings of a repository.
pub(super) struct RepoContext {
    pub(super) settings: Value,
    are_branches_protected: bool,
    pub(super) are_drafts_supported: bool,
    pub(super) are_logs_denied: bool,
}

/// Returns the permission that a path requires.
fn resource(rest: &[&str]) -> &'static str {
    match rest {
        [] => "metadata",
        ["pulls", ..] => "pull_requests",
        ["issues" | "labels", ..] => "issues",
        ["commits", _, "check-runs"] | ["check-runs", ..] => "checks",
        ["commits", _, "status" | "statuses"] | ["statuses", ..] => "statuses",
        ["actions", ..] => "actions",
        _ => "contents",
    }
}

fn denied(
    state: &FakeGitHubState,
    resource: &str,
    call: &GitHubCall<'_>,
) -> Option<GitHubResponse> {
    let access = if call.method == "GET" {
        "read"
    } else {
        "write"
    };
    let needed = format!("{resource}={access}");
    let message = match &call.token {
        FakeGitHubToken::Classic(_) => return None,
        FakeGitHubToken::FineGrained(denied) => {
            let is_denied = denied
                .iter()
                .any(|each| *each == resource || *each == needed);
            is_denied.then_some("Resource not accessible by personal access token")?
        }
        FakeGitHubToken::Installation => {
            let granted = state.installation_permissions[resource].as_str();
            let suffices = granted == Some("write") || granted == Some(access);
            (!suffices).then_some("Resource not accessible by integration")?
        }
    };
    let response = GitHubResponse::error(403, message);
    Some(response.header("x-accepted-github-permissions", needed))
}

/// Returns the description of a repository.
pub(super) fn repository_body(state: &FakeGitHubState, full_name: &str) -> Value {
    let changes = &state.repositories[full_name];
    let mut body = example(include_str!("bodies/repository.json"), changes);
    let (owner, name) = full_name.split_once('/').unwrap_or(("", full_name));
    body["full_name"] = full_name.into();
    body["name"] = name.into();
    body["owner"]["login"] = owner.into();
    body
}

fn branch_body(repo: &FakeRepo, branch: &str, context: &RepoContext) -> GitHubResponse {
    let Some(head) = repo.head(branch) else {
        return GitHubResponse::error(404, "Branch not found");
    };
    let protected = context.are_branches_protected || repo.protected.contains(branch);
    let changes = json!({"name": branch, "protected": protected});
    let mut body = example(include_str!("bodies/branch.json"), &changes);
    body["commit"]["sha"] = head.into();
    GitHubResponse::new(200, body)
}

fn commit(repo: &FakeRepo, revision: &str) -> GitHubResponse {
    let sha = repo.head(revision).unwrap_or_else(|| revision.to_owned());
    let body = example(include_str!("bodies/commit.json"), &json!({"sha": sha}));
    GitHubResponse::new(200, body)
}
