//! Tests of requests that are too large, too deep or too slow.

use std::fs;
use std::time::Duration;

use http_body_util::Full;
use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{TestServer, WAIT_TIMEOUT, send_bytes, status_of};

const MEBIBYTE: usize = 1 << 20;

/// Returns the resident memory of this process, which the server shares, in bytes.
fn resident_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes << 10
}

/// Sends a body of zeros piece by piece and returns the response.
async fn send_zeros(server: &TestServer, head: &str, pieces: usize, chunked: bool) -> String {
    let mut stream = TcpStream::connect(server.address.socket).await.unwrap();
    let host = server.address.socket;
    let head = format!("{head}Host: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b'0'; MEBIBYTE];
    for _ in 0..pieces {
        if chunked {
            stream.write_all(b"100000\r\n").await.unwrap();
        }
        stream.write_all(&piece).await.unwrap();
        if chunked {
            stream.write_all(b"\r\n").await.unwrap();
        }
    }
    if chunked {
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    }
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_hundred_mebibytes_is_refused_without_storing_it() {
    let server = TestServer::start().await;
    server.get("/api/v1/runs").await.expect(200);
    let before = resident_memory();
    let token = format!("Authorization: Bearer {}\r\n", server.token);
    for (credential, expected) in [(&*token, 413), ("", 401)] {
        for chunked in [false, true] {
            let length = if chunked {
                "Transfer-Encoding: chunked\r\n".to_owned()
            } else {
                format!("Content-Length: {}\r\n", 100 * MEBIBYTE)
            };
            let head = format!(
                "POST /api/v1/runs HTTP/1.1\r\nContent-Type: application/json\r\n{credential}{length}"
            );
            let reply = send_zeros(&server, &head, 100, chunked);
            let reply = timeout(WAIT_TIMEOUT, reply).await.unwrap();
            assert_eq!(status_of(&reply), expected, "{reply}");
            assert!(reply.contains("application/problem+json"), "{reply}");
        }
    }
    let grown = resident_memory().saturating_sub(before);
    assert!(grown < 40 * MEBIBYTE, "memory grew by {grown} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_heads_and_deep_bodies_are_refused() {
    let server = TestServer::start().await;
    let host = server.address.socket;
    let token = &server.token;
    let get = |target: &str, headers: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{headers}\r\n"
        )
    };
    let large = format!("X-Large: {}\r\n", "x".repeat(64 << 10));
    let larger = format!("X-Large: {}\r\n", "x".repeat(300 << 10));
    let many = "X-Many: x\r\n".repeat(150);
    let parameters = format!("/api/v1/runs?{}", "a=1&".repeat(10_000));
    for (request, status) in [
        (get("/api/v1/runs", &large), 431),
        (get("/api/v1/runs", &larger), 431),
        (get("/api/v1/runs", &many), 431),
        (get(&parameters, ""), 414),
        (get("/api/v1/runs", &"x".repeat(60)), 400),
    ] {
        let reply = send_bytes(&server, request.as_bytes()).await;
        assert_eq!(status_of(&reply), status, "{reply}");
    }
    for deep in [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", "{\"minutes\":".repeat(10_000), "}".repeat(10_000)),
        format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)),
    ] {
        let request = server.request(Method::POST, "/api/v1/shares");
        let request = request.header("content-type", "application/json");
        let reply = server.send(request.body(Full::from(deep)).unwrap()).await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 422),
            "{}",
            reply.text()
        );
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    server.get("/api/v1/runs").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_no_headers_are_disconnected() {
    let server = TestServer::start().await;
    let mut idle = Vec::new();
    for start in ["", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let mut stream = TcpStream::connect(server.address.socket).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    // Slow clients do not delay others.
    server.get("/api/v1/runs").await.expect(200);
    for mut stream in idle {
        let mut rest = Vec::new();
        let closed = timeout(Duration::from_mins(3), stream.read_to_end(&mut rest)).await;
        closed.expect("the server closes the connection").unwrap();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}
