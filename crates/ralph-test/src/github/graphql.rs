//! The GraphQL operations, which respond with status 200 even if they fail.

use serde_json::{Value, json};

use super::repo::FakeRepo;
use super::response::GitHubResponse;
use super::routes::GitHubCall;
use super::state::FakeGitHubState;

/// Responds to a GraphQL document.
pub(super) fn respond(state: &mut FakeGitHubState, call: &GitHubCall<'_>) -> GitHubResponse {
    let query = call.field("query").unwrap_or_default().to_owned();
    let variables = call.body["variables"].clone();
    let data = if query.contains("markPullRequestReadyForReview") {
        set_draft(state, "markPullRequestReadyForReview", &variables, false)
    } else if query.contains("convertPullRequestToDraft") {
        set_draft(state, "convertPullRequestToDraft", &variables, true)
    } else if query.contains("pullRequests(") {
        open_pulls(state, &variables)
    } else {
        Err(failure("undefinedField", "unknown document"))
    };
    let body = match data {
        Ok(data) => json!({"data": data}),
        Err(error) => json!({"data": null, "errors": [error]}),
    };
    GitHubResponse::new(200, body)
}

fn failure(kind: &str, message: &str) -> Value {
    json!({"type": kind, "message": message, "path": [], "locations": [{"line": 1, "column": 1}]})
}

/// Marks a pull request as a draft or as ready.
fn set_draft(
    state: &mut FakeGitHubState,
    field: &str,
    variables: &Value,
    is_draft: bool,
) -> Result<Value, Value> {
    let id = variables["id"].as_str().unwrap_or_default();
    let missing = || {
        failure(
            "NOT_FOUND",
            &format!("Could not resolve to a node with the global id of '{id}'"),
        )
    };
    let names: Vec<String> = state.contents.keys().cloned().collect();
    let found = names.iter().find_map(|name| {
        let repo = &state.contents[name];
        let mut pulls = repo.issues.values();
        let issue =
            pulls.find(|issue| issue.pull.as_ref().is_some_and(|pull| pull.node_id == id))?;
        Some((name.clone(), issue.number))
    });
    let (name, number) = found.ok_or_else(missing)?;
    if state.is_archived(&name) {
        return Err(failure(
            "FORBIDDEN",
            "Repository was archived so is read-only.",
        ));
    }
    let issue = state.repo(&name).issue(number);
    if !issue.is_open {
        let message = "Pull request is closed";
        return Err(failure("UNPROCESSABLE", message));
    }
    let pull = issue.pull.as_mut().ok_or_else(missing)?;
    pull.is_draft = is_draft;
    Ok(json!({field: {"pullRequest": {"id": id, "isDraft": is_draft}}}))
}

/// Returns the open pull requests of a repository with their files.
fn open_pulls(state: &mut FakeGitHubState, variables: &Value) -> Result<Value, Value> {
    let text = |name: &str| variables[name].as_str().unwrap_or_default();
    let mut full_name = format!("{}/{}", text("owner"), text("name"));
    // GraphQL finds a renamed repository under its old name.
    if let Some(new) = state.renamed.get(&full_name) {
        full_name.clone_from(new);
    }
    if !state.repositories.contains_key(&full_name) {
        let message = format!("Could not resolve to a Repository with the name '{full_name}'.");
        return Err(failure("NOT_FOUND", &message));
    }
    let size = state.page_size;
    let repo = state.repo(&full_name);
    let pulls: Vec<u64> = repo
        .pulls()
        .iter()
        .filter(|each| each.is_open)
        .map(|each| each.number)
        .collect();
    for number in &pulls {
        repo.refresh_head(*number);
    }
    let start = ralph_core::parse_value::<usize>(text("after")).unwrap_or(0);
    let end = pulls.len().min(start + size);
    let nodes: Vec<Value> = pulls[start.min(end)..end]
        .iter()
        .filter_map(|number| node(repo, *number, size))
        .collect();
    Ok(json!({"repository": {"pullRequests": {
        "pageInfo": {"hasNextPage": end < pulls.len(), "endCursor": end.to_string()},
        "nodes": nodes,
    }}}))
}

fn node(repo: &FakeRepo, number: u64, size: usize) -> Option<Value> {
    let issue = repo.issues.get(&number)?;
    let pull = issue.pull.as_ref()?;
    let files = repo.files(pull);
    let shown = files.iter().take(size).map(|path| json!({"path": path}));
    Some(json!({
        "number": number, "url": format!("https://github.com/{}/pull/{number}", repo.full_name),
        "title": issue.title, "headRefName": pull.head, "baseRefName": pull.base,
        "files": {
            "pageInfo": {"hasNextPage": files.len() > size},
            "nodes": shown.collect::<Vec<_>>(),
        },
    }))
}
