//! The operations of the API.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use rustls::crypto::ring::default_provider;
use serde_json::{Value, json};

use super::state::{FakeGitHubState, FakeGitHubToken, GitHubFault};
use crate::model_api::{FakeResponse, ReceivedRequest};

const APP_PUBLIC_KEY: &[u8] = include_bytes!("app_key.public.der");

/// The response to a request.
pub(super) struct GitHubResponse {
    pub(super) status: u16,
    pub(super) body: Value,
    headers: Vec<(&'static str, String)>,
}

impl GitHubResponse {
    fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    fn error(status: u16, message: &str) -> Self {
        let documentation_url = "https://docs.github.com/rest";
        Self::new(
            status,
            json!({"message": message, "documentation_url": documentation_url, "status": status.to_string()}),
        )
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn into_fake_response(self) -> FakeResponse {
        let response = FakeResponse::json(self.status, &self.body.to_string());
        let headers = self.headers.into_iter();
        headers.fold(response, |response, (name, value)| {
            response.header(name, &value)
        })
    }
}

/// The sender of a request.
enum Sender {
    App,
    Token(FakeGitHubToken),
}

/// Responds to a request and changes the state.
pub(super) fn respond(
    state: &mut FakeGitHubState,
    request: &ReceivedRequest,
    url: &str,
) -> GitHubResponse {
    let now = now(state);
    let response = fault(state, now).unwrap_or_else(|| match sender(state, request, now) {
        Some(sender) => route(state, request, &sender, url),
        None => GitHubResponse::error(401, "Bad credentials"),
    });
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    response
        .header("date", date)
        .header("x-github-request-id", "FA4E:0001")
}

fn now(state: &FakeGitHubState) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(state.clock_ahead)
}

fn fault(state: &FakeGitHubState, now: Timestamp) -> Option<GitHubResponse> {
    let response = match state.fault.as_ref()? {
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
        GitHubFault::Status(status) => GitHubResponse::error(*status, "Server Error"),
        GitHubFault::Redirect(target) => {
            GitHubResponse::error(301, "Moved Permanently").header("location", target)
        }
        GitHubFault::SingleSignOn => {
            let sso = "required; url=https://github.com/orgs/octo/sso?authorization_request=1";
            GitHubResponse::error(403, "Resource protected by organization SAML enforcement.")
                .header("x-github-sso", sso)
        }
    };
    Some(response)
}

fn sender(state: &FakeGitHubState, request: &ReceivedRequest, now: Timestamp) -> Option<Sender> {
    let token = request.headers.get("authorization")?;
    let token = token.strip_prefix("Bearer ")?;
    if let Some(token) = state.tokens.get(token) {
        return Some(Sender::Token(token.clone()));
    }
    is_signed(state, token, now).then_some(Sender::App)
}

/// Verifies a JSON Web Token like GitHub: the signature, the issuer and the times.
fn is_signed(state: &FakeGitHubState, token: &str, now: Timestamp) -> bool {
    let Some((signed, signature)) = token.rsplit_once('.') else {
        return false;
    };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap_or_else(|_| Vec::new());
    let claims = decoded(signed.split('.').nth(1).unwrap_or_default());
    let claims = serde_json::from_slice(&claims).unwrap_or(Value::Null);
    let provider = default_provider();
    let algorithms = provider.signature_verification_algorithms.all.iter();
    let is_authentic = algorithms.copied().any(|algorithm| {
        let signature = decoded(signature);
        let verified = algorithm.verify_signature(APP_PUBLIC_KEY, signed.as_bytes(), &signature);
        verified.is_ok()
    });
    let (start, end) = (claims["iat"].as_i64(), claims["exp"].as_i64());
    let now = now.as_second();
    is_authentic
        && claims["iss"].as_str() == Some(state.app_id.to_string().as_str())
        && start.is_some_and(|start| start <= now)
        && end.is_some_and(|end| now < end && end <= now + 600)
}

fn route(
    state: &mut FakeGitHubState,
    request: &ReceivedRequest,
    sender: &Sender,
    url: &str,
) -> GitHubResponse {
    let mut words = request.line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let method = method.unwrap_or_default();
    match (method, parts.as_slice(), sender) {
        ("GET", ["app"], Sender::App) => app(state),
        ("GET", ["app", "installations"], Sender::App) => installations(state, query, url),
        ("POST", ["app", "installations", id, "access_tokens"], Sender::App) => {
            create_token(state, id)
        }
        ("GET", ["repos", owner, name, "installation"], Sender::App) => {
            repository_installation(state, owner, name, url)
        }
        ("GET", ["user"], Sender::Token(token)) => with_token_headers(user(state, token), token),
        ("GET", ["repos", owner, name, rest @ ..], Sender::Token(token)) => {
            let response = repository(state, (owner, name), rest, token, url);
            with_token_headers(response, token)
        }
        _ => GitHubResponse::error(404, "Not Found"),
    }
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

/// Returns an example with changed fields.
fn example(text: &str, changes: &Value) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("an example in JSON");
    if let (Some(fields), Some(changes)) = (value.as_object_mut(), changes.as_object()) {
        let changes = changes.iter();
        fields.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
    }
    value
}

fn user(state: &FakeGitHubState, token: &FakeGitHubToken) -> GitHubResponse {
    match token {
        FakeGitHubToken::Installation => {
            GitHubResponse::error(403, "Resource not accessible by integration")
        }
        FakeGitHubToken::Classic(_) | FakeGitHubToken::FineGrained(_) => {
            let login = json!({"login": state.login});
            GitHubResponse::new(200, example(include_str!("bodies/user.json"), &login))
        }
    }
}

fn app(state: &FakeGitHubState) -> GitHubResponse {
    let changes = json!({"id": state.app_id, "slug": "ralph-app"});
    GitHubResponse::new(200, example(include_str!("bodies/app.json"), &changes))
}

fn installation(state: &FakeGitHubState, index: usize) -> Value {
    let mut value = example(
        include_str!("bodies/installation.json"),
        &json!({"id": index + 1, "app_id": state.app_id, "permissions": state.installation_permissions}),
    );
    value["account"]["login"] = state.installations[index].as_str().into();
    value
}

fn installations(state: &FakeGitHubState, query: &str, url: &str) -> GitHubResponse {
    let page = query.split('&').find_map(|pair| pair.strip_prefix("page="));
    let page: usize = page.and_then(ralph_core::parse_value).unwrap_or(1);
    let all: Vec<Value> = (0..state.installations.len())
        .map(|index| installation(state, index))
        .collect();
    let mut pages = all.chunks(state.page_size).skip(page - 1);
    let entries = pages.next().unwrap_or_default().to_vec();
    let response = GitHubResponse::new(200, entries.into());
    match pages.next() {
        Some(_) => {
            let next = format!("{url}/app/installations?per_page=100&page={}", page + 1);
            response.header(
                "link",
                format!("<{next}>; rel=\"next\", <{url}/>; rel=\"last\""),
            )
        }
        None => response,
    }
}

fn repository_installation(
    state: &FakeGitHubState,
    owner: &str,
    name: &str,
    url: &str,
) -> GitHubResponse {
    if let Some(moved) = moved(state, owner, name, "/installation", url) {
        return moved;
    }
    let exists = state.repositories.contains_key(&format!("{owner}/{name}"));
    let index = state.installations.iter().position(|known| known == owner);
    match index.filter(|_| exists) {
        Some(index) => GitHubResponse::new(200, installation(state, index)),
        None => GitHubResponse::error(404, "Not Found"),
    }
}

fn create_token(state: &mut FakeGitHubState, id: &str) -> GitHubResponse {
    let id: usize = ralph_core::parse_value(id).unwrap_or(0);
    if id == 0 || id > state.installations.len() {
        return GitHubResponse::error(404, "Not Found");
    }
    state.created_tokens += 1;
    // Current tokens of installations have about 520 characters and contain dots.
    let token = format!(
        "ghs_{}_{}.{}",
        state.app_id,
        state.created_tokens,
        "x-Y_9".repeat(100)
    );
    let expires = now(state) + SignedDuration::from_hours(1);
    let expires = expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    state
        .tokens
        .insert(token.clone(), FakeGitHubToken::Installation);
    GitHubResponse::new(
        201,
        json!({
            "token": token, "expires_at": expires, "permissions": state.installation_permissions,
            "repository_selection": "all",
        }),
    )
}

/// Returns the redirect of a renamed repository.
fn moved(
    state: &FakeGitHubState,
    owner: &str,
    name: &str,
    rest: &str,
    url: &str,
) -> Option<GitHubResponse> {
    let new = state.renamed.get(&format!("{owner}/{name}"))?;
    let target = format!("{url}/repos/{new}{rest}");
    let body = json!({
        "message": "Moved Permanently", "url": target, "documentation_url": "https://docs.github.com/rest",
    });
    Some(GitHubResponse::new(301, body).header("location", target))
}

fn repository(
    state: &FakeGitHubState,
    (owner, name): (&str, &str),
    rest: &[&str],
    token: &FakeGitHubToken,
    url: &str,
) -> GitHubResponse {
    if let Some(moved) = moved(state, owner, name, "", url) {
        return moved;
    }
    let full_name = format!("{owner}/{name}");
    let Some(changes) = state.repositories.get(&full_name) else {
        return GitHubResponse::error(404, "Not Found");
    };
    let (resource, body) = match rest {
        [] => {
            let mut body = example(include_str!("bodies/repository.json"), changes);
            body["full_name"] = full_name.into();
            ("metadata", body)
        }
        ["branches", branch] => (
            "contents",
            example(
                include_str!("bodies/branch.json"),
                &json!({"name": branch, "protected": state.are_branches_protected}),
            ),
        ),
        ["pulls"] => ("pull_requests", json!([])),
        ["issues"] => ("issues", json!([])),
        ["commits", _, "check-runs"] => ("checks", json!({"total_count": 0, "check_runs": []})),
        ["commits", _, "status"] => (
            "statuses",
            serde_json::from_str(include_str!("bodies/status.json")).expect("an example in JSON"),
        ),
        ["commits", _] => (
            "contents",
            serde_json::from_str(include_str!("bodies/commit.json")).expect("an example in JSON"),
        ),
        _ => return GitHubResponse::error(404, "Not Found"),
    };
    match token {
        FakeGitHubToken::FineGrained(denied) if denied.contains(&resource) => {
            let message = "Resource not accessible by personal access token";
            GitHubResponse::error(403, message)
                .header("x-accepted-github-permissions", format!("{resource}=read"))
        }
        FakeGitHubToken::Classic(_)
        | FakeGitHubToken::FineGrained(_)
        | FakeGitHubToken::Installation => GitHubResponse::new(200, body),
    }
}
