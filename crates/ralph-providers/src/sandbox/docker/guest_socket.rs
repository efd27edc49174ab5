//! The socket that the guest connects to, in a directory that only this user can enter.
//!
//! The container sees the directory read-only. The socket exists only until the guest has
//! connected, so that nothing inside can connect to it later.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use ralph_guest::best_effort;
use tokio::net::{UnixListener, UnixStream};

/// The socket's file name.
pub(super) const SOCKET_NAME: &str = "host";

/// A listening socket. Dropping it removes it.
#[derive(Debug)]
pub(super) struct GuestSocket {
    listener: UnixListener,
    directory: PathBuf,
}

impl GuestSocket {
    /// Creates the directory, if needed.
    pub(super) fn create_directory(directory: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)
    }

    /// Starts listening in the directory.
    pub(super) fn bind(directory: &Path) -> io::Result<Self> {
        Self::create_directory(directory)?;
        match std::fs::remove_file(directory.join(SOCKET_NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        // Uses the open directory, because a socket path is limited to about 100 bytes.
        let open = std::fs::File::open(directory)?;
        let path = if cfg!(target_os = "linux") {
            format!("/proc/self/fd/{}/{SOCKET_NAME}", open.as_raw_fd()).into()
        } else {
            directory.join(SOCKET_NAME)
        };
        Ok(Self {
            listener: UnixListener::bind(path)?,
            directory: directory.to_owned(),
        })
    }

    /// Accepts a connection and returns the peer's process id, if the system provides it.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, Option<i64>)> {
        let (stream, _) = self.listener.accept().await?;
        let process = stream.peer_cred()?.pid().map(i64::from);
        Ok((stream, process))
    }
}

impl Drop for GuestSocket {
    fn drop(&mut self) {
        // A file that remains is removed by the next `bind`.
        best_effort(std::fs::remove_file(self.directory.join(SOCKET_NAME)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_exists_until_it_is_dropped() {
        let state = tempfile::tempdir().unwrap();
        // Longer than a socket path may be.
        let directory = state.path().join("x".repeat(200));
        for _ in 0..2 {
            let socket = GuestSocket::bind(&directory).unwrap();
            let mode = std::fs::metadata(&directory).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
            assert_eq!(mode & 0o777, 0o700);
            let open = std::fs::File::open(&directory).unwrap();
            let path = format!("/proc/self/fd/{}/{SOCKET_NAME}", open.as_raw_fd());
            let (connected, accepted) = tokio::join!(UnixStream::connect(path), socket.accept());
            connected.unwrap();
            assert_eq!(accepted.unwrap().1, Some(i64::from(std::process::id())));
            drop(socket);
            assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        }
    }
}
