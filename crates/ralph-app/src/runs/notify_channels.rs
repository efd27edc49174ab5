//! The channels of notifications: the desktop, a command, a webhook. Each has a time limit.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use ralph_providers::http::{HttpClient, HttpError, ProxyAddressError, ProxySettings};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::notify::RunNotification;
use crate::tokens::stores::find_program;

/// The time limit of one channel.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the error output is read after a command has ended: another process may have it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(300);

/// The number of bytes of a command's error output that are logged.
const MAX_ERROR_BYTES: u64 = 2048;

/// The longest text of a desktop notification, in characters.
const MAX_DESKTOP_CHARS: usize = 300;

/// The reason why a notification was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotifyError {
    /// The program cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    /// The program reported a failure.
    #[error("`{program}` ended with {status}: {complaint}")]
    Failed {
        program: String,
        status: ExitStatus,
        complaint: String,
    },
    /// The channel took too long.
    #[error("no end after {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    /// There is no program for notifications of the desktop.
    #[error("neither `notify-send` nor `osascript` is on PATH")]
    NoDesktop,
    /// The address of a proxy is not valid.
    #[error("the proxy cannot be used: {0}")]
    Proxy(#[from] ProxyAddressError),
    /// The address of the webhook is not valid.
    #[error("the address is not valid: {0}")]
    Address(#[from] hyper::http::Error),
    /// The server did not respond.
    #[error("no response: {}", .0.root_cause())]
    Send(#[from] HttpError),
    /// The server rejected the notification.
    #[error("the server responded with {0}")]
    Status(u16),
}

/// Shows a notification of the desktop.
pub(super) async fn show_on_desktop(
    notification: &RunNotification,
    search_path: &str,
) -> Result<(), NotifyError> {
    let text: String = notification
        .text()
        .chars()
        .take(MAX_DESKTOP_CHARS)
        .collect();
    let mut command = if let Some(program) = find_program(search_path, "notify-send") {
        let mut command = Command::new(program);
        command.args(["--app-name=ralph", "--", "ralph", &escape_markup(&text)]);
        command
    } else if let Some(program) = find_program(search_path, "osascript") {
        let mut command = Command::new(program);
        // The text is an argument, never part of the script.
        let script =
            "on run argv\ndisplay notification (item 1 of argv) with title \"ralph\"\nend run";
        command.args(["-e", script, "--", &text]);
        command
    } else {
        return Err(NotifyError::NoDesktop);
    };
    run(&mut command, String::new()).await
}

/// Escapes the markup that servers of the desktop may interpret.
fn escape_markup(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// Starts the user's command with the notification on standard input and in variables.
pub(super) async fn start_command(
    argv: &[String],
    notification: &RunNotification,
) -> Result<(), NotifyError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(());
    };
    let summary = &notification.summary;
    let pull = summary.pr.as_ref().map(|pull| pull.url.as_str());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("RALPH_NOTIFY", notification.event.as_str())
        .env("RALPH_RUN", summary.id.as_str())
        .env("RALPH_TASK", summary.task_id.as_deref().unwrap_or_default())
        .env("RALPH_TITLE", &notification.title)
        .env("RALPH_STATUS", summary.status)
        .env(
            "RALPH_REASON",
            summary.reason.as_deref().unwrap_or_default(),
        )
        .env("RALPH_REPO", &notification.repo)
        .env(
            "RALPH_BRANCH",
            summary.branch.as_deref().unwrap_or_default(),
        )
        .env("RALPH_PR", pull.unwrap_or_default());
    // The directory in which ralph was started may be gone or unreadable for the command.
    if Path::new(&notification.repo).is_dir() {
        command.current_dir(&notification.repo);
    }
    run(&mut command, json(notification) + "\n").await
}

/// Sends the notification to a server.
pub(super) async fn post_webhook(
    address: &str,
    notification: &RunNotification,
    network: &ProxySettings,
) -> Result<(), NotifyError> {
    let client = HttpClient::new(network, TIMEOUT)?;
    let request = Request::post(address)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(json(notification)))?;
    let response = tokio::time::timeout(TIMEOUT, client.send(request)).await;
    let status = response.map_err(|_| NotifyError::TimedOut)??.status();
    if status.is_success() {
        Ok(())
    } else {
        Err(NotifyError::Status(status.as_u16()))
    }
}

fn json(notification: &RunNotification) -> String {
    serde_json::to_string(notification).expect("a notification is valid JSON")
}

/// Runs a program with this input until it ends or the time is over.
async fn run(command: &mut Command, input: String) -> Result<(), NotifyError> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| NotifyError::Start {
            program: program.clone(),
            source,
        })?;
    let group = child.id();
    match tokio::time::timeout(TIMEOUT, exchange(&mut child, input)).await {
        Ok(Ok((status, _))) if status.success() => Ok(()),
        Ok(Ok((status, complaint))) => Err(NotifyError::Failed {
            program,
            status,
            complaint,
        }),
        Ok(Err(source)) => Err(NotifyError::Start { program, source }),
        Err(_) => {
            end_group(group);
            Err(NotifyError::TimedOut)
        }
    }
}

/// Ends a program and the processes that it started.
fn end_group(group: Option<u32>) {
    let pid = group.and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(pid) = pid
        && let Err(error) = kill_process_group(pid, Signal::KILL)
    {
        tracing::debug!(%error, "cannot end a notification command");
    }
}

/// Returns the exit of a program and the start of its error output.
async fn exchange(child: &mut Child, input: String) -> io::Result<(ExitStatus, String)> {
    let stdin = child.stdin.take();
    let write = async move {
        if let Some(mut stdin) = stdin
            && let Err(error) = stdin.write_all(input.as_bytes()).await
        {
            // A command need not read its input.
            tracing::debug!(%error, "a notification command did not read its input");
        }
    };
    // Dropped at the time limit, which ends the task.
    let mut reading = JoinSet::new();
    reading.spawn(read_start(child.stderr.take()));
    let ((), status) = tokio::join!(write, child.wait());
    let complaint = match tokio::time::timeout(OUTPUT_GRACE, reading.join_next()).await {
        Ok(Some(Ok(complaint))) => complaint,
        Ok(Some(Err(_)) | None) | Err(_) => String::new(),
    };
    Ok((status?, complaint))
}

/// Returns the start of an output in one line, and reads the rest, so that its writer does not wait.
async fn read_start(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let mut start = (&mut pipe).take(MAX_ERROR_BYTES);
    if let Err(error) = start.read_to_end(&mut bytes).await {
        tracing::debug!(%error, "cannot read the output of a notification command");
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if bytes.len() as u64 == MAX_ERROR_BYTES
        && let Err(error) = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await
    {
        tracing::debug!(%error, "cannot read the output of a notification command");
    }
    line
}
