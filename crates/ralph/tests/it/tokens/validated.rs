//! A token is only stored if its API accepts it.

use super::fixture::{TokenTestEnv, canary, output};
use super::token_api::TokenApi;

const MESSAGE: &str = r#"{"id":"msg_1","type":"message","content":[]}"#;

/// Returns the header lines of a request that carry or describe a credential, and the path.
fn credentials(request: &str) -> Vec<&str> {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let mut told = vec![lines.next().unwrap()];
    let names = [
        "authorization",
        "x-api-key",
        "anthropic-beta",
        "anthropic-version",
    ];
    let mut fields: Vec<&str> = lines
        .filter(|line| names.iter().any(|name| line.starts_with(name)))
        .collect();
    fields.sort_unstable();
    told.append(&mut fields);
    told
}

#[test]
fn each_kind_of_token_is_sent_to_its_api_in_its_own_header() {
    let version = "anthropic-version: 2023-06-01";
    let messages = "POST /v1/messages HTTP/1.1";
    for (args, expected) in [
        (
            &["--auth", "oauth"][..],
            vec![
                messages,
                "anthropic-beta: oauth-2025-04-20",
                version,
                "authorization: Bearer canary-canary",
            ],
        ),
        (
            &["--auth", "api-key"],
            vec![messages, version, "x-api-key: canary-canary"],
        ),
        (
            &["--auth", "gateway"],
            vec![messages, version, "authorization: Bearer canary-canary"],
        ),
        // A custom address implies a gateway.
        (
            &[],
            vec![messages, version, "authorization: Bearer canary-canary"],
        ),
        (
            &["--agent", "codex", "--auth", "api-key"],
            vec![
                "POST /responses HTTP/1.1",
                "authorization: Bearer canary-canary",
            ],
        ),
        (
            &["--agent", "opencode"],
            vec![
                "POST /chat/completions HTTP/1.1",
                "authorization: Bearer canary-canary",
            ],
        ),
    ] {
        let provider = TokenApi::with_response(200, MESSAGE);
        let test_env = TokenTestEnv::new();
        let args = [&["store-token", "--base-url", provider.address()], args].concat();
        let stored = test_env.run_with_input(&args, "canary-canary");
        assert_eq!(stored.code, 0, "{stored:?}");
        let requests = provider.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(credentials(&requests[0]), expected);
    }
}

#[test]
fn a_gateway_gets_its_prefix_and_keeps_its_address() {
    let provider = TokenApi::with_response(200, MESSAGE);
    let test_env = TokenTestEnv::new();
    let address = provider.address();
    let json = format!(
        r#"{{"accessToken":"canary-canary","baseUrl":"{address}/llm/","modelPrefix":"eu/"}}"#
    );
    let stored = test_env.run_with_input(&["store-token", "--auth", "gateway"], &json);
    assert_eq!(stored.code, 0, "{stored:?}");
    let requests = provider.requests().join("\n");
    assert!(
        requests.starts_with("POST /llm/v1/messages HTTP/1.1\r\n"),
        "{requests}"
    );
    assert!(
        requests.contains(r#""model":"eu/claude-haiku-4-5""#),
        "{requests}"
    );
    let kept = std::fs::read(test_env.file("claude-token.gateway")).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(
        (&kept["baseUrl"], &kept["modelPrefix"]),
        (&format!("{address}/llm").into(), &"eu/".into())
    );
}

#[test]
fn a_token_that_the_api_rejects_is_not_stored() {
    let token = canary();
    // A provider may echo the request.
    let echo: &'static str =
        Box::leak(format!(r#"{{"error":{{"message":"{token}"}}}}"#).into_boxed_str());
    let rejected =
        "nothing was stored; get another one, or choose its mode with `--auth` (this was oauth)";
    let later = "try again later, or store it unvalidated with `--no-validate`";
    for (status, what, why, fix) in [
        (401, "rejected", "answered 401", rejected),
        (403, "rejected", "answered 403", rejected),
        (
            503,
            "not validated",
            "answered 503, which does not show whether the token is valid",
            later,
        ),
        (
            302,
            "not validated",
            "answered 302, which does not show whether the token is valid",
            later,
        ),
    ] {
        let provider = TokenApi::with_response(status, echo);
        let test_env = TokenTestEnv::new();
        let address = provider.address();
        let args = ["store-token", "--auth", "oauth", "--base-url", address];
        let stderr = format!("ralph: token {what} for agent claude — {address} {why} — {fix}\n");
        assert_eq!(
            test_env.run_with_input(&args, &token),
            output(1, "", &stderr)
        );
        assert_eq!(provider.requests().len(), 1);
        test_env.assert_absent(&token, &[]);
    }
    let provider = TokenApi::with_response(429, "{}");
    let args = ["store-token", "--base-url", provider.address()];
    assert_eq!(TokenTestEnv::new().run_with_input(&args, &token).code, 0);
}

#[test]
fn without_the_api_tokens_are_stored_only_on_request() {
    let test_env = TokenTestEnv::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let args = ["store-token", "--auth", "oauth", "--base-url", &address];
    assert_eq!(
        test_env.run_with_input(&args, &canary()),
        output(
            1,
            "",
            &format!(
                "ralph: token not validated for agent claude — {address} cannot be reached: Connection refused (os error 111) — try again later, or store it unvalidated with `--no-validate`\n"
            )
        )
    );
    test_env.assert_absent(&canary(), &[]);
    let kept = test_env.run_with_input(&[&args[..], &["--no-validate"]].concat(), &canary());
    assert_eq!(kept.code, 0, "{kept:?}");
    test_env.assert_absent(&canary(), &[test_env.file("claude-token")]);
    test_env.describe_mine();
    for (args, code, stderr) in [
        (
            &["store-token", "--agent", "claud"][..],
            2,
            "there is no agent `claud` — did you mean `claude`?",
        ),
        (
            &["store-token", "--agent", "something-else"],
            2,
            "there is no agent `something-else` — known agents: `claude`, `codex`, `opencode`, `cursor`, `github`, `command`, `mine` — use one of these, or define it in your own agents.toml",
        ),
        (
            &["store-token", "--agent", "cursor"],
            1,
            "token not validated for agent cursor — ralph does not know the API of this agent — store it unvalidated with `--no-validate`",
        ),
        (
            &["store-token", "--agent", "mine"],
            1,
            "token not validated for agent mine — ralph does not know the API of this agent — store it unvalidated with `--no-validate`",
        ),
        (
            &["store-token", "--auth", "gateway"],
            2,
            "no address for the gateway of agent claude — the key of a gateway is sent to that gateway only — name it with `--base-url URL`, or as `baseUrl` in the JSON",
        ),
        (
            &["store-token", "--agent", "codex", "--auth", "oauth"],
            2,
            "agent codex cannot authenticate with `oauth` — it supports api-key, gateway — choose one of these with `--auth`",
        ),
    ] {
        let stderr = format!("ralph: {stderr}\n");
        assert_eq!(
            test_env.run_with_input(args, &canary()),
            output(code, "", &stderr)
        );
    }
}
