//! A page of another origin that tries to use the server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The page; `SERVER` is replaced with the address of the server.
const PAGE: &str = include_str!("foreign_page.html");

/// Serves the page on a port of its own.
pub(super) struct ForeignPage {
    port: u16,
    serving: JoinHandle<()>,
}

impl ForeignPage {
    pub(super) async fn serve(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let page = PAGE.replace("SERVER", &server.to_string());
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
        let reply = format!("{head}Content-Length: {}\r\n\r\n{page}", page.len());
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                // A browser opens connections that it does not use.
                if matches!(stream.read(&mut request).await, Ok(1..)) {
                    let _disconnected = stream.write_all(reply.as_bytes()).await;
                }
            }
        });
        Self { port, serving }
    }

    /// Returns the address of the page with this host.
    pub(super) fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/", self.port)
    }
}

impl Drop for ForeignPage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
