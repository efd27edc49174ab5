//! Tests of share links.

use http_body_util::Full;
use hyper::Method;
use hyper::header::COOKIE;
use serde_json::json;

use crate::support::{HttpReply, TestServer, TestStream, path_of, session_cookie};

async fn with_cookie(server: &TestServer, method: Method, path: &str, cookie: &str) -> HttpReply {
    let request = server.bare_request(method, path);
    let request = request.header(COOKIE, cookie).header("x-ralph-csrf", "1");
    server.send(request.body(Full::default()).unwrap()).await
}

async fn open(server: &TestServer, url: &str) -> HttpReply {
    let request = server.bare_request(Method::GET, path_of(url));
    server.send(request.body(Full::default()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_link_works_once_for_reading_and_until_it_is_revoked() {
    let server = TestServer::start().await;
    let share = server.post("/api/v1/shares", &json!({"minutes": 5})).await;
    let share = share.expect(201).json();
    let url = share["url"].as_str().unwrap();
    let cookie = session_cookie(&open(&server, url).await.expect(303));
    open(&server, url).await.expect(401);

    let runs = with_cookie(&server, Method::GET, "/api/v1/runs", &cookie).await;
    runs.expect(200);
    let session = with_cookie(&server, Method::GET, "/api/v1/session", &cookie).await;
    let session = session.expect(200).json();
    assert_eq!(session["scope"], "read");
    assert_eq!(session["expires_at"], share["expires_at"]);
    for (method, path) in [
        (Method::POST, "/api/v1/runs"),
        (Method::POST, "/api/v1/login-links"),
        (Method::POST, "/api/v1/token"),
        (Method::POST, "/api/v1/shares"),
        (Method::DELETE, "/api/v1/runs/x"),
        (Method::PUT, "/api/v1/runs/x/mode"),
        (Method::GET, "/api/v1/shares"),
    ] {
        let reply = with_cookie(&server, method, path, &cookie)
            .await
            .expect(403);
        assert_eq!(
            reply.json()["type"],
            "urn:ralph:problem:read-only",
            "{path}"
        );
    }

    let listed = server.get("/api/v1/shares").await.json();
    assert_eq!(listed["shares"][0]["id"], share["id"]);
    assert!(listed["shares"][0]["used_at"].is_string());
    assert!(listed["shares"][0].get("url").is_none());
    let path = format!("/api/v1/shares/{}", share["id"].as_str().unwrap());
    server.delete(&path).await.expect(204);
    server.delete(&path).await.expect(404);
    let runs = with_cookie(&server, Method::GET, "/api/v1/runs", &cookie).await;
    runs.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_link_can_be_revoked_and_lives_for_an_hour_at_most() {
    let server = TestServer::start().await;
    let share = server
        .post("/api/v1/shares", &json!({}))
        .await
        .expect(201)
        .json();
    let time = |name: &str| {
        share[name]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    let lifetime = time("expires_at").duration_since(time("created_at"));
    assert_eq!(lifetime.as_mins(), 60);
    let path = format!("/api/v1/shares/{}", share["id"].as_str().unwrap());
    server.delete(&path).await.expect(204);
    open(&server, share["url"].as_str().unwrap())
        .await
        .expect(401);
    for body in [
        json!({"minutes": 0}),
        json!({"minutes": 61}),
        json!({"minutes": 256}),
        json!({"minutes": "5"}),
        json!({"minutes": 5, "scope": "full"}),
        json!([]),
    ] {
        server.post("/api/v1/shares", &body).await.expect(422);
    }
    for _ in 0..32 {
        server.post("/api/v1/shares", &json!({})).await.expect(201);
    }
    server.post("/api/v1/shares", &json!({})).await.expect(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_streams_of_a_revoked_link_are_closed() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    let share = server.post("/api/v1/shares", &json!({})).await;
    let share = share.expect(201).json();
    let url = share["url"].as_str().unwrap();
    let cookie = session_cookie(&open(&server, url).await.expect(303));
    let path = format!("/api/v1/runs/{run}/events");
    let mut streams = Vec::new();
    for path in ["/api/v1/events", &path] {
        let mut stream = TestStream::open(&server, path, ("cookie", &cookie)).await;
        assert_eq!(stream.next().await.unwrap()["type"], "hello");
        streams.push(stream);
    }
    let path = format!("/api/v1/shares/{}", share["id"].as_str().unwrap());
    server.delete(&path).await.expect(204);
    for stream in &mut streams {
        assert_eq!(stream.close_code().await, 4001);
    }
}
