//! Tests of requests as browsers send them for pages of another origin.

use http_body_util::Full;
use hyper::header::COOKIE;
use hyper::{Method, Request};

use crate::support::{HttpReply, TestServer, path_of, session_cookie};

/// Signs in and returns the cookie.
async fn sign_in(server: &TestServer) -> String {
    let request = server.bare_request(Method::GET, path_of(&server.login_link));
    let reply = server.send(request.body(Full::default()).unwrap()).await;
    session_cookie(&reply.expect(303))
}

async fn send(
    server: &TestServer,
    request: hyper::http::request::Builder,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpReply {
    let add = |request: hyper::http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    let request = headers.iter().fold(request, add);
    server
        .send(request.body(Full::from(body.to_owned())).unwrap())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_of_foreign_origins_are_refused_before_the_upgrade() {
    let server = TestServer::start().await;
    let cookie = sign_in(&server).await;
    let bearer = format!("Bearer {}", server.token);
    let own = format!("http://{}", server.address.socket);
    let handshake = |path: &str| {
        let request: hyper::http::request::Builder = Request::builder().uri(path);
        request
            .header("host", server.address.socket.to_string())
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    for path in ["/api/v1/events", "/api/v1/runs/x/events"] {
        for origin in [
            "http://evil",
            "null",
            "https://127.0.0.1",
            "http://localhost:1",
            "",
        ] {
            for credential in [("cookie", &*cookie), ("authorization", &*bearer)] {
                let headers = [credential, ("origin", origin)];
                let reply = send(&server, handshake(path), &headers, "")
                    .await
                    .expect(403);
                let problem = reply.json();
                assert_eq!(
                    problem["type"], "urn:ralph:problem:foreign-origin",
                    "{origin}"
                );
                assert!(reply.header("sec-websocket-accept").is_empty());
            }
        }
        // A browser always names the origin of a WebSocket.
        let no_origin = [("cookie", &*cookie)];
        send(&server, handshake(path), &no_origin, "")
            .await
            .expect(403);
        // Browsers cannot read the status of a refused handshake, so the stream is closed with a code.
        let no_credential = [("origin", &*own)];
        send(&server, handshake(path), &no_credential, "")
            .await
            .expect(101);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_and_requests_of_other_sites_change_nothing() {
    let server = TestServer::start().await;
    let cookie = sign_in(&server).await;
    let body = server.project.new_run().to_string();
    let paths = [
        "/api/v1/runs",
        "/api/v1/login-links",
        "/api/v1/token",
        "/api/v1/shares",
    ];
    for path in paths {
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json",
        ] {
            for origin in [
                &[("origin", "http://evil.example")][..],
                &[("origin", "null")],
                &[
                    ("origin", "http://localhost:3000"),
                    ("sec-fetch-site", "same-site"),
                ],
                &[("sec-fetch-site", "cross-site"), ("x-ralph-csrf", "1")],
                &[("sec-fetch-site", "same-site"), ("x-ralph-csrf", "1")],
                &[],
                &[("x-ralph-csrf", "")],
            ] {
                let headers =
                    [&[("cookie", &*cookie), ("content-type", kind)][..], origin].concat();
                let request = server.bare_request(Method::POST, path);
                let reply = send(&server, request, &headers, &body).await;
                assert_eq!(reply.status, 403, "{path} {headers:?}: {}", reply.text());
            }
        }
    }
    assert_eq!(
        server.get("/api/v1/runs").await.json()["runs"],
        serde_json::json!([])
    );
    assert_eq!(
        server.get("/api/v1/shares").await.json()["shares"],
        serde_json::json!([])
    );
    let own = format!("http://{}", server.address.socket);
    let headers = [
        ("cookie", &*cookie),
        ("origin", &*own),
        ("sec-fetch-site", "same-origin"),
        ("x-ralph-csrf", "1"),
        ("content-type", "application/json"),
    ];
    let request = server.bare_request(Method::POST, "/api/v1/shares");
    send(&server, request, &headers, "{}").await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_cannot_read_and_get_no_cors_headers() {
    let server = TestServer::start().await;
    let cookie = sign_in(&server).await;
    for path in ["/api/v1/runs", "/health", "/login", "/", "/nothing"] {
        for origin in ["http://evil.example", "null", "http://localhost:3000"] {
            let preflight = [
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "x-ralph-csrf"),
            ];
            let request = server.bare_request(Method::OPTIONS, path);
            let reply = send(&server, request, &preflight, "").await.expect(403);
            assert_no_cors(&reply);
            let read = [("origin", origin), ("cookie", &*cookie)];
            let request = server.bare_request(Method::GET, path);
            assert_no_cors(&send(&server, request, &read, "").await.expect(403));
        }
    }
    for site in ["cross-site", "same-site"] {
        let no_cors = [
            ("cookie", &*cookie),
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "no-cors"),
        ];
        let request = server.bare_request(Method::GET, "/api/v1/runs");
        send(&server, request, &no_cors, "").await.expect(403);
        let navigation = [
            ("cookie", &*cookie),
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "navigate"),
        ];
        let request = server.bare_request(Method::GET, "/");
        send(&server, request, &navigation, "").await.expect(200);
    }
    // An origin of the server itself gets no header either: its pages need none.
    let own = format!("http://{}", server.address.socket);
    let request = server.bare_request(Method::GET, "/api/v1/runs");
    let headers = [("origin", &*own), (COOKIE.as_str(), &*cookie)];
    assert_no_cors(&send(&server, request, &headers, "").await.expect(200));
}

#[track_caller]
fn assert_no_cors(reply: &HttpReply) {
    let names = reply.headers.keys();
    let cors: Vec<_> = names
        .filter(|name| name.as_str().starts_with("access-control"))
        .collect();
    assert_eq!(cors, Vec::<&hyper::header::HeaderName>::new());
}
