//! Runs git on the host with limits, because its input may come from a sandbox.
//!
//! A small pack can contain objects of any size, and a small commit can name any number of files.
//! So the memory, the time and the output of git are limited.

use std::ffi::OsStr;
use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::GitError;
use super::askpass::AskpassServer;
use super::call_log::GitCall;

/// The timeout of one git command: the first fetch of a large repository takes minutes.
const MAX_TIME: Duration = Duration::from_mins(30);
/// How long to wait for a git command whose timer has expired.
const GRACE_AFTER_TIMEOUT: Duration = Duration::from_secs(2);
/// The most private memory of one git process. Packs are mapped and do not count.
const MAX_MEMORY: u64 = 2 << 30;
/// The most bytes of standard output that are read.
const MAX_OUTPUT: u64 = 256 << 20;
/// The most bytes of standard error that are kept.
const MAX_STDERR: u64 = 64 << 10;

/// Runs a git command with `input` on standard input, and returns its exit status and output.
pub(super) async fn output(
    command: &mut Command,
    name: &str,
    input: &[u8],
) -> Result<Output, GitError> {
    let output = run(command, name, (input, None), MAX_OUTPUT).await?;
    output.ok_or_else(|| too_much_output(name))
}

/// Runs a git command without input, and answers its prompts for a credential meanwhile.
pub(super) async fn output_with_askpass(
    command: &mut Command,
    name: &str,
    askpass: Option<&AskpassServer>,
) -> Result<Output, GitError> {
    let output = run(command, name, (b"", askpass), MAX_OUTPUT).await?;
    output.ok_or_else(|| too_much_output(name))
}

fn too_much_output(name: &str) -> GitError {
    GitError::Failed {
        command: name.to_owned(),
        message: format!("it printed more than {} MiB", MAX_OUTPUT >> 20),
    }
}

/// The input of a command, and the server that answers its prompts.
type CommandInput<'a> = (&'a [u8], Option<&'a AskpassServer>);

/// Runs a git command, and returns its exit status and output; none if the output exceeds `limit`.
pub(super) async fn output_up_to(
    command: &mut Command,
    name: &str,
    limit: u64,
) -> Result<Option<Output>, GitError> {
    run(command, name, (b"", None), limit).await
}

async fn run(
    command: &mut Command,
    name: &str,
    input: CommandInput<'_>,
    limit: u64,
) -> Result<Option<Output>, GitError> {
    let call = GitCall::new("host", command_line(command));
    let ended = run_limited(command, name, input, limit).await;
    match &ended {
        Ok(output) => call.log_exit(output.status.code(), &output.stderr),
        Err(error) => call.log_error(error),
    }
    Ok(Some(ended?).filter(|output| output.stdout.len() as u64 <= limit))
}

/// Returns the arguments of a command as one text.
fn command_line(command: &Command) -> String {
    let arguments = command.as_std().get_args();
    let arguments: Vec<_> = arguments.map(OsStr::to_string_lossy).collect();
    arguments.join(" ")
}

async fn run_limited(
    command: &mut Command,
    name: &str,
    (input, askpass): CommandInput<'_>,
    limit: u64,
) -> Result<Output, GitError> {
    let running = RunningGit::start(command, input)?;
    let group = running.group;
    let communication = running.communicate(input, limit);
    let communication = async move {
        match askpass {
            None => communication.await,
            Some(server) => tokio::select! {
                ended = communication => ended,
                never = server.serve(group) => match never {},
            },
        }
    };
    let mut communication = std::pin::pin!(communication);
    let mut ended = tokio::time::timeout(MAX_TIME, &mut communication).await;
    if ended.is_err() {
        // The timer also expires while this process is suspended, and git may have ended meanwhile.
        ended = tokio::time::timeout(GRACE_AFTER_TIMEOUT, communication).await;
    }
    let ended = ended.map_err(|_| GitError::TimedOut {
        command: name.to_owned(),
        after: MAX_TIME,
    })?;
    ended.map_err(GitError::Missing)
}

