//! Tests of all responses: headers, and problems instead of plain errors.

use http_body_util::Full;
use hyper::Method;
use serde_json::{Value, json};

use crate::support::{HttpReply, TestServer, path_of, session_cookie};

#[track_caller]
fn assert_headers(reply: &HttpReply, what: &str) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(reply.header(name), value, "{what}: {name}");
    }
    let policy = reply.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{what}: {policy}");
    assert!(
        policy.contains("frame-ancestors 'none'"),
        "{what}: {policy}"
    );
    assert!(!policy.contains("unsafe"), "{what}: {policy}");
    assert_eq!(reply.header("x-request-id").len(), 11, "{what}");
    assert!(reply.header("server").is_empty(), "{what}");
    if !reply.body.is_empty() {
        assert!(!reply.header("content-type").is_empty(), "{what}");
    }
}

#[track_caller]
fn assert_problem(reply: &HttpReply, server: &TestServer, what: &str) {
    assert_headers(reply, what);
    assert_eq!(
        reply.header("content-type"),
        "application/problem+json",
        "{what}"
    );
    let problem = reply.json();
    for name in ["type", "title", "detail"] {
        let text = problem[name].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{what}: {name}: {problem}");
    }
    assert_eq!(problem["status"], reply.status.as_u16(), "{what}");
    assert_eq!(
        problem["request_id"],
        reply.header("x-request-id"),
        "{what}"
    );
    let text = reply.text();
    let home = server.project.home();
    for internal in [
        home.to_str().unwrap(),
        &server.token,
        "panicked",
        ".rs:",
        "/src/",
        "SELECT",
        "sqlx",
    ] {
        assert!(!text.contains(internal), "{what}: {internal}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_is_a_problem_with_the_id_of_its_request() {
    let server = TestServer::start().await;
    let damaged = server.project.run_dir("260101-000000-0001");
    std::fs::create_dir_all(&damaged).unwrap();
    std::fs::write(damaged.join("journal.jsonl"), "{\n{\n").unwrap();
    let body = json!({"minutes": 5}).to_string();
    for (method, path, kind, body, status) in [
        (Method::GET, "/nothing", "", "", 404),
        (Method::GET, "/api/v1/nothing", "", "", 404),
        (Method::DELETE, "/health", "", "", 401),
        (Method::PATCH, "/api/v1/runs", "", "", 405),
        (Method::TRACE, "/api/v1/runs", "", "", 405),
        (Method::POST, "/api/v1/shares", "text/plain", &*body, 415),
        (Method::POST, "/api/v1/shares", "", &*body, 415),
        (Method::POST, "/api/v1/shares", "application/json", "{", 400),
        (
            Method::POST,
            "/api/v1/shares",
            "application/json",
            "{\"minutes\":\"x\"}",
            422,
        ),
        (
            Method::POST,
            "/api/v1/shares",
            "application/json",
            "[5]",
            422,
        ),
        (Method::GET, "/api/v1/runs?nothing=1", "", "", 400),
        (Method::GET, "/api/v1/runs?limit=x", "", "", 400),
        (Method::GET, "/login", "", "", 400),
        (Method::GET, "/login?code=wrong", "", "", 401),
        (Method::POST, "/login", "text/plain", "code=wrong", 415),
        (Method::PUT, "/login", "", "", 405),
    ] {
        let what = format!("{method} {path} {kind} {body}");
        let mut request = server.request(method.clone(), path);
        if path == "/health" {
            request = server.bare_request(method, path);
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let reply = server
            .send(request.body(Full::from(body.to_owned())).unwrap())
            .await;
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        assert_problem(&reply, &server, &what);
    }
    let reply = server.get("/api/v1/runs/260101-000000-0001").await;
    assert!(reply.status.is_client_error() || reply.status.is_server_error());
    assert_problem(&reply, &server, "damaged run");
    let not_allowed = server.request(Method::PATCH, "/api/v1/shares");
    let not_allowed = server
        .send(not_allowed.body(Full::default()).unwrap())
        .await;
    assert_eq!(not_allowed.header("allow"), "GET,HEAD,POST");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_protects_the_browser() {
    let server = TestServer::start().await;
    for path in [
        "/health",
        "/",
        "/api/v1/runs",
        "/api/v1/openapi.json",
        "/api/v1/session",
        "/api/v1/shares",
    ] {
        assert_headers(&server.get(path).await.expect(200), path);
    }
    let bare = server.bare_request(Method::GET, "/api/v1/runs");
    let bare = server.send(bare.body(Full::default()).unwrap()).await;
    assert_headers(&bare.expect(401), "401");
    let link = path_of(&server.login_link).to_owned();
    let page = server
        .bare_request(Method::GET, &link)
        .header("accept", "text/html");
    let page = server.send(page.body(Full::default()).unwrap()).await;
    let page = page.expect(200);
    assert_headers(&page, "login page");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
    assert!(policy.contains("form-action 'self'"), "{policy}");
    let sign_in = server.bare_request(Method::GET, &link);
    let signed_in = server.send(sign_in.body(Full::default()).unwrap()).await;
    let signed_in = signed_in.expect(303);
    assert_headers(&signed_in, "sign-in");
    let attributes = signed_in.header("set-cookie").to_owned();
    let attributes = attributes.split_once("; Max-Age=").unwrap().1;
    let attributes = attributes.split_once("; ").unwrap().1;
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert_eq!(
        session_cookie(&signed_in).len(),
        "ralph_session=".len() + 43
    );
    let used = server
        .bare_request(Method::POST, "/login")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    let code = link.split_once('?').unwrap().1.to_owned();
    let used = server.send(used.body(Full::from(code)).unwrap()).await;
    let used = used.expect(401);
    assert_page(&used, "This link is not valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_a_session_gets_a_page_that_says_how_to_sign_in() {
    let server = TestServer::start().await;
    let open = async |path: &str, accept: &str| {
        let request = server.bare_request(Method::GET, path);
        let request = request.header("accept", accept);
        let reply = server.send(request.body(Full::default()).unwrap()).await;
        reply.expect(401)
    };
    let of_browsers = "text/html,application/xhtml+xml,*/*;q=0.8";
    for path in ["/", "/runs/x/overview", "/nothing"] {
        assert_page(&open(path, of_browsers).await, "Sign in to ralph");
        assert_problem(&open(path, "*/*").await, &server, path);
    }
    for path in ["/api/v1/runs", "/api", "/metrics"] {
        assert_problem(&open(path, of_browsers).await, &server, path);
    }
    let head = server.bare_request(Method::HEAD, "/");
    let head = head.header("accept", of_browsers).body(Full::default());
    let head = server.send(head.unwrap()).await.expect(401);
    assert_eq!(head.body.len(), 0);
    let form = server.bare_request(Method::POST, "/");
    let form = form.header("accept", of_browsers).body(Full::default());
    let form = server.send(form.unwrap()).await.expect(401);
    assert_problem(&form, &server, "POST /");
}

/// Asserts a page for a browser that is not signed in.
#[track_caller]
fn assert_page(reply: &HttpReply, title: &str) {
    assert_headers(reply, title);
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(reply.header("www-authenticate"), "Bearer realm=\"ralph\"");
    assert!(reply.header("set-cookie").is_empty());
    let policy = reply.header("content-security-policy");
    assert!(policy.contains("style-src 'sha256-"), "{policy}");
    assert!(policy.contains("script-src 'none'"), "{policy}");
    let text = reply.text();
    for part in [&*format!("<h1>{title}</h1>"), "ralph serve --login"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_resource_has_no_body() {
    let server = TestServer::start().await;
    for (path, status) in [("/api/v1/runs", 200), ("/api/v1/nothing", 404)] {
        let head = server.request(Method::HEAD, path);
        let head = server.send(head.body(Full::default()).unwrap()).await;
        assert_eq!(
            (head.status.as_u16(), head.body.len()),
            (status, 0),
            "{path}"
        );
        assert_headers(&head, path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_refused() {
    let server = TestServer::start().await;
    for (name, value) in [
        ("status", json!("succeeded")),
        ("cost_usd", json!(0)),
        ("iteration", json!(1)),
        ("owner", json!("me")),
        ("id", json!("x")),
    ] {
        let mut run: Value = server.project.new_run();
        run[name] = value;
        let reply = server.post("/api/v1/runs", &run).await.expect(422);
        assert!(reply.text().contains(name), "{}", reply.text());
        assert_problem(&reply, &server, name);
    }
    assert_eq!(server.get("/api/v1/runs").await.json()["runs"], json!([]));
}
