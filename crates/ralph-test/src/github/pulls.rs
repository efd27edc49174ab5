//! Pull requests and their reviews.

use serde_json::{Value, json};

use super::issues::{edit_text, labels_of, text_problem};
use super::repo::{FakeIssue, FakePull, FakeRepo, FakeReview};
use super::repository::RepoContext;
use super::response::{GitHubResponse, example};
use super::routes::GitHubCall;

/// Responds to a request below `/repos/OWNER/NAME/pulls`.
pub(super) fn respond(
    repo: &mut FakeRepo,
    rest: &[&str],
    call: &GitHubCall<'_>,
    context: &RepoContext,
    login: &str,
) -> GitHubResponse {
    let number = rest
        .first()
        .and_then(|number| ralph_core::parse_value(number));
    let number = number.unwrap_or(0_u64);
    repo.refresh_head(number);
    let pull = repo.issues.get(&number);
    let pull = pull.and_then(|issue| Some((issue, issue.pull.as_ref()?)));
    match (call.method, rest, pull) {
        ("GET", [], _) => list(repo, call, context),
        ("POST", [], _) => create(repo, call, context, login),
        ("GET", [_], Some(_)) => GitHubResponse::new(200, body(repo, number, context, call)),
        ("PATCH", [_], Some(_)) => update(repo, number, call, context),
        ("GET", [_, "files"], Some((_, pull))) => {
            let files: Vec<Value> = repo
                .files(pull)
                .iter()
                .map(|name| file_body(name))
                .collect();
            call.list.page(&files)
        }
        ("GET", [_, "reviews"], Some((_, pull))) => {
            let reviews = pull.reviews.iter();
            let reviews: Vec<Value> = reviews
                .map(|review| review_body(review, pull, call))
                .collect();
            call.list.page(&reviews)
        }
        ("GET", [_, "comments"], Some((_, pull))) => call.list.page(&review_comments(pull, call)),
        _ => GitHubResponse::not_found(),
    }
}

fn list(repo: &mut FakeRepo, call: &GitHubCall<'_>, context: &RepoContext) -> GitHubResponse {
    let wanted = call
        .list
        .parameter("state")
        .unwrap_or_else(|| "open".into());
    if !["open", "closed", "all"].contains(&wanted.as_str()) {
        return GitHubResponse::invalid("PullRequest", "state", "invalid", "");
    }
    let (head, base) = (call.list.parameter("head"), call.list.parameter("base"));
    let owner = repo
        .full_name
        .split('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let matches = |issue: &FakeIssue| {
        let Some(pull) = &issue.pull else {
            return false;
        };
        let has_state = wanted == "all" || (wanted == "open") == issue.is_open;
        let name = format!("{owner}:{}", pull.head);
        // GitHub ignores a head without an owner.
        let head = head.as_ref().filter(|head| head.contains(':'));
        has_state
            && head.is_none_or(|head| *head == name)
            && base.as_ref().is_none_or(|base| *base == pull.base)
    };
    let numbers = repo.issues.values().filter(|issue| matches(issue));
    let mut numbers: Vec<u64> = numbers.map(|issue| issue.number).collect();
    if call.list.parameter("direction").as_deref() != Some("asc") {
        numbers.reverse();
    }
    for number in &numbers {
        repo.refresh_head(*number);
    }
    let bodies = numbers
        .iter()
        .map(|number| body(repo, *number, context, call));
    call.list.page(&bodies.collect::<Vec<_>>())
}

