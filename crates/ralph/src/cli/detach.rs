//! `--detach`: works on a run in a background process that survives the terminal.
//!
//! The command starts itself again with `--detached`. That process leaves the session of the terminal,
//! prepares the run, and reports the run's id on its standard output once the journal exists. Until then
//! its output and its errors belong to the command, which waits for the report; afterwards its
//! standard error is a file in the run's directory.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use clap::Args;
use ralph_app::AppError;
use ralph_app::runs::ReadyRun;
use ralph_core::id::RunId;
use rustix::process::{Pid, Signal, kill_process, setsid};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::exit::ExitCode;
use super::hand_over::ServerUse;
use crate::terminal::lines::field_line;
use crate::terminal::styled_line::StyledLine;

/// Precedes the id in the report of a started run. Other output contains no control characters.
const STARTED_MARK: &str = "\u{1}started ";
/// How long an interrupted background process may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Options of commands that work on a run.
#[derive(Debug, Args)]
pub(super) struct DetachArgs {
    /// Work on the run in a background process, and return once it has started
    #[arg(long)]
    pub detach: bool,
    /// This is the background process
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
    /// Work on the run without the running server
    #[arg(long)]
    pub local: bool,
}

impl DetachArgs {
    /// Returns the process that works on the run.
    pub(super) fn place(&self) -> ProcessPlace {
        match (self.detach, self.detached) {
            (true, _) => ProcessPlace::NewBackground,
            (false, true) => ProcessPlace::Background,
            (false, false) => ProcessPlace::Foreground,
        }
    }

    /// Returns whether a running server may work on the run.
    pub(super) fn server_use(&self) -> ServerUse {
        // The command that started a background process has decided that already.
        ServerUse::from_flag(self.local || self.detached)
    }
}

/// The process that works on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessPlace {
    /// This process, on the terminal.
    Foreground,
    /// A background process that this one starts.
    NewBackground,
    /// This process, which runs in the background.
    Background,
}

impl ProcessPlace {
    /// Leaves the session of the terminal if this process runs in the background, so that closing the
    /// terminal does not end it.
    pub(super) fn enter(self) -> Result<Self, AppError> {
        if self == Self::Background {
            setsid().map_err(|error| failed(error.to_string()))?;
        }
        Ok(self)
    }
}

/// Returns the arguments of the background process for a command that was given `--detach`.
pub(super) fn detached_arguments(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    if let Some(option) = arguments.iter_mut().find(|word| *word == "--detach") {
        *option = "--detached".into();
    }
    arguments
}

/// Returns the arguments of a background process that resumes a run.
pub(super) fn resume_arguments(run: &RunId, is_json: bool) -> Vec<OsString> {
    let arguments = ["resume", run.as_str(), "--detached"];
    let json = is_json.then_some("--json");
    arguments.into_iter().chain(json).map(Into::into).collect()
}

/// Reports that the run has started, and redirects standard error to a file in the run's directory. It
/// contains only the last error of the process: the diagnostics log has its own file.
pub(super) fn report_start(run: &ReadyRun) -> Result<(), AppError> {
    let path = run.dir().detached_log();
    let log = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&path);
    let cannot_write =
        |error: io::Error| failed(format!("cannot write `{}`: {error}", path.display()));
    let log = log.map_err(cannot_write)?;
    let null = File::options().write(true).open("/dev/null");
    let null = null.map_err(|error| failed(format!("cannot open /dev/null: {error}")))?;
    let mut stdout = io::stdout();
    let id = &run.journal().state().plan.run;
    // A command that no longer waits must not end the run.
    if let Err(error) = writeln!(stdout, "{STARTED_MARK}{id}").and_then(|()| stdout.flush()) {
        tracing::warn!(%error, "cannot report the start of the run");
    }
    let redirected =
        rustix::stdio::dup2_stderr(&log).and_then(|()| rustix::stdio::dup2_stdout(&null));
    redirected.map_err(|error| failed(format!("cannot redirect the output: {error}")))
}

