//! Who sends a request, its faults, and the operation that responds to it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::faults::{GitHubFault, take_fault};
use super::response::{GitHubResponse, ListAddress, percent_decode};
use super::state::{FakeGitHubState, FakeGitHubToken};
use super::wire::RawRequest;
use super::{apps, graphql, repository};

/// The sender of a request.
enum Sender {
    App,
    Token(FakeGitHubToken),
}

/// A request to an operation of the API.
pub(super) struct GitHubCall<'a> {
    pub(super) method: &'a str,
    pub(super) list: ListAddress<'a>,
    pub(super) body: Value,
    pub(super) token: FakeGitHubToken,
    pub(super) now: Timestamp,
}

impl GitHubCall<'_> {
    pub(super) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns a text of the body.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.body[name].as_str()
    }
}

/// Returns the fault of a request, and counts it.
pub(super) fn fault(state: &mut FakeGitHubState, request: &RawRequest) -> Option<GitHubFault> {
    let rule = take_fault(&mut state.rules, &request.line);
    rule.or_else(|| state.fault.clone())
}

/// Responds to a request and changes the state. Returns whether it has changed.
pub(super) fn respond(
    state: &mut FakeGitHubState,
    request: &RawRequest,
    url: &str,
    fault: Option<&GitHubFault>,
) -> (GitHubResponse, bool) {
    let now = now(state);
    let is_performed = fault.is_none_or(GitHubFault::is_performed);
    let performed = is_performed.then(|| perform(state, request, url, now));
    let is_mutation = performed
        .as_ref()
        .is_some_and(|response| is_mutation(request, response));
    let failure = fault.and_then(|fault| failure(fault, now));
    // A client never sees the response of a fault without one.
    let silence = || GitHubResponse::text(503, "");
    let response = failure.or(performed).unwrap_or_else(silence);
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let response = response
        .header("date", date)
        .header("x-github-request-id", "FA4E:0001");
    (response, is_mutation)
}

/// Returns whether a request changed the state: by its method, and GraphQL by its document.
fn is_mutation(request: &RawRequest, response: &GitHubResponse) -> bool {
    let line = &request.line;
    let is_token = line.contains("/access_tokens ");
    let is_query =
        line.contains("/graphql ") && !String::from_utf8_lossy(&request.body).contains("mutation");
    let is_error = !response.body["errors"].is_null() || response.status >= 300;
    !line.starts_with("GET ") && !is_token && !is_query && !is_error
}

fn perform(
    state: &mut FakeGitHubState,
    request: &RawRequest,
    url: &str,
    now: Timestamp,
) -> GitHubResponse {
    if let Some(log) = log_of_job(state, request) {
        return log;
    }
    match sender(state, request, now) {
        Some(sender) => route(state, request, &sender, url),
        None => GitHubResponse::error(401, "Bad credentials"),
    }
}

pub(super) fn now(state: &FakeGitHubState) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(state.clock_ahead)
}

/// Returns the response of a fault, unless it is the usual one or none.
fn failure(fault: &GitHubFault, now: Timestamp) -> Option<GitHubResponse> {
    let response = match fault {
        GitHubFault::PrimaryLimit => {
            let reset = now.as_second() + 1800;
            GitHubResponse::error(403, "API rate limit exceeded for user ID 1.")
                .header("x-ratelimit-limit", "5000")
                .header("x-ratelimit-remaining", "0")
                .header("x-ratelimit-reset", reset.to_string())
        }
        GitHubFault::SecondaryLimit(seconds) => {
            GitHubResponse::error(403, "You have exceeded a secondary rate limit.")
                .header("retry-after", seconds.to_string())
        }
        GitHubFault::UnavailableFor(seconds) => GitHubResponse::error(503, "Service Unavailable")
            .header("retry-after", seconds.to_string()),
        GitHubFault::Status(status) | GitHubFault::StatusAfter(status) => {
            GitHubResponse::error(*status, "Server Error")
        }
        GitHubFault::Redirect(target) => {
            GitHubResponse::error(301, "Moved Permanently").header("location", target)
        }
        GitHubFault::SingleSignOn => {
            let sso = "required; url=https://github.com/orgs/octo/sso?authorization_request=1";
            GitHubResponse::error(403, "Resource protected by organization SAML enforcement.")
                .header("x-github-sso", sso)
        }
        GitHubFault::Unauthorized => GitHubResponse::error(401, "Bad credentials"),
        GitHubFault::Blocked => GitHubResponse::error(451, "Repository access blocked"),
        GitHubFault::LoseResponse | GitHubFault::Hang | GitHubFault::Drop => return None,
    };
    Some(response)
}

/// Returns whether a token is accepted at this time.
fn accepted(state: &FakeGitHubState, token: &str, now: Timestamp) -> Option<FakeGitHubToken> {
    let is_over = state.token_ends.get(token).is_some_and(|end| *end <= now);
    state.tokens.get(token).filter(|_| !is_over).cloned()
}

fn sender(state: &FakeGitHubState, request: &RawRequest, now: Timestamp) -> Option<Sender> {
    let token = request.headers.get("authorization")?;
    // PyGithub and Octokit send `token`, too.
    let token = token
        .strip_prefix("Bearer ")
        .or_else(|| token.strip_prefix("token "))?;
    if let Some(token) = accepted(state, token, now) {
        return Some(Sender::Token(token));
    }
    apps::is_signed(state, token, now).then_some(Sender::App)
}

