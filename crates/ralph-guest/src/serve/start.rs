//! Prepares the sandbox and serves the host.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use super::guest::Guest;
use super::idle_timeout::IdleTimeoutReader;
use super::session::serve_connection;
use super::settings::{GuestSettings, Transport};
use super::user;
use crate::available;
use crate::command::{User, adopt_orphans};

/// The idle timeout of a connection over standard input and output. The host sends more often than
/// that; after the timeout it counts as gone, and its commands must stop.
const STDIO_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Variables set by the guest instead of the image.
const OVERRIDDEN_VARIABLES: [&str; 5] = ["HOME", "HOSTNAME", "LOGNAME", "TMPDIR", "USER"];

/// Serves the host until the connection ends or a signal arrives. This is the first process of its
/// container, so everything in the container ends with it.
pub fn run(settings: &GuestSettings) -> io::Result<()> {
    // File permissions must not depend on the umask set by the Docker Engine.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // No process may inspect or trace this one, not even with the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(settings))
}

async fn serve(settings: &GuestSettings) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    adopt_orphans()?;
    let user = command_user(settings.foreign_user);
    let guest = Guest::open(settings, user, image_environment())?;
    let guest = Arc::new(guest);
    let served = async {
        match &settings.transport {
            Transport::Socket(path) => serve_socket(guest, path).await,
            Transport::Stdio => serve_stdio(guest).await,
        }
    };
    tokio::select! {
        served = served => served,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Returns the user of commands. Without the privilege to switch users, it is that of this process.
fn command_user(foreign: Option<u32>) -> Option<User> {
    // An image may have no users but root.
    let passwd = available(fs::read_to_string("/etc/passwd")).unwrap_or_default();
    geteuid()
        .is_root()
        .then(|| user::choose_user(&passwd, foreign))
}

/// Returns the environment variables set by the image.
fn image_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(
            |(name, value)| match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => Some((name, value)),
                // The wire carries text only.
                (Err(_), _) | (_, Err(_)) => None,
            },
        )
        .filter(|(name, _)| !OVERRIDDEN_VARIABLES.contains(&name.as_str()))
        .collect()
}

/// Serves the host over a socket. The guest connects, so nothing inside the sandbox accepts
/// connections, and the directory of the socket need not be writable.
async fn serve_socket(guest: Arc<Guest>, path: &Path) -> io::Result<()> {
    let connection = UnixStream::connect(path).await.map_err(|error| {
        let text = format!("cannot connect to `{}`: {error}", path.display());
        io::Error::new(error.kind(), text)
    })?;
    let (reader, writer) = connection.into_split();
    serve_connection(guest, reader, writer)
        .await
        .map_err(io::Error::other)
}

/// Serves the host over standard input and output.
async fn serve_stdio(guest: Arc<Guest>) -> io::Result<()> {
    // Commands must not inherit these, because they could impersonate the guest.
    let input = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?;
    let output = fcntl_dupfd_cloexec(rustix::stdio::stdout(), 0)?;
    let reader = IdleTimeoutReader::new(pipe::Receiver::from_owned_fd(input)?, STDIO_IDLE_TIMEOUT);
    let writer = pipe::Sender::from_owned_fd(output)?;
    serve_connection(guest, reader, writer)
        .await
        .map_err(io::Error::other)
}
