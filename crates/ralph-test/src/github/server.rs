//! The sockets of the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustls::{ServerConnection, StreamOwned};

use super::routes;
use super::state::{FakeGitHubState, GitHubExchange};
use crate::model_api::{FakeCertificate, read_request};

/// A GitHub on loopback. Its threads end with the process.
#[derive(Debug)]
pub struct FakeGitHub {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<Mutex<FakeGitHubState>>,
}

impl FakeGitHub {
    /// The private key of the App, which exists only for tests.
    pub const APP_KEY: &str = include_str!("app_key.pem");

    /// Starts a server with a repository `octo/app`.
    pub fn start() -> io::Result<Self> {
        Self::start_with(None)
    }

    /// Starts a TLS server with a certificate.
    pub fn start_tls(certificate: &FakeCertificate) -> io::Result<Self> {
        Self::start_with(Some(certificate))
    }

    fn start_with(certificate: Option<&FakeCertificate>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let tls = certificate.map(FakeCertificate::config);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Arc::new(Mutex::new(FakeGitHubState::default()));
        let shared = state.clone();
        let url = format!("{scheme}://{address}");
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else {
                    break;
                };
                let (state, tls, url) = (shared.clone(), tls.clone(), url.clone());
                thread::spawn(move || match tls.map(ServerConnection::new) {
                    None => serve(connection, &state, &url),
                    Some(Ok(tls)) => {
                        let mut stream = StreamOwned::new(tls, connection);
                        serve(&mut stream, &state, &url);
                        stream.conn.send_close_notify();
                        // The client may have closed the connection.
                        drop(stream.flush());
                    }
                    Some(Err(_)) => {}
                });
            }
        });
        Ok(Self {
            address,
            scheme,
            state,
        })
    }

    /// Returns the address of the API.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the state.
    pub fn state(&self) -> MutexGuard<'_, FakeGitHubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the exchanges so far.
    pub fn ledger(&self) -> Vec<GitHubExchange> {
        self.state().ledger.clone()
    }

    /// Returns the methods and paths of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        let line = |exchange: GitHubExchange| {
            let line = exchange.request.line;
            line.trim_end_matches(" HTTP/1.1").to_owned()
        };
        self.ledger().into_iter().map(line).collect()
    }
}

fn serve(mut connection: impl Read + Write, state: &Mutex<FakeGitHubState>, url: &str) {
    let Ok(Some(request)) = read_request(&mut connection) else {
        return;
    };
    let response = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let response = routes::respond(&mut state, &request, url);
        state.ledger.push(GitHubExchange {
            request,
            status: response.status,
            body: response.body.clone(),
        });
        response.into_fake_response()
    };
    // The client may have closed the connection.
    drop(response.write(&mut connection));
}
