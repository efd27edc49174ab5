//! The credential port, as seen by the provider and by the sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_core::ports::{GitCredential, GitLogin, ScmError};
use ralph_core::repo_address::RepoAddress;
use ralph_core::secret::Secret;
use ralph_gate::{Arrival, Gate, Route, SandboxListener};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{
    GateTestbed, OK_RESPONSE, ReceivedBytes, body, connect, header, send, status,
};

/// The real credential.
pub(crate) const REAL_SECRET: &str = "sk-real-credential-0123456789abcdef";

pub(crate) fn secret() -> Secret {
    Secret::new(REAL_SECRET.to_owned())
}

/// Starts a gate with one credential for a fake provider with a fixed response.
pub(crate) async fn start_provider(
    testbed: &mut GateTestbed,
    route: Route,
    response: &str,
) -> (Gate, ReceivedBytes) {
    let name = route.endpoint().to_string();
    let host = route.endpoint().host.to_string();
    let received = testbed.start_tls_host(&name, &host, response).await;
    testbed.routes = vec![route];
    let (gate, _) = testbed.build_gate();
    (gate, received)
}

pub(crate) fn placeholder(gate: &Gate) -> String {
    gate.routes()[0].placeholder().as_str().to_owned()
}

/// Returns a request with a body.
pub(crate) fn post(path: &str, auth: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:4141\r\n{auth}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn an_untrusted_certificate_is_distinguished_from_an_outage() {
    let mut testbed = GateTestbed::new();
    let route = Route::anthropic_key(secret()).unwrap();
    let name = route.endpoint().to_string();
    let received = testbed.start_tls_host(&name, "other.example", "").await;
    testbed.routes = vec![route];
    let (gate, meter) = testbed.build_gate();
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let request = post("/anthropic/v1/messages", &auth, REQUEST_BODY);
    let response = send(&gate, SandboxListener::Credentials, request).await;
    assert_eq!(status(&response), 502, "{response}");
    assert_eq!(
        header(&response, "x-ralph-gate"),
        Some("untrusted-certificate")
    );
    let words = format!("the certificate of `{name}` is not trusted: ");
    assert!(body(&response).contains(&words), "{response}");
    assert_eq!(received.text(), "");
    assert_eq!(meter.spent().tokens, 0);
}

const REQUEST_BODY: &str = r#"{"model":"claude-haiku-4-5","messages":[]}"#;

#[tokio::test]
async fn only_the_provider_sees_the_real_credential() {
    // The provider echoes the request in its headers and body.
    let echo = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-echo: {REAL_SECRET}\r\n\
         set-cookie: a=b\r\ncontent-length: {}\r\n\r\n{{\"key\":\"{REAL_SECRET}\"}}",
        REAL_SECRET.len() + 10
    );
    for (route, auth, sent) in [
        (
            Route::anthropic_key(secret()),
            "x-api-key: PHANTOM",
            format!("x-api-key: {REAL_SECRET}"),
        ),
        (
            Route::anthropic_login(secret()),
            "Authorization: Bearer PHANTOM",
            format!("authorization: Bearer {REAL_SECRET}"),
        ),
        // The placeholder token may be sent in another header.
        (
            Route::anthropic_key(secret()),
            "Authorization: Bearer PHANTOM\r\nCookie: x=y",
            format!("x-api-key: {REAL_SECRET}"),
        ),
    ] {
        let mut testbed = GateTestbed::new();
        let (gate, received) = start_provider(&mut testbed, route.unwrap(), &echo).await;
        let auth = auth.replace("PHANTOM", &placeholder(&gate));
        let request = post("/anthropic/v1/messages?beta=true", &auth, REQUEST_BODY);
        let response = send(&gate, SandboxListener::Credentials, request).await;
        assert_eq!(status(&response), 200, "{response}");
        assert!(!response.contains(REAL_SECRET), "{response}");
        assert_eq!(header(&response, "x-echo"), Some("[REDACTED:anthropic]"));
        assert_eq!(header(&response, "set-cookie"), None);
        assert!(
            body(&response).contains(r#"{"key":"[REDACTED:anthropic]"}"#),
            "{response}"
        );
        let seen = received.text();
        assert!(
            seen.starts_with("POST /v1/messages?beta=true HTTP/1.1\r\n"),
            "{seen}"
        );
        assert!(seen.contains(&sent), "{seen}");
        assert_eq!(seen.matches(REAL_SECRET).count(), 1, "{seen}");
        assert!(
            !seen.contains(&placeholder(&gate)) && !seen.contains("x=y"),
            "{seen}"
        );
        assert!(seen.contains("host: api.anthropic.com\r\n"), "{seen}");
        assert!(seen.ends_with(REQUEST_BODY), "{seen}");
    }
}

#[tokio::test]
async fn other_providers_have_their_own_paths() {
    let chat = r#"{"model":"m","messages":[]}"#;
    for (route, path, upstream) in [
        (
            Route::openai(secret()),
            "/openai/v1/chat/completions",
            "POST /v1/chat/completions ",
        ),
        (
            Route::openai(secret()),
            "/openai/v1/responses",
            "POST /v1/responses ",
        ),
        (
            Route::zai(secret()),
            "/zai/v1/chat/completions",
            "POST /api/paas/v4/chat/completions ",
        ),
        (
            Route::openai_compatible("own", "https://models.example/x/y", secret()),
            "/own/v1/chat/completions",
            "POST /x/y/chat/completions ",
        ),
    ] {
        let mut testbed = GateTestbed::new();
        let (gate, received) = start_provider(&mut testbed, route.unwrap(), OK_RESPONSE).await;
        let auth = format!("Authorization: Bearer {}", placeholder(&gate));
        let response = send(&gate, SandboxListener::Credentials, post(path, &auth, chat)).await;
        assert_eq!(status(&response), 200, "{path}: {response}");
        let seen = received.text();
        assert!(seen.starts_with(upstream), "{seen}");
        assert!(
            seen.contains(&format!("authorization: Bearer {REAL_SECRET}\r\n")),
            "{seen}"
        );
    }
}

/// Provides another token for each request, as the App of a source host does after an hour.
#[derive(Default)]
struct ChangingLogin(AtomicUsize);

#[async_trait]
impl GitCredential for ChangingLogin {
    async fn login(&self) -> Result<GitLogin, ScmError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        if number > 1 {
            let source = std::io::ErrorKind::NotFound.into();
            let doing = "read the credential".to_owned();
            return Err(ScmError::Io { doing, source });
        }
        Ok(GitLogin {
            user: "x-access-token".to_owned(),
            password: Secret::new(format!("{REAL_SECRET}-{number}")),
        })
    }
}

#[tokio::test]
async fn git_can_read_the_repositories_of_a_run_only() {
    let mut testbed = GateTestbed::new();
    let repositories = ["owner/repo", "owner/lib"].map(|name| match RepoAddress::parse(name) {
        Ok(RepoAddress::Remote(repo)) => repo,
        other => panic!("{other:?}"),
    });
    let route = Route::git(&repositories, Arc::new(ChangingLogin::default())).unwrap();
    assert!(!route.is_metered());
    let (gate, received) = start_provider(&mut testbed, route, OK_RESPONSE).await;
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n{auth}\r\nConnection: close\r\n\r\n")
    };
    let refs = "/git/owner/repo.git/info/refs?service=git-upload-pack";
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, get(refs)).await),
        200
    );
    let pack = post("/git/owner/lib.git/git-upload-pack", &auth, "0000");
    assert_eq!(
        status(&send(&gate, SandboxListener::Credentials, pack).await),
        200
    );
    let seen = received.text();
    assert!(
        seen.starts_with("GET /owner/repo.git/info/refs?service=git-upload-pack "),
        "{seen}"
    );
    for number in 0..2 {
        let login = STANDARD.encode(format!("x-access-token:{REAL_SECRET}-{number}"));
        let basic = format!("authorization: Basic {login}\r\n");
        assert_eq!(seen.matches(&basic).count(), 1, "{seen}");
    }
    for refused in [
        get("/git/owner/repo.git/info/refs?service=git-receive-pack"),
        get("/git/owner/repo.git/info/refs"),
        get("/git/owner/other.git/info/refs?service=git-upload-pack"),
        post("/git/owner/repo.git/git-receive-pack", &auth, "0000"),
        get("/git/user"),
    ] {
        let response = send(&gate, SandboxListener::Credentials, refused.clone()).await;
        assert_eq!(
            header(&response, "x-ralph-gate"),
            Some("path-not-allowed"),
            "{refused}"
        );
    }
    let without_token = format!("GET {refs} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let response = send(&gate, SandboxListener::Credentials, without_token).await;
    assert_eq!(status(&response), 401);
    assert_eq!(
        header(&response, "www-authenticate"),
        Some("Basic realm=\"ralph\"")
    );
    let response = send(&gate, SandboxListener::Credentials, get(refs)).await;
    assert_eq!(status(&response), 502, "the login fails: {response}");
    assert_eq!(received.text().matches("HTTP/1.1").count(), 2);
}