/// A git process and its children. They are killed on drop.
struct RunningGit {
    child: Child,
    group: Option<Pid>,
}

impl RunningGit {
    /// Starts a git command in a process group of its own, with its limits.
    fn start(command: &mut Command, input: &[u8]) -> Result<Self, GitError> {
        let stdin = if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let child = command
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(GitError::Missing)?;
        let first = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(first) = first {
            limit_memory(first);
        }
        Ok(Self {
            child,
            group: first,
        })
    }

    /// Waits for it to end.
    async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        let status = self.child.wait().await?;
        // The process id may be reused from now on.
        self.group = None;
        Ok(status)
    }

    async fn communicate(mut self, input: &[u8], limit: u64) -> io::Result<Output> {
        let stdin = self.child.stdin.take();
        let writing_stdin = async move {
            if let Some(mut stdin) = stdin {
                // If git stops reading, its own error message says why.
                if let Err(error) = stdin.write_all(input).await {
                    tracing::debug!("git did not read its whole input: {error}");
                }
            }
        };
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let reading_stdout = async {
            let stdout = read_limited(stdout, limit + 1, ExcessOutput::LeaveUnread).await?;
            if stdout.len() as u64 > limit {
                // It would block on its full output pipe.
                self.kill();
            }
            Ok::<_, io::Error>(stdout)
        };
        let reading_stderr = read_limited(stderr, MAX_STDERR, ExcessOutput::Discard);
        let (stdout, stderr, ()) = tokio::join!(reading_stdout, reading_stderr, writing_stdin);
        let (stdout, stderr) = (stdout?, stderr?);
        let status = self.wait().await?;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            match kill_process_group(group, Signal::KILL) {
                // It has already ended.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => tracing::warn!("cannot kill git: {error}"),
            }
        }
    }
}

impl Drop for RunningGit {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How output beyond a limit is handled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExcessOutput {
    /// It stays in the pipe.
    LeaveUnread,
    /// It is read and dropped.
    Discard,
}

async fn read_limited(
    from: Option<impl AsyncRead + Unpin>,
    limit: u64,
    rest: ExcessOutput,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(limit).read_to_end(&mut bytes).await?;
        if rest == ExcessOutput::Discard {
            tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
        }
    }
    Ok(bytes)
}

/// Limits the memory of a process that was just started; its children inherit the limit.
#[cfg(target_os = "linux")]
fn limit_memory(pid: Pid) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MAX_MEMORY),
        maximum: Some(MAX_MEMORY),
    };
    // Fails if ralph itself has a lower limit, which stays in force.
    if let Err(error) = prlimit(Some(pid), Resource::Data, limit) {
        tracing::debug!("cannot limit the memory of git: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_pid: Pid) {}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, input: &[u8]) -> Result<Output, GitError> {
        let mut command = Command::new("sh");
        output(command.args(["-c", script]), "test", input).await
    }

    #[tokio::test]
    async fn input_and_output_pass_through() {
        let output = shell("cat; echo complaint >&2; exit 3", b"hello")
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"hello"[..], &b"complaint\n"[..])
        );
    }

    #[tokio::test]
    async fn excessive_output_is_cut_off() {
        let error = shell("yes", b"").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "git test failed: it printed more than 256 MiB"
        );
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn excessive_memory_use_fails() {
        // Reads a line of 3 GiB into memory.
        let hungry = "sleep 0.1; head -c 3G /dev/zero | tail -n 1 | wc -c";
        let output = shell(hungry, b"").await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "0",
            "{output:?}"
        );
    }

    #[tokio::test]
    async fn a_command_that_is_dropped_leaves_nothing_running() {
        let dir = tempfile::tempdir().unwrap();
        let beat = dir.path().join("beat");
        let script = format!(
            "(while :; do echo . >> {0}; sleep 0.02; done) & wait",
            beat.display()
        );
        let running = shell(&script, b"");
        tokio::time::timeout(Duration::from_millis(300), running)
            .await
            .unwrap_err();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = std::fs::metadata(&beat).unwrap().len();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(std::fs::metadata(&beat).unwrap().len(), before);
    }
}