/// Starts the background process and waits until its run has started. Returns its exit code if it ended
/// before.
pub(super) async fn start_in_background(
    arguments: Vec<OsString>,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| AppError::runtime("cannot handle Ctrl-C", error.to_string(), ""))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed("its output is not connected".into()));
    };
    let mut startup = StartupOutput::new(stdout, stderr);
    let reported = tokio::select! {
        reported = startup.forward_until_report(context) => reported?,
        _ = interrupt.recv() => {
            end(&mut child).await;
            return Ok(ExitCode::Interrupted);
        }
    };
    if let Some(run) = reported {
        return print_started(&run, child.id(), is_json, context);
    }
    let ended = child.wait().await;
    exit_code(ended.map_err(|error| failed(error.to_string()))?)
}

/// The output of a background process before its run has started.
struct StartupOutput {
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl StartupOutput {
    fn new(stdout: ChildStdout, stderr: ChildStderr) -> Self {
        Self {
            stdout: BufReader::new(stdout),
            stderr: Some(stderr),
        }
    }

    /// Passes the output on until the process reports the id of its run. Returns `None` if it ended.
    async fn forward_until_report(
        &mut self,
        context: &Context,
    ) -> Result<Option<String>, AppError> {
        let unreadable = |error: io::Error| failed(error.to_string());
        let (mut line, mut errors) = (Vec::new(), [0; 4096]);
        loop {
            // A cancelled read keeps the bytes in `line`.
            let count = tokio::select! {
                read = self.stdout.read_until(b'\n', &mut line) => {
                    read.map_err(unreadable)?;
                    let text = String::from_utf8_lossy(&line).into_owned();
                    line.clear();
                    if let Some(run) = text.strip_prefix(STARTED_MARK) {
                        return Ok(Some(run.trim_end().to_owned()));
                    }
                    if text.is_empty() {
                        break;
                    }
                    context.output().print_text(&text)?;
                    continue;
                }
                Some(count) = read_some(&mut self.stderr, &mut errors) => count.map_err(unreadable)?,
            };
            self.forward_errors(&errors[..count]);
        }
        while let Some(count) = read_some(&mut self.stderr, &mut errors).await {
            self.forward_errors(&errors[..count.map_err(unreadable)?]);
        }
        Ok(None)
    }

    fn forward_errors(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.stderr = None;
        }
        // Without standard error there is no place to report that it failed.
        let _written = io::stderr().write_all(bytes);
    }
}

async fn read_some(from: &mut Option<ChildStderr>, into: &mut [u8]) -> Option<io::Result<usize>> {
    match from {
        Some(stderr) => Some(stderr.read(into).await),
        None => None,
    }
}

/// Ends a background process that has not reported its run yet.
async fn end(child: &mut Child) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).map_or(None, Pid::from_raw));
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(%error, "cannot end the background process");
    }
    if tokio::time::timeout(END_TIMEOUT, child.wait())
        .await
        .is_err()
        && let Err(error) = child.kill().await
    {
        tracing::warn!(%error, "cannot end the background process");
    }
}

/// Prints the run that a background process works on.
pub(super) fn print_started(
    run: &str,
    pid: Option<u32>,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let output = context.output();
    if is_json {
        output.print_json(&json!({"run": run, "pid": pid}))?;
        return Ok(ExitCode::Success);
    }
    let process = pid.map_or_else(String::new, |pid| format!(" by process {pid}"));
    output.print_lines(&[
        StyledLine::from_text("run ")
            .strong(run)
            .plain(&format!(": started in the background{process}")),
        field_line("watch", &format!("ralph attach {run}")),
        field_line("log", &format!("ralph logs -f {run}")),
        field_line("end", &format!("ralph stop {run}")),
    ])?;
    Ok(ExitCode::Success)
}

/// Returns the exit code of a background process that ended before its run started.
fn exit_code(ended: ExitStatus) -> Result<ExitCode, AppError> {
    let code = ended.code().and_then(ExitCode::from_code);
    code.ok_or_else(|| failed(format!("its process ended unexpectedly: {ended}")))
}

fn failed(why: String) -> AppError {
    AppError::runtime(
        "cannot start the run in the background",
        why,
        "start it without `--detach`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_process_gets_the_same_arguments() {
        let words =
            |text: &str| -> Vec<OsString> { text.split_whitespace().map(OsString::from).collect() };
        assert_eq!(
            detached_arguments(&words("run a.md --detach --model=--detach -v")),
            words("run a.md --detached --model=--detach -v")
        );
        let run = RunId::parse("260301-100000-0001").unwrap();
        assert_eq!(
            resume_arguments(&run, true),
            words("resume 260301-100000-0001 --detached --json")
        );
    }
}
