//! One proxy for each agent: a lock while it runs, and a file that says where.

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

/// How long a proxy may take to end, or to say where it is.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often that is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a running proxy says about itself. Whoever wants the same one can use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyNotice {
    /// Its process.
    pub pid: i32,
    /// Where it listens.
    pub address: SocketAddr,
    /// How its credential is shown.
    pub mode: String,
    /// The API that requests go to.
    pub target: String,
    /// Tells one credential from another and nothing about it.
    pub credential: String,
    /// What a program needs to use it.
    pub variables: Vec<(String, String)>,
}

impl ProxyNotice {
    /// Says what a proxy of this process is.
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

    /// Tells whether a running proxy is what somebody wants. Any port will do for who names none.
    fn matches(&self, wanted: &Self) -> bool {
        let is_port = wanted.address.port() == 0 || self.address.port() == wanted.address.port();
        is_port
            && self.address.ip() == wanted.address.ip()
            && self.mode == wanted.mode
            && self.target == wanted.target
            && self.credential == wanted.credential
    }
}

/// How a start goes on.
#[derive(Debug)]
pub enum LeaseOutcome {
    /// There is no other: this one runs.
    Acquired(Lease),
    /// The one that is wanted runs already.
    AlreadyRunning(ProxyNotice),
}

/// Why there is neither.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The files cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The one that runs does not make room.
    #[error("another proxy for agent {agent} is in the way")]
    Held {
        /// Whose.
        agent: AgentName,
    },
}

/// The right to be the proxy of an agent. It ends with the process, whatever happens.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    _lock: File,
}

impl Lease {
    /// Takes the place of whoever ran before: what that one said is not true any more.
    fn new(path: PathBuf, lock: File) -> Result<Self, StoreError> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::when("remove", &path)(error))
            }
            Ok(()) | Err(_) => Ok(Self { path, _lock: lock }),
        }
    }

    /// Says where the proxy is, for those who come later.
    pub fn publish(&self, notice: &ProxyNotice) -> Result<(), StoreError> {
        // Our own types always serialize.
        let text = serde_json::to_string(notice).unwrap_or_default();
        durable::write(&self.path, text.as_bytes())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What it says is not true any more; who reads it asks the proxy itself anyway.
        fs::remove_file(&self.path).ok();
    }
}

/// Becomes the proxy of an agent, unless the wanted one runs; another one is ended for it.
pub async fn acquire_lease(
    directory: &Path,
    agent: &AgentName,
    wanted: &ProxyNotice,
    mode: AuthMode,
) -> Result<LeaseOutcome, LeaseError> {
    durable::create_dir(directory)?;
    let path = directory.join(format!("{agent}.json"));
    let lock = directory.join(format!("{agent}.lock"));
    let mut told: Option<(i32, Signal)> = None;
    let mut until = Instant::now() + TIMEOUT;
    loop {
        if let Some(lock) = try_lock(&lock)? {
            return Ok(LeaseOutcome::Acquired(Lease::new(path, lock)?));
        }
        if let Some(notice) = read_notice(&path) {
            // Somebody else may have been quicker, and started the one that is wanted.
            let told_it = told.filter(|(pid, _)| *pid == notice.pid);
            let address = notice.address;
            if told_it.is_none()
                && notice.matches(wanted)
                && (Health { mode, address }).responds().await
            {
                return Ok(LeaseOutcome::AlreadyRunning(notice));
            }
            let signal = match told_it {
                None => Some(Signal::TERM),
                Some((_, Signal::TERM)) if Instant::now() > until => Some(Signal::KILL),
                Some(_) => None,
            };
            if let Some(signal) = signal {
                send_signal(notice.pid, signal);
                told = Some((notice.pid, signal));
                until = Instant::now() + TIMEOUT;
            }
        }
        if Instant::now() > until {
            let agent = agent.clone();
            return Err(LeaseError::Held { agent });
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn send_signal(pid: i32, signal: Signal) {
    // Nothing else is a process of ours, whatever the file says.
    if let Some(pid) = (pid > 1).then(|| Pid::from_raw(pid)).flatten() {
        // If it is gone, so is its lock.
        kill_process(pid, signal).ok();
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
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

impl From<LeaseError> for AppError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Store(error) => error.into(),
            LeaseError::Held { .. } => Self::runtime(
                error.to_string(),
                "it neither answers nor ends",
                "look for it with `ps`, and end it",
            ),
        }
    }
}