/// Returns whether git sent an accepted token as its password.
pub(super) fn git_sender(state: &FakeGitHubState, request: &RawRequest) -> Option<FakeGitHubToken> {
    let encoded = request.headers.get("authorization")?;
    let decoded = STANDARD.decode(encoded.strip_prefix("Basic ")?);
    let decoded = decoded.unwrap_or_else(|_| Vec::new());
    let text = String::from_utf8_lossy(&decoded).into_owned();
    let (user, password) = text.split_once(':')?;
    let token = accepted(state, password, now(state))?;
    // A token of an installation requires this user; other tokens accept any.
    let is_right = token != FakeGitHubToken::Installation || user == "x-access-token";
    is_right.then_some(token)
}

/// Responds like the host of logs, which rejects the credential of the API.
fn log_of_job(state: &FakeGitHubState, request: &RawRequest) -> Option<GitHubResponse> {
    let id = request.target().strip_prefix("/job-logs/")?;
    let id = ralph_core::parse_value::<u64>(id)?;
    if request.headers.contains_key("authorization") {
        return Some(GitHubResponse::text(400, "InvalidAuthenticationInfo"));
    }
    let checks = state
        .contents
        .values()
        .flat_map(|repo| repo.checks.values());
    let mut checks = checks.flatten().filter(|check| check.id == id);
    let log = checks.next()?.log.as_deref();
    Some(GitHubResponse::text(200, log.unwrap_or_default()))
}

fn route(
    state: &mut FakeGitHubState,
    request: &RawRequest,
    sender: &Sender,
    url: &str,
) -> GitHubResponse {
    let method = request.line.split(' ').next().unwrap_or_default();
    let (full_path, query) = match request.target().split_once('?') {
        Some(parts) => parts,
        None => (request.target(), ""),
    };
    // GitHub Enterprise Server has its API below these paths.
    let prefix = ["/api/v3", "/api"];
    let prefix = prefix
        .into_iter()
        .find(|prefix| full_path.starts_with(&format!("{prefix}/")));
    let path = &full_path[prefix.map_or(0, str::len)..];
    let api = format!("{url}{}", prefix.unwrap_or_default());
    let parts: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(percent_decode)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let list = ListAddress {
        api: &api,
        path,
        query,
        page_size: state.page_size,
    };
    if let ["repos", owner, name, ..] = parts.as_slice()
        && let Some(moved) = moved(state, (owner, name), &list)
    {
        return moved;
    }
    let token = match sender {
        Sender::App => return route_app(state, method, &parts, &list),
        Sender::Token(token) => token.clone(),
    };
    let call = GitHubCall {
        method,
        list,
        body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        token: token.clone(),
        now: now(state),
    };
    let response = match (method, parts.as_slice()) {
        ("GET", ["user"]) => apps::user(state, &token),
        ("POST", ["graphql"]) => graphql::respond(state, &call),
        (_, ["repos", owner, name, rest @ ..]) => {
            repository::respond(state, &format!("{owner}/{name}"), rest, &call)
        }
        _ => GitHubResponse::not_found(),
    };
    let full_name = match parts.as_slice() {
        ["repos", owner, name, ..] => format!("{owner}/{name}"),
        _ => "octo/app".to_owned(),
    };
    let response = response.with_addresses(&api, &full_name);
    let response = if method == "GET" {
        response.revalidate(request.headers.get("if-none-match"))
    } else {
        response
    };
    with_token_headers(response, &token)
}

fn route_app(
    state: &mut FakeGitHubState,
    method: &str,
    parts: &[&str],
    list: &ListAddress<'_>,
) -> GitHubResponse {
    match (method, parts) {
        ("GET", ["app"]) => apps::app(state),
        ("GET", ["app", "installations"]) => apps::installations(state, list),
        ("POST", ["app", "installations", id, "access_tokens"]) => apps::create_token(state, id),
        ("GET", ["repos", owner, name, "installation"]) => {
            apps::repository_installation(state, owner, name)
        }
        _ => GitHubResponse::not_found(),
    }
}

/// Returns the redirect of a renamed repository.
fn moved(
    state: &FakeGitHubState,
    (owner, name): (&str, &str),
    list: &ListAddress<'_>,
) -> Option<GitHubResponse> {
    let old = format!("{owner}/{name}");
    let new = state.renamed.get(&old)?;
    let rest = list.path.strip_prefix(&format!("/repos/{old}"))?;
    let query = if list.query.is_empty() {
        String::new()
    } else {
        format!("?{}", list.query)
    };
    let target = format!("{}/repos/{new}{rest}{query}", list.api);
    let body = json!({
        "message": "Moved Permanently", "url": target, "documentation_url": "https://docs.github.com/rest",
    });
    Some(GitHubResponse::new(301, body).header("location", target))
}

fn with_token_headers(response: GitHubResponse, token: &FakeGitHubToken) -> GitHubResponse {
    let response = response
        .header("x-ratelimit-limit", "5000")
        .header("x-ratelimit-remaining", "4990")
        .header("x-ratelimit-reset", "4102444800");
    match token {
        FakeGitHubToken::Classic(scopes) => response.header("x-oauth-scopes", *scopes),
        FakeGitHubToken::FineGrained(_) => response.header(
            "github-authentication-token-expiration",
            "2099-12-31 10:00:00 UTC",
        ),
        FakeGitHubToken::Installation => response,
    }
}
