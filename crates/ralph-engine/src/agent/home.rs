//! The home directory of an agent session. Each session gets a new one: an agent's own memory,
//! history and settings of an earlier session would be context that no prompt shows. What an agent
//! may keep is in `.ralph/` and git.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Exec, OutputSink, OutputStream, Sandbox, SandboxError};

/// Time for creating two directories.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The longest path of a session, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Creates the directories and prints where they are.
const CREATE: &str = "mkdir -p session/home session/tmp && cd session && pwd";

/// Creates the directories of a new session and removes those of an earlier one. Returns the
/// variables that name them.
pub(super) async fn create_home(
    sandbox: &dyn Sandbox,
) -> Result<BTreeMap<String, String>, SandboxError> {
    // A process that was killed leaves the directories of its session.
    sandbox.delete(&SandboxPath::session()).await?;
    let exec = Exec::shell(CREATE, TIMEOUT).in_dir(SandboxPath::scratch());
    let mut printed = PrintedPath(Vec::new());
    let outcome = sandbox.exec(exec, None, &mut printed).await?;
    let path = printed.path().filter(|_| outcome.ended.is_success());
    let path = path.ok_or_else(|| SandboxError::Io {
        doing: "create the home directory of an agent session".to_owned(),
        source: io::Error::other(outcome.ended.to_string()),
    })?;
    Ok(BTreeMap::from([
        ("HOME".to_owned(), format!("{path}/home")),
        ("TMPDIR".to_owned(), format!("{path}/tmp")),
    ]))
}

/// Removes the directories of an ended session.
pub(super) async fn remove_home(sandbox: &dyn Sandbox) {
    if let Err(error) = sandbox.delete(&SandboxPath::session()).await {
        // The next session removes them, or they are gone with the sandbox.
        tracing::warn!(%error, "cannot remove the home directory of an agent session");
    }
}

/// Collects a printed path.
struct PrintedPath(Vec<u8>);

impl PrintedPath {
    /// Returns the path if it is the only line and absolute.
    fn path(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let path = text.strip_suffix('\n')?;
        (path.starts_with('/') && !path.contains('\n')).then(|| path.to_owned())
    }
}

impl OutputSink for PrintedPath {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        if stream == OutputStream::Stdout && self.0.len() + bytes.len() <= MAX_PATH_BYTES {
            self.0.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_absolute_path_is_used() {
        for (printed, path) in [
            (
                "/workspace/scratch/session\n",
                Some("/workspace/scratch/session"),
            ),
            ("/with a blank/session\n", Some("/with a blank/session")),
            ("/workspace/session", None),
            ("session\n", None),
            ("/a\n/b\n", None),
            ("", None),
        ] {
            let mut sink = PrintedPath(Vec::new());
            sink.chunk(OutputStream::Stderr, b"a warning\n");
            for byte in printed.as_bytes() {
                sink.chunk(OutputStream::Stdout, &[*byte]);
            }
            assert_eq!(sink.path().as_deref(), path, "{printed:?}");
        }
    }
}
