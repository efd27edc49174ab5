//! Tests of the token of programs.

use http_body_util::Full;
use hyper::Method;
use ralph_core::secret::Secret;
use ralph_server::ServeOptions;
use serde_json::Value;

use crate::support::{HttpReply, TestProject, TestServer};

async fn with_token(server: &TestServer, token: &str) -> HttpReply {
    let request = server.bare_request(Method::GET, "/api/v1/session");
    let request = request.header("authorization", format!("Bearer {token}"));
    server.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down_and_does_not_lock_out_the_user() {
    let server = TestServer::start().await;
    for _ in 0..10 {
        with_token(&server, "wrong").await.expect(401);
    }
    let refused = with_token(&server, "wrong").await.expect(429);
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(
        refused.json()["type"],
        "urn:ralph:problem:too-many-failures"
    );
    let code = server.bare_request(Method::POST, "/login");
    let code = code.header("content-type", "application/x-www-form-urlencoded");
    server
        .send(code.body(Full::from("code=wrong")).unwrap())
        .await
        .expect(429);
    with_token(&server, &server.token).await.expect(200);
    // A request without a credential guesses nothing.
    let bare = server.bare_request(Method::GET, "/api/v1/session");
    server
        .send(bare.body(Full::default()).unwrap())
        .await
        .expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_of_the_credential_are_refused() {
    let server = TestServer::start().await;
    let token = server.token.clone();
    for authorization in [
        format!("Basic {token}"),
        format!("Bearer {token}x"),
        format!("Bearer {}", &token[1..]),
        format!("Bearer{token}"),
        "Bearer".to_owned(),
        token.clone(),
    ] {
        let request = server.bare_request(Method::GET, "/api/v1/session");
        let request = request.header("authorization", &authorization);
        let reply = server.send(request.body(Full::default()).unwrap()).await;
        let reply = reply.expect(401);
        assert_eq!(reply.header("www-authenticate"), "Bearer realm=\"ralph\"");
        assert!(!reply.text().contains(&token));
    }
    let in_query = format!("/api/v1/session?token={token}");
    let in_query = server.bare_request(Method::GET, &in_query);
    server
        .send(in_query.body(Full::default()).unwrap())
        .await
        .expect(401);
    let lower_case = server.bare_request(Method::GET, "/api/v1/session");
    let lower_case = lower_case.header("authorization", format!("bearer {token}"));
    server
        .send(lower_case.body(Full::default()).unwrap())
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_token_is_invalid_at_once_and_the_new_one_is_in_the_file() {
    let server = TestServer::start().await;
    let record = server.project.home().join("server.json");
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&record).unwrap()).unwrap();
    assert_eq!(read()["token"], server.token);
    assert_eq!(read()["url"], server.address.local_url);
    assert_eq!(read()["pid"], std::process::id());
    server.post("/api/v1/token", &Value::Null).await.expect(204);
    with_token(&server, &server.token).await.expect(401);
    let token = read()["token"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), server.token.len());
    with_token(&server, &token).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_user_is_used_and_not_replaced() {
    let token = "0123456789abcdef0123456789abcdef";
    let mut options = ServeOptions::local(0, 2);
    options.token = Some(Secret::new(token.into()));
    let server = TestServer::start_with(TestProject::new(), options).await;
    with_token(&server, token).await.expect(200);
    let problem = server.post("/api/v1/token", &Value::Null).await.expect(409);
    assert_eq!(problem.json()["type"], "urn:ralph:problem:fixed-token");
    with_token(&server, token).await.expect(200);
}
