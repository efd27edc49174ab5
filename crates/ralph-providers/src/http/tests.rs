//! Requests to servers and proxies of the test's own.

use std::io::Write as _;
use std::net::SocketAddr;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

const TIMEOUT: Duration = Duration::from_mins(1);

/// Serves one connection with these bytes and returns the head of its request.
async fn serve(response: Vec<u8>) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(&response).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    (address, served)
}

async fn get(client: &HttpClient, uri: &str) -> Result<StreamedResponse, HttpError> {
    let request = Request::get(uri).body(Full::default()).unwrap();
    client.send(request).await
}

async fn read(mut response: StreamedResponse) -> Result<String, HttpError> {
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        text.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(text).unwrap())
}

fn direct() -> HttpClient {
    HttpClient::new(&ProxySettings::default(), TIMEOUT).unwrap()
}

#[test]
fn only_http_and_https_proxies_are_accepted() {
    for (address, is_valid) in [
        ("http://proxy.example:3128", true),
        ("https://user:password@proxy.example", true),
        ("proxy.example:3128", true),
        ("socks5://proxy.example", false),
        ("ftp://proxy.example", false),
        ("http://proxy example", false),
    ] {
        for network in [
            ProxySettings {
                http_proxy: Some(address.into()),
                ..ProxySettings::default()
            },
            ProxySettings {
                https_proxy: Some(address.into()),
                ..ProxySettings::default()
            },
        ] {
            assert_eq!(proxies(&network).is_ok(), is_valid, "{network:?}");
        }
    }
}

#[tokio::test]
async fn a_proxy_gets_the_whole_address_and_its_credential() {
    let (proxy, requests) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".into()).await;
    let network = ProxySettings {
        http_proxy: Some(format!("http://user:pass@{proxy}")),
        ..ProxySettings::default()
    };
    let client = HttpClient::new(&network, TIMEOUT).unwrap();
    let response = get(&client, "http://api.invalid/path?query").await.unwrap();
    assert_eq!(read(response).await.unwrap(), "ok");
    let head = requests.await.unwrap();
    assert!(
        head.starts_with("GET http://api.invalid/path?query HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("host: api.invalid\r\n"), "{head}");
    assert!(
        head.contains("proxy-authorization: Basic dXNlcjpwYXNz\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_a_tunnel_is_no_connection() {
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
    let (proxy, requests) = serve(refusal.into()).await;
    let network = ProxySettings {
        https_proxy: Some(proxy.to_string()),
        ..ProxySettings::default()
    };
    let client = HttpClient::new(&network, TIMEOUT).unwrap();
    let error = get(&client, "https://api.invalid/path")
        .await
        .err()
        .unwrap();
    assert!(matches!(error, HttpError::Connect(_)), "{error:?}");
    assert_eq!(
        error.root_cause(),
        "tunnel error: proxy authorization required"
    );
    let head = requests.await.unwrap();
    assert!(
        head.starts_with("CONNECT api.invalid:443 HTTP/1.1\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn hosts_without_a_proxy_are_reached_directly() {
    let (server, requests) = serve(b"HTTP/1.1 204 No Content\r\n\r\n".into()).await;
    let network = ProxySettings {
        http_proxy: Some("http://proxy.invalid:1".into()),
        no_proxy: Some("api.invalid, 127.0.0.0/8".into()),
        ..ProxySettings::default()
    };
    let client = HttpClient::new(&network, TIMEOUT).unwrap();
    let response = get(&client, &format!("http://{server}/")).await.unwrap();
    assert_eq!(response.status(), 204);
    assert!(requests.await.unwrap().starts_with("GET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_compressed_body_is_decoded_and_must_be_complete() {
    let text = "0123456789".repeat(100_000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let compressed = encoder.finish().unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let whole = [head.as_bytes(), &compressed].concat();

    let (server, requests) = serve(whole.clone()).await;
    let response = get(&direct(), &format!("http://{server}/")).await.unwrap();
    assert!(read(response).await.unwrap() == text);
    assert!(
        requests
            .await
            .unwrap()
            .contains("accept-encoding: gzip\r\n")
    );

    let (server, _) = serve(whole[..whole.len() - 20].to_vec()).await;
    let response = get(&direct(), &format!("http://{server}/")).await.unwrap();
    let error = read(response).await.unwrap_err();
    assert!(matches!(error, HttpError::Encoding(_)), "{error:?}");

    let (server, _) = serve(head.into()).await;
    let response = get(&direct(), &format!("http://{server}/")).await.unwrap();
    assert_eq!(read(response).await.unwrap(), "");
}

#[tokio::test]
async fn failures_before_and_after_the_connection_differ() {
    let (server, requests) = serve(b"nonsense\r\n\r\n".into()).await;
    let error = get(&direct(), &format!("http://{server}/")).await;
    assert!(matches!(error.err(), Some(HttpError::Request(_))));
    requests.await.unwrap();
    let error = get(&direct(), &format!("http://{server}/")).await;
    let error = error.err().unwrap();
    assert!(matches!(error, HttpError::Connect(_)), "{error:?}");
    assert_eq!(error.root_cause(), "Connection refused (os error 111)");
}
