//! Prepares the sandbox and waits for the host.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, geteuid, getpid};
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use super::guest::Guest;
use super::heard::Heard;
use super::session::converse;
use super::settings::{Settings, Transport};
use super::user;
use crate::command::{User, adopt_orphans};

/// How long a connection by the guest's own input and output may be silent. The host says something
/// more often; after that it is gone, and what it started must not go on.
const SILENCE: Duration = Duration::from_mins(1);

/// What commands get from us, not from the image.
const OURS: [&str; 3] = ["HOME", "HOSTNAME", "TMPDIR"];

/// Serves the host until it is told to end.
pub fn run(settings: &Settings) -> io::Result<()> {
    // Files get the permissions they are given, whatever the engine started us with.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(settings))
}

async fn serve(settings: &Settings) -> io::Result<()> {
    let mut end = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    adopt_orphans()?;
    let guest = Guest::open(
        &settings.root,
        unprivileged(settings.foreign_user),
        image_environment(),
        settings.disk_limit,
    )?;
    let guest = Arc::new(guest);
    let served = async {
        match &settings.transport {
            Transport::Socket(path) => by_socket(guest, path).await,
            Transport::Stdio => by_stdio(guest).await,
        }
    };
    tokio::select! {
        served = served => served,
        _ = end.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Returns whom commands run as. Without power over users they run as this process does.
fn unprivileged(foreign: Option<u32>) -> Option<User> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    geteuid().is_root().then(|| user::choose(&passwd, foreign))
}

/// Returns what the image says about the environment of programs.
fn image_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !OURS.contains(&name.as_str()))
        .collect()
}

/// Serves one connection after the other; a new one takes the place of the last.
async fn by_socket(guest: Arc<Guest>, path: &Path) -> io::Result<()> {
    let listener = listen(path)?;
    let mut connection = accept(&listener).await?;
    loop {
        let (reader, writer) = connection.into_split();
        let session = converse(guest.clone(), reader, writer);
        connection = tokio::select! {
            next = accept(&listener) => next?,
            // Whatever ended it: the next connection begins anew.
            _ = session => accept(&listener).await?,
        };
    }
}

/// Listens where only the owner of the directory can connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let owner = fs::metadata(directory)?;
    let listener = UnixListener::bind(path)?;
    std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid()))?;
    Ok(listener)
}

/// Waits for somebody from outside of the container. A process inside has a number here, and is
/// none that may ask for anything.
async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (connection, _) = listener.accept().await?;
        let inside = connection.peer_cred()?.pid().is_some_and(|pid| pid != 0);
        if getpid() != Pid::INIT || !inside {
            return Ok(connection);
        }
    }
}

async fn by_stdio(guest: Arc<Guest>) -> io::Result<()> {
    let input = rustix::io::dup(rustix::stdio::stdin())?;
    let output = rustix::io::dup(rustix::stdio::stdout())?;
    let reader = Heard::new(pipe::Receiver::from_owned_fd(input)?, SILENCE);
    let writer = pipe::Sender::from_owned_fd(output)?;
    converse(guest, reader, writer)
        .await
        .map_err(io::Error::other)
}
