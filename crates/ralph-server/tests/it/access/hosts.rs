//! Tests of the `Host` header, with bytes as a client may send them.

use http_body_util::Full;
use hyper::Method;

use crate::support::{TestServer, send_bytes, status_of};

/// Returns a request with these header lines.
fn request(server: &TestServer, target: &str, lines: &[String]) -> Vec<u8> {
    let token = &server.token;
    let mut text =
        format!("GET {target} HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_server_s_own_hosts_are_served() {
    let server = TestServer::start().await;
    let port = server.address.socket.port();
    let own = |name: &str| vec![format!("Host: {name}:{port}")];
    let path = "/api/v1/session";
    for lines in [
        own("127.0.0.1"),
        own("localhost"),
        own("LOCALHOST"),
        own("[::1]"),
    ] {
        let reply = send_bytes(&server, &request(&server, path, &lines)).await;
        assert_eq!(status_of(&reply), 200, "{lines:?}");
    }
    let two = vec![
        format!("Host: 127.0.0.1:{port}"),
        "Host: evil.com".to_owned(),
    ];
    let same_twice = vec![format!("Host: 127.0.0.1:{port}"); 2];
    for lines in [
        vec!["Host: evil.com".to_owned()],
        own("evil.com"),
        own("127.0.0.1.nip.io"),
        own("0.0.0.0"),
        own("127.1"),
        own("user@127.0.0.1"),
        vec!["Host: 127.0.0.1".to_owned()],
        vec!["Host: 127.0.0.1:1".to_owned()],
        vec!["Host: ".to_owned()],
        vec![],
        two,
        same_twice,
    ] {
        let reply = send_bytes(&server, &request(&server, path, &lines)).await;
        assert_eq!(status_of(&reply), 421, "{lines:?}: {reply}");
        assert!(reply.contains("urn:ralph:problem:foreign-host"), "{reply}");
    }
    let absolute = request(&server, "http://evil.com/api/v1/session", &own("127.0.0.1"));
    assert_eq!(status_of(&send_bytes(&server, &absolute).await), 421);
    let absolute = format!("http://127.0.0.1:{port}/api/v1/session");
    let absolute = request(&server, &absolute, &own("127.0.0.1"));
    assert_eq!(status_of(&send_bytes(&server, &absolute).await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_host_does_not_even_get_the_health() {
    let server = TestServer::start().await;
    let health = server.bare_request(Method::GET, "/health");
    let health = server.send(health.body(Full::default()).unwrap()).await;
    assert_eq!(health.expect(200).text(), r#"{"status":"ok"}"#);
    for path in ["/health", "/login", "/"] {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n");
        let reply = send_bytes(&server, bytes.as_bytes()).await;
        assert_eq!(status_of(&reply), 421, "{path}");
    }
}
