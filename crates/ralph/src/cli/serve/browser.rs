//! Opens a link in the user's browser.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// The program that opens links.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// The time in which it fails, if it fails. Some openers run as long as the browser.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a link. Returns why it was not opened.
pub(super) async fn open(link: &str) -> Result<(), String> {
    let mut opener = Command::new(OPENER);
    opener
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = opener.spawn().map_err(|error| describe(&error))?;
    match timeout(TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("`{OPENER}` failed ({status})")),
        Ok(Err(error)) => Err(describe(&error)),
        Err(_) => Ok(()),
    }
}

fn describe(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("`{OPENER}` is not installed");
    }
    format!("`{OPENER}` failed: {error}")
}
