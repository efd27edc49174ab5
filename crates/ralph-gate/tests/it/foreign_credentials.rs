//! Credentials of commands do not leave the sandbox in requests that the gate can read.

use ralph_core::net::Allowlist;
use ralph_gate::SandboxListener;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{GateTestbed, body, header, send, status};
use crate::tls::{connect_tls, open_tunnel};

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nset-cookie: session=1\r\ncontent-length: 2\r\n\r\nok";

/// Requests with a credential: method, path and header.
const ATTEMPTS: [(&str, &str, &str); 8] = [
    ("GET", "/", "Authorization: Bearer attacker"),
    ("GET", "/", "authorization: token attacker"),
    ("PUT", "/", "Cookie: session=attacker"),
    ("POST", "/", "X-Api-Key: attacker"),
    ("GET", "/", "PRIVATE-TOKEN: attacker"),
    ("GET", "/?a=b&access_token=attacker", "X-A: b"),
    ("GET", "/?api%5Fkey=attacker", "X-A: b"),
    ("PUT", "/?X-Amz-Signature=attacker", "X-A: b"),
];

#[tokio::test]
async fn a_foreign_credential_is_refused_in_plain_http() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    let received = testbed.start_host("allowed.example:80", RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    for (method, path, field) in ATTEMPTS {
        let request = format!(
            "{method} http://allowed.example{path} HTTP/1.1\r\nHost: allowed.example\r\n{field}\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let response = send(&gate, SandboxListener::Proxy, request).await;
        assert_eq!(status(&response), 403, "{field} {path}");
        assert_eq!(
            header(&response, "x-ralph-gate"),
            Some("foreign-credential")
        );
    }
    let user = "GET http://me:attacker@allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\
                Connection: close\r\n\r\n";
    let response = send(&gate, SandboxListener::Proxy, user).await;
    assert_eq!(
        header(&response, "x-ralph-gate"),
        Some("foreign-credential")
    );
    assert_eq!(received.text(), "", "nothing was sent");
    let audits = testbed.sink.audits.lock().unwrap();
    let detail = audits[0].detail.as_deref();
    assert_eq!(detail, Some("the header `authorization`"));
}

#[tokio::test]
async fn requests_without_a_credential_pass_and_cookies_are_removed() {
    let mut testbed = GateTestbed::allowing(&["allowed.example"]);
    let received = testbed.start_host("allowed.example:80", RESPONSE).await;
    let (gate, _) = testbed.build_gate();
    let request = "GET http://allowed.example/simple/?page=2 HTTP/1.1\r\nHost: allowed.example\r\n\
                   User-Agent: pip/25\r\nConnection: close\r\n\r\n";
    let response = send(&gate, SandboxListener::Proxy, request).await;
    assert_eq!((status(&response), body(&response)), (200, "ok"));
    assert_eq!(header(&response, "set-cookie"), None);
    assert!(received.text().contains("pip/25"));
}

#[tokio::test]
async fn a_foreign_credential_is_refused_in_inspected_tls() {
    let mut testbed = GateTestbed::allowing(&["front.example"]);
    testbed.inspect = Allowlist::parse(["front.example"]).unwrap();
    let received = testbed
        .start_tls_host("front.example:443", "front.example", RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let mut gate_roots = RootCertStore::empty();
    let pem = gate.certificate_pem().as_bytes();
    gate_roots
        .add(CertificateDer::from_pem_slice(pem).unwrap())
        .unwrap();
    for (method, path, field) in ATTEMPTS {
        let stream = open_tunnel(&gate, "front.example:443").await.unwrap();
        let mut stream = connect_tls(stream, gate_roots.clone(), "front.example")
            .await
            .unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: front.example\r\n{field}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // The other side may close the connection without a TLS alert.
        drop(stream.read_to_end(&mut response).await);
        let response = String::from_utf8(response).unwrap();
        assert_eq!(
            header(&response, "x-ralph-gate"),
            Some("foreign-credential")
        );
    }
    assert_eq!(received.text(), "", "nothing was sent");
}
