//! Tests of a server that is reachable from elsewhere: TLS, proxies, other users of the machine.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use http_body_util::Full;
use hyper::Method;
use ralph_app::App;
use ralph_app::config::Environment;
use ralph_server::{PublicUrl, ServeOptions, Server, TlsFiles};
use ralph_test::FakeCertificate;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{TestProject, TestServer, path_of, send_bytes, status_of};

fn everywhere() -> ServeOptions {
    let mut options = ServeOptions::local(0, 2);
    options.host = IpAddr::from([0, 0, 0, 0]);
    options
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_other_machines_must_be_encrypted() {
    let project = TestProject::new();
    let app = App::new(Environment::new(project.variables(), project.repo()));
    let error = Server::bind(app, everywhere()).await.unwrap_err();
    assert_eq!(error.what, "refusing to listen on 0.0.0.0");
    assert!(error.fix.contains("--tls-cert"), "{}", error.fix);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_s_public_address_is_accepted_with_its_path() {
    let mut options = everywhere();
    options.behind_proxy = true;
    options.public_url = Some(PublicUrl::parse("https://ralph.example/team/").unwrap());
    let server = TestServer::start_with(TestProject::new(), options).await;
    assert_eq!(server.address.url, "https://ralph.example/team");
    let link = path_of(&server.login_link).to_owned();
    assert!(link.starts_with("/team/login?code="), "{link}");
    let request = |path: &str, lines: &str| {
        format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: ralph.example\r\n{lines}\r\n")
    };
    // Behind a proxy, every client seems to be on this machine, so none gets the cookie at once.
    let page = send_bytes(&server, request(&link, "").as_bytes()).await;
    assert_eq!(status_of(&page), 200);
    assert!(page.contains("<form"), "{page}");
    let code = link.split_once("code=").unwrap().1;
    for path in ["/team/login", "/login"] {
        let body = format!("code={code}");
        let sign_in = format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nHost: ralph.example\r\nOrigin: https://ralph.example\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = send_bytes(&server, sign_in.as_bytes()).await;
        if path == "/login" {
            assert_eq!(status_of(&reply), 401);
            continue;
        }
        assert_eq!(status_of(&reply), 303, "{reply}");
        assert!(
            reply.contains("set-cookie: __Secure-ralph_session="),
            "{reply}"
        );
        assert!(
            reply.contains("; Path=/team/; HttpOnly; SameSite=Strict; Secure"),
            "{reply}"
        );
        assert!(reply.contains("location: /team/\r\n"), "{reply}");
        assert!(
            reply.contains("strict-transport-security: max-age=31536000"),
            "{reply}"
        );
    }
    let bearer = format!("Authorization: Bearer {}\r\n", server.token);
    for (path, status) in [
        ("/team/api/v1/session", 200),
        ("/api/v1/session", 200),
        ("/team", 200),
        ("/teams/api/v1/session", 404),
    ] {
        let reply = send_bytes(&server, request(path, &bearer).as_bytes()).await;
        assert_eq!(status_of(&reply), status, "{path}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_behind_a_proxy_are_counted_per_client() {
    let mut options = everywhere();
    options.behind_proxy = true;
    let server = TestServer::start_with(TestProject::new(), options).await;
    let attempt = async |client: &str| {
        let request = server.bare_request(Method::GET, "/api/v1/runs");
        let request = request
            .header(
                "host",
                format!("127.0.0.1:{}", server.address.socket.port()),
            )
            .header("authorization", "Bearer wrong")
            .header("x-forwarded-for", client);
        let mut request = request.body(Full::default()).unwrap();
        let port = server.address.socket.port();
        let host = format!("127.0.0.1:{port}").parse().unwrap();
        request.headers_mut().insert("host", host);
        server.send(request).await.status.as_u16()
    };
    for _ in 0..10 {
        assert_eq!(attempt("203.0.113.9, 192.0.2.1").await, 401);
    }
    assert_eq!(attempt("198.51.100.1, 192.0.2.1").await, 429);
    assert_eq!(attempt("192.0.2.1, 192.0.2.2").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_users_of_the_machine_get_nothing() {
    let server = TestServer::start().await;
    let home = server.project.home();
    let record = home.join("server.json");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home), mode(&record)), (0o700, 0o600));
    let bare = server.bare_request(Method::GET, "/api/v1/runs");
    server
        .send(bare.body(Full::default()).unwrap())
        .await
        .expect(401);
    if rustix::process::geteuid().is_root() {
        // Only root can try it as another user.
        let nobody = 65534;
        for path in [&record, &home] {
            let mut read = Command::new("cat");
            read.arg(path).uid(nobody).gid(nobody);
            let output = read.output().unwrap();
            assert_ne!(output.status.code(), Some(0), "{}", path.display());
            assert_eq!(output.stdout, b"", "{}", path.display());
        }
    }
}

/// Sends a request with TLS and returns the whole response.
async fn send_encrypted(
    server: &TestServer,
    certificate: &FakeCertificate,
    request: &str,
) -> String {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(certificate.authority().as_bytes());
    roots.add(authority.unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(server.address.socket).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_certificate_serves_others_only_encrypted() {
    let project = TestProject::new();
    let certificate = FakeCertificate::new("localhost");
    let files = TlsFiles {
        certificate: project.path("cert.pem"),
        key: project.path("key.pem"),
    };
    std::fs::write(&files.certificate, certificate.pem()).unwrap();
    std::fs::write(&files.key, certificate.key_pem()).unwrap();
    let mut options = ServeOptions::local(0, 2);
    options.tls = Some(files);
    let server = TestServer::start_with(project, options).await;
    let port = server.address.socket.port();
    assert_eq!(server.address.url, format!("https://127.0.0.1:{port}"));
    let link = path_of(&server.login_link);
    let request = |path: &str, host: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    let host = format!("localhost:{port}");
    let reply = send_encrypted(&server, &certificate, &request(link, &host)).await;
    assert_eq!(status_of(&reply), 303, "{reply}");
    assert!(
        reply.contains("set-cookie: __Host-ralph_session="),
        "{reply}"
    );
    assert!(
        reply.contains("; Path=/; HttpOnly; SameSite=Strict; Secure"),
        "{reply}"
    );
    assert!(!reply.contains("strict-transport-security"), "{reply}");
    let foreign = send_encrypted(&server, &certificate, &request("/health", "localhost:1")).await;
    assert_eq!(status_of(&foreign), 421);
    let plain = send_bytes(&server, request("/health", &host).as_bytes()).await;
    assert!(!plain.contains("HTTP/"), "{plain}");

    // Commands of this machine use a listener of their own.
    let local = server.address.local_url.strip_prefix("http://").unwrap();
    assert!(
        local.starts_with("127.0.0.1:") && !local.ends_with(&port.to_string()),
        "{local}"
    );
    let mut stream = TcpStream::connect(local).await.unwrap();
    let bearer = format!("Authorization: Bearer {}", server.token);
    let request = format!(
        "GET /api/v1/session HTTP/1.1\r\nHost: {local}\r\n{bearer}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert_eq!(status_of(&reply), 200, "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_certificates_are_named() {
    let project = TestProject::new();
    let certificate = FakeCertificate::new("localhost");
    std::fs::write(project.path("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(
        project.path("key.pem"),
        FakeCertificate::new("localhost").key_pem(),
    )
    .unwrap();
    std::fs::write(project.path("empty.pem"), "").unwrap();
    for (certificate, key, named) in [
        ("empty.pem", "key.pem", "empty.pem"),
        ("cert.pem", "empty.pem", "empty.pem"),
        ("cert.pem", "missing.pem", "missing.pem"),
        ("cert.pem", "key.pem", "cert.pem"),
    ] {
        let app = App::new(Environment::new(project.variables(), project.repo()));
        let mut options = ServeOptions::local(0, 2);
        options.tls = Some(TlsFiles {
            certificate: project.path(certificate),
            key: project.path(key),
        });
        let error = Server::bind(app, options).await.unwrap_err();
        let path = project.path(named);
        let expected = format!("cannot use `{}` for TLS", path.display());
        assert_eq!(error.what, expected);
    }
}
