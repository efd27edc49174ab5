//! Issues, comments and labels. A pull request is an issue, too.

use serde_json::{Value, json};

use super::repo::{FakeIssue, FakeIssueComment, FakeLabel, FakeRepo};
use super::response::{GitHubResponse, example};
use super::routes::GitHubCall;

/// The largest text of an issue or a comment, in characters.
const MAX_TEXT_CHARS: usize = 65_536;

/// Responds to a request below `/repos/OWNER/NAME/issues` or `/labels`.
pub(super) fn respond(
    repo: &mut FakeRepo,
    rest: &[&str],
    call: &GitHubCall<'_>,
    login: &str,
) -> GitHubResponse {
    let number = rest
        .get(1)
        .and_then(|number| ralph_core::parse_value(number));
    let number: Option<u64> = number.filter(|number| repo.issues.contains_key(number));
    match (call.method, rest, number) {
        ("GET", ["labels"], _) => {
            let labels = repo.labels.iter();
            let labels: Vec<Value> = labels.map(|label| label_body(repo, label, call)).collect();
            call.list.page(&labels)
        }
        ("POST", ["labels"], _) => create_label(repo, call),
        ("GET", ["issues"], _) => list(repo, call),
        ("POST", ["issues"], _) => {
            let Some(title) = call.field("title") else {
                return GitHubResponse::invalid("Issue", "title", "missing_field", "");
            };
            let number = repo.add(
                title,
                call.field("body").unwrap_or_default(),
                login,
                &[],
                None,
            );
            add_labels(repo, number, call);
            GitHubResponse::new(201, body(repo, &repo.issues[&number], call))
        }
        ("PATCH", ["issues", "comments", id], _) => edit_comment(repo, id, call),
        ("GET", ["issues", _], Some(number)) => {
            GitHubResponse::new(200, body(repo, &repo.issues[&number], call))
        }
        ("PATCH", ["issues", _], Some(number)) => edit(repo, number, call),
        ("GET", ["issues", _, "comments"], Some(number)) => {
            let comments = repo
                .comments
                .values()
                .filter(|comment| comment.issue == number);
            let comments: Vec<Value> = comments
                .map(|each| comment_body(repo, each, call))
                .collect();
            call.list.page(&comments)
        }
        ("POST", ["issues", _, "comments"], Some(number)) => comment(repo, number, call, login),
        ("GET", ["issues", _, "labels"], Some(number)) => labels_response(repo, number, call),
        ("POST", ["issues", _, "labels"], Some(number)) => {
            add_labels(repo, number, call);
            labels_response(repo, number, call)
        }
        ("PUT", ["issues", _, "labels"], Some(number)) => {
            repo.issue(number).labels.clear();
            add_labels(repo, number, call);
            labels_response(repo, number, call)
        }
        ("DELETE", ["issues", _, "labels", name], Some(number)) => {
            remove_label(repo, number, name, call)
        }
        _ => GitHubResponse::not_found(),
    }
}

/// Rejects a text that is empty or too long.
pub(super) fn text_problem(
    resource: &str,
    title: Option<&str>,
    body: Option<&str>,
) -> Option<GitHubResponse> {
    let problem =
        |field, message: &str| Some(GitHubResponse::invalid(resource, field, "custom", message));
    if title.is_some_and(|title| title.trim().is_empty()) {
        return problem("title", "title can't be blank");
    }
    if title.is_some_and(|title| title.chars().count() > 256) {
        return problem("title", "title is too long (maximum is 256 characters)");
    }
    if body.is_some_and(|body| body.chars().count() > MAX_TEXT_CHARS) {
        return problem("body", "body is too long (maximum is 65536 characters)");
    }
    None
}

/// Changes the title, the body and the state of an issue or a pull request.
pub(super) fn edit_text(issue: &mut FakeIssue, call: &GitHubCall<'_>) {
    if let Some(title) = call.field("title") {
        title.clone_into(&mut issue.title);
    }
    if let Some(body) = call.field("body") {
        body.clone_into(&mut issue.body);
    }
    if let Some(state) = call.field("state") {
        issue.is_open = state == "open";
    }
}

fn list(repo: &FakeRepo, call: &GitHubCall<'_>) -> GitHubResponse {
    let state = call
        .list
        .parameter("state")
        .unwrap_or_else(|| "open".into());
    let labels = call.list.parameter("labels").unwrap_or_default();
    let labels: Vec<&str> = labels
        .split(',')
        .filter(|label| !label.is_empty())
        .collect();
    let matches = |issue: &&FakeIssue| {
        let has = |name: &&str| {
            issue
                .labels
                .iter()
                .any(|label| label.eq_ignore_ascii_case(name))
        };
        (state == "all" || (state == "open") == issue.is_open) && labels.iter().all(has)
    };
    let found = repo.issues.values().filter(matches);
    let mut bodies: Vec<Value> = found.map(|issue| body(repo, issue, call)).collect();
    if call.list.parameter("direction").as_deref() != Some("asc") {
        bodies.reverse();
    }
    call.list.page(&bodies)
}

fn edit(repo: &mut FakeRepo, number: u64, call: &GitHubCall<'_>) -> GitHubResponse {
    if let Some(problem) = text_problem("Issue", call.field("title"), call.field("body")) {
        return problem;
    }
    edit_text(repo.issue(number), call);
    if call.body["labels"].is_array() {
        repo.issue(number).labels.clear();
        add_labels(repo, number, call);
    }
    GitHubResponse::new(200, body(repo, &repo.issues[&number], call))
}

