//! One proxy per agent: a lock while it runs, and a file with its address.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_core::secret::Secret;
use ralph_engine::durable::{self, StoreError};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::health::{Health, mode_name};
use crate::error::AppError;
use crate::tokens::{AgentName, AuthMode};

/// The time limit for a proxy to end or to publish its address.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The interval for polling that condition.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The self-description of a running proxy. Processes that need the same one can use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyNotice {
    pub pid: i32,
    /// The listening address.
    pub address: SocketAddr,
    pub mode: String,
    /// The API that requests are forwarded to.
    pub target: String,
    /// Distinguishes credentials without revealing them.
    pub credential: String,
    /// The variables that a program needs to use the proxy.
    pub variables: Vec<(String, String)>,
}

impl ProxyNotice {
    /// Describes a proxy of this process.
    pub fn new(address: SocketAddr, mode: AuthMode, target: &str, secret: &Secret) -> Self {
        Self {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            address,
            mode: mode_name(mode).to_owned(),
            target: target.to_owned(),
            credential: hex(&Sha256::digest(secret.expose())[..8]),
            variables: Vec::new(),
        }
    }

    /// Returns whether a running proxy fits the request. Any port fits a request without one.
    fn matches(&self, wanted: &Self) -> bool {
        let is_port = wanted.address.port() == 0 || self.address.port() == wanted.address.port();
        is_port
            && self.address.ip() == wanted.address.ip()
            && self.mode == wanted.mode
            && self.target == wanted.target
            && self.credential == wanted.credential
    }
}

/// The result of acquiring a lease.
#[derive(Debug)]
pub enum LeaseOutcome {
    /// No other proxy runs; this process becomes the proxy.
    Acquired(Lease),
    /// The wanted proxy is already running.
    AlreadyRunning(ProxyNotice),
}

/// The reason why a lease could not be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// A file could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The running proxy does not end.
    #[error("another proxy for agent {agent} is running")]
    Held { agent: AgentName },
}

/// The right to be the proxy of an agent. It ends with the process in any case.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    _lock: File,
}

impl Lease {
    /// Takes over from an earlier proxy and removes its outdated notice.
    fn new(path: PathBuf, lock: File) -> Result<Self, StoreError> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::when("remove", &path)(error))
            }
            Ok(()) | Err(_) => Ok(Self { path, _lock: lock }),
        }
    }

    /// Publishes the proxy for later processes.
    pub fn publish(&self, notice: &ProxyNotice) -> Result<(), StoreError> {
        let text = serde_json::to_vec(notice)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", &self.path))?;
        durable::write(&self.path, &text)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The notice is outdated; readers ask the proxy anyway.
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove `{}`", self.path.display());
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Acquires the lease of an agent, unless the wanted proxy runs. Ends any other proxy of the agent.
pub async fn acquire_lease(
    directory: &Path,
    agent: &AgentName,
    wanted: &ProxyNotice,
    mode: AuthMode,
) -> Result<LeaseOutcome, LeaseError> {
    durable::create_dir(directory)?;
    let path = directory.join(format!("{agent}.json"));
    let lock = directory.join(format!("{agent}.lock"));
    let mut signalled: Option<(i32, Signal)> = None;
    let mut deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(lock) = try_lock(&lock)? {
            return Ok(LeaseOutcome::Acquired(Lease::new(path, lock)?));
        }
        if let Some(notice) = read_notice(&path) {
            // Another process may have been faster and started the wanted proxy.
            let last_signal = signalled.filter(|(pid, _)| *pid == notice.pid);
            let address = notice.address;
            if last_signal.is_none()
                && notice.matches(wanted)
                && (Health { mode, address }).responds().await
            {
                return Ok(LeaseOutcome::AlreadyRunning(notice));
            }
            let signal = match last_signal {
                None => Some(Signal::TERM),
                Some((_, Signal::TERM)) if Instant::now() > deadline => Some(Signal::KILL),
                Some(_) => None,
            };
            if let Some(signal) = signal {
                send_signal(notice.pid, signal);
                signalled = Some((notice.pid, signal));
                deadline = Instant::now() + TIMEOUT;
            }
        }
        if Instant::now() > deadline {
            let agent = agent.clone();
            return Err(LeaseError::Held { agent });
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn send_signal(pid: i32, signal: Signal) {
    // No other number is a valid process id, regardless of the file.
    if let Some(pid) = (pid > 1).then(|| Pid::from_raw(pid)).flatten() {
        match kill_process(pid, signal) {
            // If the process is gone, so is its lock.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => {
                let pid = pid.as_raw_nonzero();
                tracing::warn!(%error, "cannot send a signal to the proxy with pid {pid}");
            }
        }
    }
}

fn try_lock(path: &Path) -> Result<Option<File>, StoreError> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::when("open", path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(StoreError::when("lock", path)(error.into())),
    }
}

fn read_notice(path: &Path) -> Option<ProxyNotice> {
    match fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)) {
        Ok(notice) => Some(notice),
        // The proxy has not published its notice yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::debug!(%error, "cannot use `{}`", path.display());
            None
        }
    }
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

impl From<LeaseError> for AppError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Store(error) => error.into(),
            LeaseError::Held { .. } => Self::runtime(
                error.to_string(),
                "it neither responds nor exits",
                "find it with `ps`, and end it",
            ),
        }
    }
}