#[tokio::test]
async fn requests_without_credentials_are_answered_locally() {
    let mut testbed = GateTestbed::new();
    let route = Route::anthropic_key(secret()).unwrap();
    let (gate, received) = start_provider(&mut testbed, route, OK_RESPONSE).await;
    for (head, code) in [
        ("GET /health", 200),
        ("HEAD /health", 200),
        ("HEAD /api/hello", 200),
        ("HEAD /anthropic/api/hello", 200),
        ("GET /anthropic/api/hello", 401),
        ("GET /openai/v1/models", 404),
    ] {
        let request = format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let response = send(&gate, SandboxListener::Credentials, request).await;
        assert_eq!(status(&response), code, "{head}");
    }
    let websocket = "GET /anthropic/v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
                     Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n";
    let mut stream = connect(&gate, Arrival::new(SandboxListener::Credentials));
    stream.write_all(websocket.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 426");
    assert_eq!(received.connections(), 0);
}

#[tokio::test]
async fn head_reaches_the_provider() {
    let response = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n";
    let mut testbed = GateTestbed::new();
    let route = Route::openai(secret()).unwrap();
    let (gate, received) = start_provider(&mut testbed, route, response).await;
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let request = format!(
        "HEAD /openai/v1/models HTTP/1.1\r\nHost: x\r\n{auth}\r\nConnection: close\r\n\r\n"
    );
    let response = send(&gate, SandboxListener::Credentials, request).await;
    assert_eq!(
        (status(&response), header(&response, "content-length")),
        (200, Some("12"))
    );
    assert!(received.text().starts_with("HEAD /v1/models HTTP/1.1\r\n"));
}

#[tokio::test]
async fn errors_use_the_format_of_the_provider() {
    let mut testbed = GateTestbed::new();
    let route = Route::anthropic_key(secret()).unwrap();
    let (gate, _) = start_provider(&mut testbed, route, OK_RESPONSE).await;
    let request = post(
        "/anthropic/v1/messages",
        "x-api-key: sk-ant-wrong",
        REQUEST_BODY,
    );
    let response = send(&gate, SandboxListener::Credentials, request).await;
    assert_eq!(status(&response), 401);
    assert_eq!(
        body(&response),
        "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"ralph: the token \
         is not this run's placeholder token — use the one from the environment\"}}"
    );
    let mut testbed = GateTestbed::new();
    let (gate, _) =
        start_provider(&mut testbed, Route::openai(secret()).unwrap(), OK_RESPONSE).await;
    let auth = format!("Authorization: Bearer {}", placeholder(&gate));
    let response = send(
        &gate,
        SandboxListener::Credentials,
        post("/openai/v1/files", &auth, "{}"),
    )
    .await;
    assert_eq!(status(&response), 404);
    assert_eq!(
        body(&response),
        "{\"error\":{\"message\":\"ralph: the credential `openai` cannot be used for `POST /files`\",\
         \"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}"
    );
}

#[tokio::test]
async fn only_redirects_to_the_same_host_are_returned() {
    for (location, code, inside) in [
        ("/v1/models/new", 302, Some("/openai/v1/models/new")),
        (
            "https://api.openai.com/v1/models/new",
            302,
            Some("/openai/v1/models/new"),
        ),
        ("https://evil.example/steal", 502, None),
    ] {
        let response =
            format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let mut testbed = GateTestbed::new();
        let (gate, received) =
            start_provider(&mut testbed, Route::openai(secret()).unwrap(), &response).await;
        let auth = format!("Authorization: Bearer {}", placeholder(&gate));
        let request = format!(
            "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\n{auth}\r\nConnection: close\r\n\r\n"
        );
        let response = send(&gate, SandboxListener::Credentials, request).await;
        assert_eq!(
            (status(&response), header(&response, "location")),
            (code, inside),
            "{location}"
        );
        assert_eq!(received.text().matches("HTTP/1.1").count(), 1);
    }
}

#[tokio::test]
async fn stream_events_are_relayed_immediately() {
    let mut testbed = GateTestbed::new();
    let acceptor = testbed.acceptor("api.anthropic.com");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    testbed.map_name("api.anthropic.com:443", listener.local_addr().unwrap());
    let (event_read, mut wait) = tokio::sync::mpsc::channel::<()>(1);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut chunk = [0; 4096];
        assert!(stream.read(&mut chunk).await.unwrap() > 0);
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // Each event is sent only after the previous one has arrived.
        for number in 0..5 {
            let event = format!("data: {{\"n\":{number}}}\n\n");
            stream.write_all(event.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            wait.recv().await.unwrap();
        }
        // The client may be gone.
        drop(stream.shutdown().await);
    });
    testbed.routes = vec![Route::anthropic_key(secret()).unwrap()];
    let (gate, _) = testbed.build_gate();
    let auth = format!("x-api-key: {}", placeholder(&gate));
    let mut stream = connect(&gate, Arrival::new(SandboxListener::Credentials));
    let request = post("/anthropic/v1/messages", &auth, REQUEST_BODY);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = String::new();
    for number in 0..5 {
        let wanted = format!("{{\"n\":{number}}}\n\n");
        while !seen.contains(&wanted) {
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk);
            let count = tokio::time::timeout(Duration::from_secs(5), read)
                .await
                .unwrap()
                .unwrap();
            seen.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
        event_read.send(()).await.unwrap();
    }
}

#[tokio::test]
async fn credential_hosts_are_reachable_only_through_the_credential_port() {
    let mut testbed = GateTestbed::allowing(&["api.anthropic.com", "*.anthropic.com"]);
    let route = Route::anthropic_key(secret()).unwrap();
    let (gate, received) = start_provider(&mut testbed, route, OK_RESPONSE).await;
    let refused = crate::tls::open_tunnel(&gate, "api.anthropic.com:443")
        .await
        .unwrap_err();
    assert_eq!(header(&refused, "x-ralph-gate"), Some("credential-host"));
    assert_eq!(received.connections(), 0);
}
