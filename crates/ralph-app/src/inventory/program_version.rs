//! The version that an agent's program reports.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ralph_guest::available;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take to print its version.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number of bytes of its output that are read.
const MAX_BYTES: u64 = 1024;

/// Runs `PROGRAM --version` without a terminal and without credentials, and returns the first line. A program that
/// fails or does not answer has none.
pub(super) async fn program_version(
    program: &Path,
    search_path: &str,
    home: Option<&Path>,
) -> Option<String> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .env("PATH", search_path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(home) = home {
        command.env("HOME", home).current_dir(home);
    }
    let printed = async {
        let mut child = available(command.spawn())?;
        let mut text = Vec::new();
        let mut output = child.stdout.take()?.take(MAX_BYTES);
        available(output.read_to_end(&mut text).await)?;
        let status = available(child.wait().await)?;
        status.success().then_some(text)
    };
    let text = available(timeout(TIMEOUT, printed).await)??;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}
