//! Users, Apps, their installations and tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use rustls::crypto::ring::default_provider;
use serde_json::{Value, json};

use super::response::{GitHubResponse, ListAddress, example};
use super::routes::now;
use super::state::{FakeGitHubState, FakeGitHubToken};

const APP_PUBLIC_KEY: &[u8] = include_bytes!("app_key.public.der");

/// Verifies a JSON Web Token like GitHub: the signature, the issuer and the times.
pub(super) fn is_signed(state: &FakeGitHubState, token: &str, now: Timestamp) -> bool {
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

pub(super) fn user(state: &FakeGitHubState, token: &FakeGitHubToken) -> GitHubResponse {
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

pub(super) fn app(state: &FakeGitHubState) -> GitHubResponse {
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

pub(super) fn installations(state: &FakeGitHubState, list: &ListAddress<'_>) -> GitHubResponse {
    let all: Vec<Value> = (0..state.installations.len())
        .map(|index| installation(state, index))
        .collect();
    list.page(&all)
}

pub(super) fn repository_installation(
    state: &FakeGitHubState,
    owner: &str,
    name: &str,
) -> GitHubResponse {
    let exists = state.repositories.contains_key(&format!("{owner}/{name}"));
    let index = state.installations.iter().position(|known| known == owner);
    match index.filter(|_| exists) {
        Some(index) => GitHubResponse::new(200, installation(state, index)),
        None => GitHubResponse::not_found(),
    }
}

pub(super) fn create_token(state: &mut FakeGitHubState, id: &str) -> GitHubResponse {
    let id: usize = ralph_core::parse_value(id).unwrap_or(0);
    if id == 0 || id > state.installations.len() {
        return GitHubResponse::not_found();
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
    state.token_ends.insert(token.clone(), expires);
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
