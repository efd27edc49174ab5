//! The host's git program, with its configuration and environment.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;

use ralph_core::path::absolute_search_path;
use tokio::process::Command;

use super::error_line::most_relevant_line;
use super::{GitError, HostRepo, RemoteTransport, bounded};
use crate::durable::{self, StoreError};

/// The program if no directory of the search path contains git; starting it fails with "not found".
/// A bare name would be searched again, in the current directory if the search path is empty.
const MISSING_PROGRAM: &str = "/nonexistent/git";

/// The host's git program with an environment of its own.
#[derive(Debug, Clone)]
pub struct HostGit {
    program: PathBuf,
    path: String,
    config: PathBuf,
    home: Option<PathBuf>,
    /// A directory whose repositories only ralph writes.
    own_repositories: Option<PathBuf>,
    /// The connection to the source host of the repository, if it has one.
    remote: Option<Arc<RemoteTransport>>,
}

/// Objects and refs are synced, so that a ref never names an object that a power cut emptied. Git
/// before 2.36 knows only `fsyncObjectFiles`; later versions prefer `fsync`. New objects stay in
/// one pack, here and in the repository that is pushed to: two files to sync, and a damaged loose
/// object does not hide them.
const CONFIG: &str = "\
[safe]\n\tdirectory = *\n\tbareRepository = all\n\
[core]\n\thooksPath = /dev/null\n\tbigFileThreshold = 16m\n\
\tfsync = all\n\tfsyncMethod = fsync\n\tfsyncObjectFiles = true\n\
[transfer]\n\tunpackLimit = 1\n\
[init]\n\tdefaultBranch = main\n\
[protocol]\n\tallow = never\n\
[protocol \"file\"]\n\tallow = always\n\
[protocol \"https\"]\n\tallow = always\n\
[gc]\n\tauto = 0\n\
[pack]\n\twriteReverseIndex = false\n\twindowMemory = 64m\n\tthreads = 2\n\
[repack]\n\twriteBitmaps = false\n\tupdateServerInfo = false\n\
[maintenance]\n\tauto = false\n";

impl HostGit {
    /// Uses the git on `path` (a `PATH` value) with a configuration file that this writes to
    /// `config`. The file is named `.gitconfig`, so that git before 2.32 finds it as the one of its
    /// `HOME`. `home` is the user's, for reading the user's own repositories.
    pub fn new(path: &str, config: PathBuf, home: Option<PathBuf>) -> Result<Self, StoreError> {
        let current = std::fs::read(&config).is_ok_and(|text| text == CONFIG.as_bytes());
        if !current {
            if let Some(directory) = config.parent() {
                durable::create_dir(directory)?;
            }
            durable::write_shared(&config, CONFIG.as_bytes())?;
        }
        Ok(Self::locate(path, config, home))
    }

    /// Uses the git on `path` only for reading the user's own repositories: nothing is written.
    pub fn read_only(path: &str, home: Option<PathBuf>) -> Self {
        Self::locate(path, PathBuf::from("/dev/null"), home)
    }

    fn locate(path: &str, config: PathBuf, home: Option<PathBuf>) -> Self {
        // A relative entry would name a directory of the repository that git is started in.
        let path = absolute_search_path(path);
        // With an absolute path, git can be started without forking this process first.
        let program = std::env::split_paths(&path)
            .map(|directory| directory.join("git"))
            .find(|file| file.is_absolute() && is_executable(file))
            .unwrap_or_else(|| PathBuf::from(MISSING_PROGRAM));
        Self {
            program,
            path,
            config,
            home,
            own_repositories: None,
            remote: None,
        }
    }

    /// Returns the same git, with a directory of bare repositories that only ralph writes.
    #[must_use]
    pub fn with_own_repositories(self, directory: PathBuf) -> Self {
        Self {
            own_repositories: Some(directory),
            ..self
        }
    }

    /// Returns the same git with a connection to a source host.
    #[must_use]
    pub fn with_remote(self, transport: RemoteTransport) -> Self {
        Self {
            remote: Some(Arc::new(transport)),
            ..self
        }
    }

    pub(super) fn transport(&self) -> Option<&RemoteTransport> {
        self.remote.as_deref()
    }

    /// Returns the program and the configuration file.
    pub fn program(&self) -> (&Path, &Path) {
        (&self.program, &self.config)
    }

    /// Returns a git command in `dir` without the user's environment.
    pub(super) fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.config.parent().unwrap_or(dir))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", &self.config)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_AUTHOR_NAME", "ralph")
            .env("GIT_AUTHOR_EMAIL", "ralph@localhost")
            .env("GIT_COMMITTER_NAME", "ralph")
            .env("GIT_COMMITTER_EMAIL", "ralph@localhost")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs git in one of the user's directories, as the user would: git checks the owner of the
    /// repository and respects the user's `safe.directory`. Hooks, the file system monitor and
    /// signing are off.
    pub async fn run_as_user(&self, dir: &Path, args: &[&str]) -> Result<String, GitError> {
        let name = args.first().copied().unwrap_or_default();
        let output = bounded::output(self.command_as_user(dir).args(args), name, b"").await?;
        successful_stdout(name, &output)
    }

    /// Returns a git command in one of the user's directories, as the user would run it.
    pub(super) fn command_as_user(&self, dir: &Path) -> Command {
        let mut command = self.command(dir);
        command
            .env_remove("GIT_CONFIG_GLOBAL")
            .env_remove("GIT_CONFIG_NOSYSTEM");
        let own = self.own_repositories.as_ref();
        if own.is_some_and(|own| dir.starts_with(own)) {
            // The user's `safe.bareRepository` would reject it otherwise.
            command.env("GIT_DIR", dir);
        }
        // A partial clone would silently fetch missing objects from its remote.
        command.env("GIT_NO_LAZY_FETCH", "1");
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        command
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            // Git before 2.45 does not know the variable above.
            .args(["-c", "protocol.allow=never"])
            .args(["-c", "commit.gpgSign=false"]);
        command
    }

    /// Returns the bare repository at `path`.
    pub fn repo(&self, path: PathBuf) -> HostRepo {
        HostRepo::new(self.clone(), path)
    }
}

fn is_executable(file: &Path) -> bool {
    let found = file.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

pub(super) fn successful_stdout(command: &str, output: &Output) -> Result<String, GitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(command_error(command, output))
}

/// Returns the error of a command that failed, with git's own message.
pub(super) fn command_error(command: &str, output: &Output) -> GitError {
    let command = command.to_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_full = ["No space left on device", "Out of diskspace"]
        .iter()
        .any(|words| stderr.contains(words));
    if is_full {
        return GitError::Full { command };
    }
    let message =
        most_relevant_line(&stderr).map_or_else(|| output.status.to_string(), str::to_owned);
    GitError::Failed { command, message }
}

pub(super) fn subcommand_name<S: AsRef<OsStr>>(args: &[S]) -> String {
    let name = args.first().map(AsRef::as_ref).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn an_error_has_the_message_of_git_or_the_exit_status() {
        for (stderr, expected) in [
            (
                "fatal: bad object x\n",
                "git log failed: fatal: bad object x",
            ),
            ("", "git log failed: exit status: 128"),
        ] {
            let output = Output {
                status: ExitStatus::from_raw(128 << 8),
                stdout: Vec::new(),
                stderr: stderr.into(),
            };
            assert_eq!(command_error("log", &output).to_string(), expected);
        }
    }
}
