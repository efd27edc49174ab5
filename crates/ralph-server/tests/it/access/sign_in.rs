//! Tests of signing in and out: tokens, login links, sessions.

use http_body_util::Full;
use hyper::Method;
use hyper::header::COOKIE;

use crate::support::{TestServer, TestStream, path_of, session_cookie};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_with_the_token_and_finishes() {
    let server = TestServer::start().await;
    let run = server.start_run().await;
    let details = server.wait_for_status(&run, "succeeded").await;
    assert_eq!(details["task_id"], "task");
    assert!(server.project.home().join("server.json").exists());
    let project = server.stop().await;
    assert!(!project.home().join("server.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_link_works_once_and_its_cookie_until_the_browser_signs_out() {
    let server = TestServer::start().await;
    let link = path_of(&server.login_link).to_owned();
    let login = || server.bare_request(Method::GET, &link);
    let page = login()
        .header("accept", "text/html")
        .body(Full::default())
        .unwrap();
    let page = server.send(page).await.expect(200);
    assert!(
        page.text()
            .contains("<form method=\"post\" action=\"login\">")
    );
    assert!(page.header("set-cookie").is_empty());
    let code = link.split_once("code=").unwrap().1.to_owned();
    let form = || {
        server
            .bare_request(Method::POST, "/login")
            .header("accept", "text/html")
            .header("origin", "null")
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::from(format!("code={code}")))
            .unwrap()
    };
    let signed_in = server.send(form()).await.expect(303);
    assert_eq!(signed_in.header("location"), "/");
    let cookie = session_cookie(&signed_in);
    server.send(form()).await.expect(401);

    let with_cookie = |method, path: &str| {
        let request = server.bare_request(method, path);
        request.header(COOKIE, &cookie)
    };
    let session = with_cookie(Method::GET, "/api/v1/session");
    let session = server.send(session.body(Full::default()).unwrap()).await;
    assert_eq!(session.expect(200).json()["scope"], "full");
    let sign_out = || with_cookie(Method::DELETE, "/api/v1/session");
    let no_header = sign_out().body(Full::default()).unwrap();
    let refused = server.send(no_header).await.expect(403).json();
    assert_eq!(refused["type"], "urn:ralph:problem:missing-csrf-header");
    let sign_out = sign_out().header("x-ralph-csrf", "1").body(Full::default());
    server.send(sign_out.unwrap()).await.expect(204);
    let session = with_cookie(Method::GET, "/api/v1/session");
    let session = server.send(session.body(Full::default()).unwrap()).await;
    session.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_closes_the_streams_of_the_session_only() {
    let server = TestServer::start().await;
    let link = server.bare_request(Method::GET, path_of(&server.login_link));
    let signed_in = server.send(link.body(Full::default()).unwrap()).await;
    let cookie = session_cookie(&signed_in.expect(303));
    let bearer = format!("Bearer {}", server.token);
    let mut streams = Vec::new();
    for credential in [("cookie", &*cookie), ("authorization", &bearer)] {
        let mut stream = TestStream::open(&server, "/api/v1/events", credential).await;
        assert_eq!(stream.next().await.unwrap()["type"], "hello");
        streams.push(stream);
    }
    let sign_out = server.bare_request(Method::DELETE, "/api/v1/session");
    let sign_out = sign_out.header(COOKIE, &cookie).header("x-ralph-csrf", "1");
    let sign_out = sign_out.body(Full::default()).unwrap();
    server.send(sign_out).await.expect(204);
    assert_eq!(streams[0].close_code().await, 4001);
    let mut refused = TestStream::open(&server, "/api/v1/events", ("cookie", &cookie)).await;
    assert_eq!(refused.next().await, Err(4001));
    let run = server.start_run().await;
    assert_eq!(streams[1].next().await.unwrap()["run"], run);
    server.stop().await;
    assert_eq!(streams[1].close_code().await, 1001);
}
