//! Runs the program of a keyring with piped input, an output limit and a timeout.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ralph_core::secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// The timeout of a program; the user may have to unlock the keyring.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The limit of the output, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// The number of characters of an error that are reported.
const MAX_ERROR_CHARS: usize = 200;

/// The reason why a program could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringProgramError {
    /// The program cannot be started, or its output cannot be read.
    #[error("cannot run `{}`: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The program took too long.
    #[error("`{}` did not answer within {} seconds", program.display(), TIMEOUT.as_secs())]
    TimedOut { program: PathBuf },
    /// The program reported an error.
    #[error("`{}` ended with {code}: {complaint}", program.display())]
    Failed {
        program: PathBuf,
        code: i32,
        /// The first line of the error output.
        complaint: String,
    },
}

/// Finds a program on a search path. Ignores relative directories: the working directory may be an
/// untrusted repository.
pub fn find_program(search_path: &str, name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    search_path
        .split(':')
        .map(Path::new)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(is_program)
}

/// The exit and the output of a program.
pub(super) struct KeyringProgramOutput {
    pub(super) code: i32,
    pub(super) output: Secret,
    pub(super) error_line: String,
}

impl KeyringProgramOutput {
    /// Converts the output to an error.
    pub(super) fn into_error(self, program: &Path) -> KeyringProgramError {
        KeyringProgramError::Failed {
            program: program.to_owned(),
            code: self.code,
            complaint: self.error_line,
        }
    }
}

/// `gh` would return the tokens of these variables for a host that it has no login for.
const TOKEN_VARIABLES: [&str; 6] = [
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_HOST",
    "CODESPACES",
];

/// Runs a program with this input. Arguments must not contain secrets, because other users can see
/// them.
pub(super) async fn run(
    program: &Path,
    search_path: &str,
    arguments: &[&OsStr],
    input: &Secret,
) -> Result<KeyringProgramOutput, KeyringProgramError> {
    let slow = || KeyringProgramError::TimedOut {
        program: program.to_owned(),
    };
    tokio::time::timeout(TIMEOUT, exchange(program, search_path, arguments, input))
        .await
        .map_err(|_| slow())?
        .map_err(|source| KeyringProgramError::Start {
            program: program.to_owned(),
            source,
        })
}

async fn exchange(
    program: &Path,
    search_path: &str,
    arguments: &[&OsStr],
    input: &Secret,
) -> io::Result<KeyringProgramOutput> {
    let mut command = Command::new(program);
    for variable in TOKEN_VARIABLES {
        command.env_remove(variable);
    }
    let mut child = command
        .args(arguments)
        .env("PATH", search_path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input reports the reason itself.
            if let Err(error) = stdin.write_all(input.expose().as_bytes()).await {
                tracing::debug!(%error, "cannot write to `{}`", program.display());
            }
        }
    };
    let ((), output, complaint) = tokio::join!(write, read_bounded(stdout), read_bounded(stderr));
    let status = child.wait().await?;
    let complaint = complaint?;
    let first = complaint.expose().lines().next().unwrap_or_default();
    Ok(KeyringProgramOutput {
        code: status.code().unwrap_or(-1),
        output: output?,
        error_line: first.chars().take(MAX_ERROR_CHARS).collect(),
    })
}

async fn read_bounded(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> io::Result<Secret> {
    let mut bytes = Vec::with_capacity(MAX_OUTPUT_BYTES);
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT_BYTES as u64)
            .read_to_end(&mut bytes)
            .await?;
    }
    let text = String::from_utf8(bytes);
    let text =
        text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its output is not UTF-8"))?;
    Ok(Secret::new(text))
}