fn create(
    repo: &mut FakeRepo,
    call: &GitHubCall<'_>,
    context: &RepoContext,
    login: &str,
) -> GitHubResponse {
    let invalid = |field, message: &str| {
        let code = if message.is_empty() {
            "invalid"
        } else {
            "custom"
        };
        GitHubResponse::invalid("PullRequest", field, code, message)
    };
    let (Some(title), Some(head), Some(base)) =
        (call.field("title"), call.field("head"), call.field("base"))
    else {
        return invalid("title", "title, head and base are required");
    };
    let owner = repo
        .full_name
        .split('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let head = head.strip_prefix(&format!("{owner}:")).unwrap_or(head);
    if call.body["draft"] == true && !context.are_drafts_supported {
        let message = "Draft pull requests are not supported in this repository.";
        return GitHubResponse::error(422, message);
    }
    let Some(commit) = repo.head(head) else {
        return invalid("head", "");
    };
    let Some(target) = repo.head(base) else {
        return invalid("base", "");
    };
    let exists = |issue: &FakeIssue| {
        let pull = issue.pull.as_ref();
        issue.is_open && pull.is_some_and(|pull| pull.head == head && pull.base == base)
    };
    if repo.issues.values().any(exists) {
        let message = format!("A pull request already exists for {owner}:{head}.");
        return invalid("head", &message);
    }
    if repo.has_git() && commit == target {
        return invalid("head", &format!("No commits between {base} and {head}"));
    }
    let text = call.field("body").unwrap_or_default();
    if let Some(problem) = text_problem("PullRequest", Some(title), Some(text)) {
        return problem;
    }
    let pull = FakePull {
        node_id: String::new(),
        head: head.to_owned(),
        base: base.to_owned(),
        commit,
        is_draft: call.body["draft"] == true,
        is_merged: false,
        files: Vec::new(),
        reviews: Vec::new(),
    };
    let number = repo.add(title, text, login, &[], Some(pull));
    GitHubResponse::new(201, body(repo, number, context, call))
}

fn update(
    repo: &mut FakeRepo,
    number: u64,
    call: &GitHubCall<'_>,
    context: &RepoContext,
) -> GitHubResponse {
    if let Some(problem) = text_problem("PullRequest", call.field("title"), call.field("body")) {
        return problem;
    }
    let issue = repo.issue(number);
    edit_text(issue, call);
    if let (Some(base), Some(pull)) = (call.field("base"), issue.pull.as_mut()) {
        base.clone_into(&mut pull.base);
    }
    GitHubResponse::new(200, body(repo, number, context, call))
}

/// Returns the description of a pull request.
fn body(repo: &FakeRepo, number: u64, context: &RepoContext, call: &GitHubCall<'_>) -> Value {
    let issue = &repo.issues[&number];
    let Some(pull) = &issue.pull else {
        return Value::Null;
    };
    let html = format!("https://github.com/{}/pull/{number}", repo.full_name);
    let end = (!issue.is_open).then(|| call.time());
    let mut value = example(
        include_str!("bodies/pull.json"),
        &json!({
            "id": number, "number": number, "node_id": pull.node_id, "title": issue.title,
            "body": issue.body, "draft": pull.is_draft, "merged": pull.is_merged,
            "url": format!("{}/repos/{}/pulls/{number}", call.list.api, repo.full_name),
            "html_url": html, "locked": false, "active_lock_reason": null,
            "state": if issue.is_open { "open" } else { "closed" },
            "closed_at": end, "merged_at": end.as_ref().filter(|_| pull.is_merged),
            "labels": labels_of(repo, issue, call),
        }),
    );
    value["user"]["login"] = issue.author.as_str().into();
    let owner = repo.full_name.split('/').next().unwrap_or_default();
    let target = repo.head(&pull.base).unwrap_or_else(|| pull.commit.clone());
    for (side, branch, commit) in [
        ("head", &pull.head, &pull.commit),
        ("base", &pull.base, &target),
    ] {
        value[side]["ref"] = branch.as_str().into();
        value[side]["sha"] = commit.as_str().into();
        value[side]["label"] = format!("{owner}:{branch}").into();
        value[side]["repo"] = context.settings.clone();
    }
    value
}

fn file_body(name: &str) -> Value {
    let url = format!("https://github.com/octo/app/blob/main/{name}");
    json!({
        "sha": "bbcd538c8e72b8c175046e27cc8f907076331401", "filename": name, "status": "modified",
        "additions": 1, "deletions": 1, "changes": 2, "blob_url": url, "raw_url": url,
        "contents_url": url, "patch": "@@ -1 +1 @@",
    })
}

fn user(login: &str) -> Value {
    let comment = example(include_str!("bodies/comment.json"), &Value::Null);
    let mut user = comment["user"].clone();
    user["login"] = login.into();
    user
}

fn review_body(review: &FakeReview, pull: &FakePull, call: &GitHubCall<'_>) -> Value {
    let url = format!("{}/reviews/{}", call.list.api, review.id);
    json!({
        "id": review.id, "node_id": format!("PRR_{}", review.id), "user": user(&review.author),
        "body": review.body, "state": review.state, "html_url": url, "pull_request_url": url,
        "author_association": review.association, "commit_id": pull.commit, "submitted_at": call.time(),
        "_links": {"html": {"href": url}, "pull_request": {"href": url}},
    })
}

fn review_comments(pull: &FakePull, call: &GitHubCall<'_>) -> Vec<Value> {
    let of_review = |review: &FakeReview| {
        let comments = review.comments.iter().enumerate();
        let comments = comments.map(|(index, (path, line, text))| {
            let id = review.id * 100 + index as u64;
            let url = format!("{}/comments/{id}", call.list.api);
            json!({
                "id": id, "node_id": format!("PRRC_{id}"), "pull_request_review_id": review.id,
                "path": path, "line": line, "original_line": line, "side": "RIGHT", "body": text,
                "user": user(&review.author), "commit_id": pull.commit, "original_commit_id": pull.commit,
                "diff_hunk": "@@ -1 +1 @@", "position": 1, "original_position": 1,
                "created_at": call.time(), "updated_at": call.time(), "author_association": "COLLABORATOR",
                "url": url, "html_url": url, "pull_request_url": url, "subject_type": "line",
                "_links": {"self": {"href": url}, "html": {"href": url}, "pull_request": {"href": url}},
            })
        });
        comments.collect::<Vec<_>>()
    };
    pull.reviews.iter().flat_map(of_review).collect()
}
