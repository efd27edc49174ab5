//! Gives git the credential of a source host without putting it into an environment, an argument or a
//! file.
//!
//! Git starts the program of `GIT_ASKPASS` with a prompt as its only argument. That program is ralph
//! itself: it sends the prompt to the socket that [`SOCKET_VARIABLE`] names, and prints the answer. The
//! socket belongs to one git command. It answers only processes of that command, and only prompts for
//! the expected host.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_core::ports::GitLogin;
use rustix::process::{Pid, geteuid, getpgid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::durable::{self, StoreError};

/// The variable with the path of the socket. It is the only addition to git's environment.
pub const SOCKET_VARIABLE: &str = "RALPH_ASKPASS_SOCKET";

const SOCKET_NAME: &str = "socket";
/// The longest prompt and the longest answer, in bytes.
const MAX_MESSAGE: u64 = 64 << 10;
/// The time limit of one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const DELAY_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A socket that answers the prompts of one git command. Dropping it removes the socket.
#[derive(Debug)]
pub(super) struct AskpassServer {
    listener: UnixListener,
    directory: PathBuf,
    /// The host and its port, as in git's prompts.
    authority: String,
    login: GitLogin,
}

/// A question of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompt {
    User,
    Password,
}

impl AskpassServer {
    /// Creates a socket in a new directory below `parent`.
    pub(super) fn bind(
        parent: &Path,
        authority: &str,
        login: GitLogin,
    ) -> Result<Self, StoreError> {
        let number = RandomState::new().build_hasher().finish();
        let directory = parent.join(format!("askpass-{number:016x}"));
        durable::create_dir(parent)?;
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(StoreError::when("create", &directory))?;
        let listener = open_directory(&directory, UnixListener::bind)
            .map_err(StoreError::when("listen in", &directory))?;
        Ok(Self {
            listener,
            directory,
            authority: authority.to_owned(),
            login,
        })
    }

    /// Returns the path of the socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(SOCKET_NAME)
    }

    /// Answers processes of a process group until the caller drops the future.
    pub(super) async fn serve(&self, group: Option<Pid>) -> Infallible {
        loop {
            let answered = match self.listener.accept().await {
                Ok((stream, _)) => {
                    let answering = self.answer(stream, group);
                    let answered = tokio::time::timeout(ANSWER_TIMEOUT, answering).await;
                    answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                }
                Err(error) => {
                    tokio::time::sleep(DELAY_AFTER_ERROR).await;
                    Err(error)
                }
            };
            if let Err(error) = answered {
                tracing::warn!(%error, "cannot answer git's question for a credential");
            }
        }
    }

    async fn answer(&self, mut stream: UnixStream, group: Option<Pid>) -> io::Result<()> {
        require_member(&stream, group)?;
        let mut prompt = Vec::new();
        (&mut stream)
            .take(MAX_MESSAGE)
            .read_to_end(&mut prompt)
            .await?;
        let prompt = String::from_utf8_lossy(&prompt);
        let answer = match parse_prompt(&prompt, &self.authority) {
            Some(Prompt::User) => &self.login.user,
            Some(Prompt::Password) => self.login.password.expose(),
            None => {
                tracing::warn!("git asked for the credential of another host");
                return Ok(());
            }
        };
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }
}

impl Drop for AskpassServer {
    fn drop(&mut self) {
        durable::remove_leftover(&self.socket());
        if let Err(error) = std::fs::remove_dir(&self.directory) {
            tracing::warn!(%error, "cannot remove the directory of a socket");
        }
    }
}

/// Rejects processes of other users, and those that do not belong to the git command.
fn require_member(stream: &UnixStream, group: Option<Pid>) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    let is_user = peer.uid() == geteuid().as_raw();
    let process = peer.pid().and_then(Pid::from_raw);
    let is_member = match (process, group) {
        (Some(process), Some(group)) => getpgid(Some(process))? == group,
        // The system does not provide the id.
        (None, _) => true,
        (Some(_), None) => false,
    };
    if is_user && is_member {
        return Ok(());
    }
    let message = "a process that does not belong to git connected to the socket";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Parses a prompt such as `Password for 'https://user@host': `; `None` if it is for another host.
fn parse_prompt(prompt: &str, authority: &str) -> Option<Prompt> {
    let (question, rest) = prompt.split_once(" for 'https://")?;
    let (address, _) = rest.split_once('\'')?;
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    if !host.eq_ignore_ascii_case(authority) {
        return None;
    }
    match question {
        "Username" => Some(Prompt::User),
        "Password" => Some(Prompt::Password),
        _ => None,
    }
}

/// Asks the process that started git for the answer to a prompt.
pub fn ask(socket: &Path, prompt: &str) -> io::Result<String> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let mut stream = open_directory(directory, std::os::unix::net::UnixStream::connect)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(prompt.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.take(MAX_MESSAGE).read_to_string(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "ralph has no credential for this host",
        ));
    }
    Ok(answer)
}

/// Opens the socket of a directory. The path of a socket is limited to about 100 bytes, so the path
/// starts with the open directory where the system supports it.
fn open_directory<T>(
    directory: &Path,
    open: impl FnOnce(PathBuf) -> io::Result<T>,
) -> io::Result<T> {
    let opened = std::fs::File::open(directory)?;
    if cfg!(target_os = "linux") {
        open(format!("/proc/self/fd/{}/{SOCKET_NAME}", opened.as_raw_fd()).into())
    } else {
        open(directory.join(SOCKET_NAME))
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::secret::Secret;
    use rustix::process::getpgrp;

    use super::*;

    fn server(directory: &Path) -> AskpassServer {
        let login = GitLogin {
            user: "x-access-token".to_owned(),
            password: Secret::new("canary".to_owned()),
        };
        AskpassServer::bind(directory, "host:8443", login).unwrap()
    }

    /// Returns the answers to prompts, or the kinds of their errors.
    async fn answers(server: &AskpassServer, group: Pid, prompts: &[&str]) -> Vec<String> {
        let mut answers = Vec::new();
        for prompt in prompts {
            let (socket, prompt) = (server.socket(), (*prompt).to_owned());
            let asking = tokio::task::spawn_blocking(move || ask(&socket, &prompt));
            let answer = tokio::select! {
                answer = asking => answer.unwrap(),
                never = server.serve(Some(group)) => match never {},
            };
            answers.push(answer.unwrap_or_else(|error| error.kind().to_string()));
        }
        answers
    }

    #[tokio::test]
    async fn only_prompts_for_the_host_are_answered() {
        let directory = tempfile::tempdir().unwrap();
        // Longer than the path of a socket may be.
        let parent = directory.path().join("x".repeat(200));
        let server = server(&parent);
        let prompts = [
            "Username for 'https://host:8443': ",
            "Password for 'https://x-access-token@HOST:8443': ",
            "Password for 'https://x@host': ",
            "Password for 'https://host:8443@evil.example': ",
            "Password for 'http://host:8443': ",
            "Enter passphrase for key 'https://host:8443': ",
            "",
        ];
        let answers = answers(&server, getpgrp(), &prompts).await;
        assert_eq!(answers[..2], ["x-access-token", "canary"]);
        assert_eq!(answers[2..], ["permission denied"; 5]);
        let socket = server.socket();
        drop(server);
        assert!(!socket.parent().unwrap().exists());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_process_outside_the_git_command_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let server = server(directory.path());
        let prompt = "Password for 'https://host:8443': ";
        let answers = answers(&server, Pid::INIT, &[prompt]).await;
        assert_ne!(answers, ["canary"]);
    }
}
