//! TLS: forwarded if it is for the right host, terminated for inspected hosts.

use std::sync::Arc;

use ralph_core::net::Allowlist;
use ralph_gate::{Arrival, Gate, SandboxListener};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{GateTestbed, OK_RESPONSE, body, connect, header, status};

/// Opens TLS for a name over a stream.
pub(crate) async fn connect_tls(
    stream: DuplexStream,
    roots: RootCertStore,
    sni: &str,
) -> std::io::Result<TlsStream<DuplexStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Opens TLS for a name over a stream and requests a host in it.
pub(crate) async fn https_get(
    stream: DuplexStream,
    roots: RootCertStore,
    sni: &str,
    host: &str,
) -> std::io::Result<String> {
    let mut stream = connect_tls(stream, roots, sni).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    // The hosts of these tests keep the connection open; their responses end with `ok` or a line feed.
    let mut chunk = [0; 4096];
    while !response.ends_with(b"ok") && !response.ends_with(b"\n") {
        match stream.read(&mut chunk).await? {
            0 => break,
            count => response.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(String::from_utf8(response).unwrap())
}

/// Opens a tunnel through the proxy.
pub(crate) async fn open_tunnel(gate: &Gate, authority: &str) -> Result<DuplexStream, String> {
    let mut stream = connect(gate, Arrival::new(SandboxListener::Proxy));
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(head).unwrap();
    if status(&head) == 200 {
        Ok(stream)
    } else {
        Err(head)
    }
}

#[tokio::test]
async fn tunnels_forward_tls_for_their_host_only() {
    let mut testbed = GateTestbed::allowing(&["allowed.example", "other.example"]);
    let received = testbed
        .start_tls_host("allowed.example:443", "allowed.example", OK_RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let stream = open_tunnel(&gate, "allowed.example:443").await.unwrap();
    let response = https_get(
        stream,
        testbed.roots(),
        "allowed.example",
        "allowed.example",
    )
    .await
    .unwrap();
    assert_eq!((status(&response), body(&response)), (200, "ok"));
    assert_eq!(received.connections(), 1);

    let stream = open_tunnel(&gate, "allowed.example:443").await.unwrap();
    let error = https_get(stream, testbed.roots(), "other.example", "other.example")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
    let refused = open_tunnel(&gate, "evil.example:443").await.unwrap_err();
    assert_eq!(status(&refused), 403);
    assert_eq!(
        header(&refused, "x-ralph-gate"),
        Some("blocked-by-allowlist")
    );
    let mut decisions = testbed.sink.wait_for_decisions(3).await;
    decisions.sort();
    assert_eq!(
        decisions,
        [
            "proxy allowed.example:443 + listed policy",
            "proxy allowed.example:443 - name-mismatch gate",
            "proxy evil.example:443 - blocked-by-allowlist policy",
        ]
    );
    let audits = testbed.sink.audits.lock().unwrap();
    let forwarded = audits
        .iter()
        .find(|audit| audit.decision.is_allowed())
        .unwrap();
    assert!(
        forwarded.bytes_out > 200 && forwarded.bytes_in > 200,
        "{forwarded:?}"
    );
}

#[tokio::test]
async fn tls_to_a_mapped_address_must_be_for_its_name() {
    let mut testbed = GateTestbed::allowing(&["a.example", "b.example"]);
    let received_a = testbed
        .start_tls_host("a.example:443", "a.example", OK_RESPONSE)
        .await;
    let received_b = testbed
        .start_tls_host("b.example:443", "b.example", OK_RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let address = gate.address_of(&"a.example".to_owned().try_into().unwrap(), 443);
    let at_a = Arrival::with_address(SandboxListener::Https, address);
    let unassigned =
        Arrival::with_address(SandboxListener::Https, "127.1.9.9:443".parse().unwrap());
    let unknown = Arrival::new(SandboxListener::Https);
    for (arrival, name, is_accepted) in [
        (at_a, "a.example", true),
        (at_a, "b.example", false),
        // An IP address is not a valid server name.
        (at_a, "127.0.0.1", false),
        (unassigned, "a.example", false),
        (unknown, "evil.example", false),
    ] {
        let response = https_get(connect(&gate, arrival), testbed.roots(), name, name).await;
        assert_eq!(response.is_ok(), is_accepted, "{name}");
    }
    let mut decisions = testbed.sink.wait_for_decisions(5).await;
    decisions.sort();
    assert_eq!(
        decisions,
        [
            "https 127.1.9.9:443 - name-mismatch gate",
            "https a.example:443 + listed policy",
            "https a.example:443 - no-server-name gate",
            "https b.example:443 - name-mismatch gate",
            "https evil.example:443 - blocked-by-allowlist policy",
        ]
    );
    assert_eq!((received_a.connections(), received_b.connections()), (1, 0));
}

#[tokio::test]
async fn inspected_tls_carries_requests_for_its_host_only() {
    let mut testbed = GateTestbed::allowing(&["front.example", "plain.example"]);
    testbed.inspect = Allowlist::parse(["front.example"]).unwrap();
    let received = testbed
        .start_tls_host("front.example:443", "front.example", OK_RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let mut gate_roots = RootCertStore::empty();
    let pem = gate.certificate_pem().as_bytes();
    gate_roots
        .add(CertificateDer::from_pem_slice(pem).unwrap())
        .unwrap();
    for through_proxy in [true, false] {
        for (host, code, reason) in [
            ("front.example", 200, None),
            ("hidden.example", 403, Some("name-mismatch")),
        ] {
            let stream = if through_proxy {
                open_tunnel(&gate, "front.example:443").await.unwrap()
            } else {
                connect(&gate, Arrival::new(SandboxListener::Https))
            };
            let response = https_get(stream, gate_roots.clone(), "front.example", host)
                .await
                .unwrap();
            assert_eq!(status(&response), code, "{host}");
            assert_eq!(header(&response, "x-ralph-gate"), reason, "{host}");
        }
    }
    assert!(!received.text().contains("hidden.example"));
    assert_eq!(received.connections(), 1);
}

#[tokio::test]
async fn upstream_certificates_are_verified() {
    let mut testbed = GateTestbed::allowing(&["front.example"]);
    testbed.inspect = Allowlist::parse(["front.example"]).unwrap();
    let received = testbed
        .start_tls_host("front.example:443", "somebody.example", OK_RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let mut gate_roots = RootCertStore::empty();
    let pem = gate.certificate_pem().as_bytes();
    gate_roots
        .add(CertificateDer::from_pem_slice(pem).unwrap())
        .unwrap();
    let stream = open_tunnel(&gate, "front.example:443").await.unwrap();
    let response = https_get(stream, gate_roots, "front.example", "front.example")
        .await
        .unwrap();
    assert_eq!((status(&response), received.text()), (502, String::new()));
}

#[tokio::test]
async fn listed_ports_forward_any_protocol_and_tls_for_their_host() {
    let mut testbed = GateTestbed::allowing(&["odd.example:2222"]);
    let received = testbed
        .start_tls_host("odd.example:2222", "odd.example", OK_RESPONSE)
        .await;
    let (gate, _) = testbed.build_gate();
    let stream = open_tunnel(&gate, "odd.example:2222").await.unwrap();
    let response = https_get(stream, testbed.roots(), "odd.example", "odd.example")
        .await
        .unwrap();
    assert_eq!(status(&response), 200);
    let stream = open_tunnel(&gate, "odd.example:2222").await.unwrap();
    https_get(stream, testbed.roots(), "evil.example", "x")
        .await
        .unwrap_err();
    assert_eq!(received.text().matches("GET").count(), 1);
    let refused = open_tunnel(&gate, "odd.example:443").await.unwrap_err();
    assert_eq!(header(&refused, "x-ralph-gate"), Some("port-not-allowed"));
}
