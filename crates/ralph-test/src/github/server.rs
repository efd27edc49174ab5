//! The sockets of the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::faults::{FaultRule, GitHubFault};
use super::git::{self, GitCall};
use super::repo::FakeRepo;
use super::routes;
use super::state::{FakeGitHubState, FakeGitHubToken, GitHubExchange};
use super::wire::{RawRequest, RawResponse, read_raw_request};
use crate::git::git as git_program;
use crate::model_api::FakeCertificate;

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
        let exchanges = self.ledger();
        let operations = exchanges.iter().map(GitHubExchange::operation);
        operations.map(str::to_owned).collect()
    }

    /// Returns the methods and paths of the requests that changed the state, in their order.
    pub fn mutations(&self) -> Vec<String> {
        let exchanges = self.ledger();
        let mutations = exchanges.iter().filter(|exchange| exchange.is_mutation);
        mutations.map(|each| each.operation().to_owned()).collect()
    }

    /// Accepts a token.
    pub fn add_token(&self, value: &str, token: FakeGitHubToken) {
        self.state().tokens.insert(value.to_owned(), token);
    }

    /// Rejects a token from now on.
    pub fn revoke_token(&self, value: &str) {
        self.state().tokens.remove(value);
    }

    /// Applies a fault to some requests.
    pub fn plan(&self, rule: FaultRule) {
        self.state().rules.push(rule);
    }

    /// Reads or changes the contents of `octo/app`.
    pub fn with_app<T>(&self, work: impl FnOnce(&mut FakeRepo) -> T) -> T {
        work(self.state().repo("octo/app"))
    }

    /// Serves git below `/OWNER/NAME.git` from bare repositories in a directory. Pushes update the heads of
    /// pull requests.
    pub fn serve_git(&self, root: &Path) {
        self.state().git_root = Some(root.to_owned());
    }

    /// Copies a repository into the directory of [`Self::serve_git`] as `full_name`, and returns the path
    /// of the bare repository.
    ///
    /// # Panics
    /// If the server has no such directory, or git fails.
    pub fn host_repository(&self, full_name: &str, source: &Path) -> PathBuf {
        let mut state = self.state();
        let root = state.git_root.clone().expect("a directory for git");
        let bare = root.join(format!("{full_name}.git"));
        let (source, target) = (source.display().to_string(), bare.display().to_string());
        git_program(&root, &["clone", "--quiet", "--bare", &source, &target]);
        let settings = json!({"private": true, "default_branch": "main"});
        let known = state.repositories.entry(full_name.to_owned());
        known.or_insert(settings);
        bare
    }

    /// Returns the address of a repository for git.
    pub fn git_url(&self, full_name: &str) -> String {
        format!("{}/{full_name}.git", self.url())
    }
}

fn serve<S: Read + Write>(mut connection: S, state: &Mutex<FakeGitHubState>, url: &str) {
    let Ok(Some(request)) = read_raw_request(&mut connection) else {
        return;
    };
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = routes::fault(&mut lock(), &request);
    let git = git::authorize(&mut lock(), &request, url);
    let (response, body, is_mutation) = if let Some(call) = git {
        // Without the lock: a push may take a while, and a hook of it may ask the API.
        respond_to_git(call, &request, fault.as_ref())
    } else {
        let mut state = lock();
        let respond = routes::respond(&mut state, &request, url, fault.as_ref());
        let (response, is_mutation) = respond;
        drop(state);
        let body = response.body.clone();
        (response.into_raw(), body, is_mutation)
    };
    let is_lost = fault.as_ref().is_some_and(GitHubFault::is_silent);
    lock().ledger.push(GitHubExchange {
        request: request.received(),
        status: response.status,
        body,
        is_mutation,
        is_lost,
    });
    if is_lost {
        if fault == Some(GitHubFault::Hang) {
            // Ends when the client closes the connection.
            drop(connection.read(&mut [0]));
        }
        return;
    }
    // The client may have closed the connection.
    drop(response.write(&mut connection));
}

fn respond_to_git(
    call: Result<GitCall, RawResponse>,
    request: &RawRequest,
    fault: Option<&GitHubFault>,
) -> (RawResponse, Value, bool) {
    let failed = |status| RawResponse {
        status,
        headers: Vec::new(),
        body: Vec::new(),
    };
    let is_performed = fault.is_none_or(GitHubFault::is_performed);
    let (response, is_push) = match call {
        Ok(call) if is_performed => {
            let response = git::run(&call, request).unwrap_or_else(|_| failed(500));
            (response, call.is_push && request.line.starts_with("POST"))
        }
        Ok(_) => (failed(503), false),
        Err(refusal) => (refusal, false),
    };
    let response = match fault {
        Some(GitHubFault::Status(status) | GitHubFault::StatusAfter(status)) => failed(*status),
        Some(_) | None => response,
    };
    (response, Value::Null, is_push)
}

#[cfg(test)]
mod tests;