fn comment(repo: &mut FakeRepo, number: u64, call: &GitHubCall<'_>, login: &str) -> GitHubResponse {
    let Some(text) = call.field("body") else {
        return GitHubResponse::invalid("IssueComment", "body", "missing_field", "");
    };
    if let Some(problem) = text_problem("IssueComment", None, Some(text)) {
        return problem;
    }
    let id = repo.add_comment(number, login, text);
    GitHubResponse::new(201, comment_body(repo, &repo.comments[&id], call))
}

fn edit_comment(repo: &mut FakeRepo, id: &str, call: &GitHubCall<'_>) -> GitHubResponse {
    let id = ralph_core::parse_value::<u64>(id).unwrap_or(0);
    let text = call.field("body").unwrap_or_default();
    if let Some(problem) = text_problem("IssueComment", None, Some(text)) {
        return problem;
    }
    match repo.comments.get_mut(&id) {
        Some(comment) => text.clone_into(&mut comment.body),
        None => return GitHubResponse::not_found(),
    }
    GitHubResponse::new(200, comment_body(repo, &repo.comments[&id], call))
}

fn create_label(repo: &mut FakeRepo, call: &GitHubCall<'_>) -> GitHubResponse {
    let Some(name) = call.field("name") else {
        return GitHubResponse::invalid("Label", "name", "missing_field", "");
    };
    if repo
        .labels
        .iter()
        .any(|label| label.name.eq_ignore_ascii_case(name))
    {
        return GitHubResponse::invalid("Label", "name", "already_exists", "");
    }
    let label = FakeLabel {
        name: name.to_owned(),
        color: call.field("color").unwrap_or("ededed").to_owned(),
        description: call.field("description").unwrap_or_default().to_owned(),
    };
    repo.labels.push(label.clone());
    GitHubResponse::new(201, label_body(repo, &label, call))
}

/// Adds the labels of a request; the repository gets those that it does not have.
fn add_labels(repo: &mut FakeRepo, number: u64, call: &GitHubCall<'_>) {
    // The list may also be the whole body.
    let list = call.body["labels"].as_array().or(call.body.as_array());
    for name in list.into_iter().flatten().filter_map(Value::as_str) {
        repo.ensure_label(name);
        let labels = &mut repo.issue(number).labels;
        if !labels.iter().any(|label| label.eq_ignore_ascii_case(name)) {
            labels.push(name.to_owned());
        }
    }
}

fn remove_label(
    repo: &mut FakeRepo,
    number: u64,
    name: &str,
    call: &GitHubCall<'_>,
) -> GitHubResponse {
    let labels = &mut repo.issue(number).labels;
    let position = labels
        .iter()
        .position(|label| label.eq_ignore_ascii_case(name));
    match position {
        Some(position) => drop(labels.remove(position)),
        None => return GitHubResponse::error(404, "Label does not exist"),
    }
    labels_response(repo, number, call)
}

fn labels_response(repo: &FakeRepo, number: u64, call: &GitHubCall<'_>) -> GitHubResponse {
    GitHubResponse::new(200, labels_of(repo, &repo.issues[&number], call).into())
}

/// Returns the labels of an issue.
pub(super) fn labels_of(repo: &FakeRepo, issue: &FakeIssue, call: &GitHubCall<'_>) -> Vec<Value> {
    let has = |label: &&FakeLabel| {
        issue
            .labels
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&label.name))
    };
    let labels = repo.labels.iter().filter(has);
    labels.map(|label| label_body(repo, label, call)).collect()
}

fn label_body(repo: &FakeRepo, label: &FakeLabel, call: &GitHubCall<'_>) -> Value {
    let url = format!(
        "{}/repos/{}/labels/{}",
        call.list.api, repo.full_name, label.name
    );
    example(
        include_str!("bodies/label.json"),
        &json!({
            "name": label.name, "color": label.color, "description": label.description,
            "default": false, "url": url.replace(' ', "%20"),
        }),
    )
}

/// Returns the description of an issue.
fn body(repo: &FakeRepo, issue: &FakeIssue, call: &GitHubCall<'_>) -> Value {
    let number = issue.number;
    let kind = if issue.pull.is_some() {
        "pull"
    } else {
        "issues"
    };
    let html = format!("https://github.com/{}/{kind}/{number}", repo.full_name);
    let comments = repo
        .comments
        .values()
        .filter(|comment| comment.issue == number);
    let mut value = example(
        include_str!("bodies/issue.json"),
        &json!({
            "id": number, "number": number, "title": issue.title, "body": issue.body,
            "state": if issue.is_open { "open" } else { "closed" }, "html_url": html,
            "url": format!("{}/repos/{}/issues/{number}", call.list.api, repo.full_name),
            "labels": labels_of(repo, issue, call), "comments": comments.count(),
            "locked": false, "active_lock_reason": null, "state_reason": null,
        }),
    );
    value["user"]["login"] = issue.author.as_str().into();
    if issue.pull.is_some() {
        let url = format!("{}/repos/{}/pulls/{number}", call.list.api, repo.full_name);
        value["pull_request"] = json!({
            "url": url, "html_url": html, "diff_url": format!("{html}.diff"),
            "patch_url": format!("{html}.patch"),
        });
    }
    value
}

fn comment_body(repo: &FakeRepo, comment: &FakeIssueComment, call: &GitHubCall<'_>) -> Value {
    let issues = format!("{}/repos/{}/issues", call.list.api, repo.full_name);
    let mut value = example(
        include_str!("bodies/comment.json"),
        &json!({
            "id": comment.id, "body": comment.body,
            "url": format!("{issues}/comments/{}", comment.id),
            "issue_url": format!("{issues}/{}", comment.issue),
            "html_url": format!("https://github.com/{}/issues/{}#issuecomment-{}", repo.full_name, comment.issue, comment.id),
        }),
    );
    value["user"]["login"] = comment.author.as_str().into();
    value
}
