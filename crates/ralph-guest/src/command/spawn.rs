//! Starts a command, with its output at pipes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cap_std::fs::Dir;
use tokio::process::Command;

use super::find_program;
use super::invocation::Invocation;
use super::mark::{CommandMark, Marking};
use super::owned_pipes::OwnedPipes;
use super::process_tree::ProcessTree;

/// A user and a group that a command runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The number of the user.
    pub user: u32,
    /// The number of the group.
    pub group: u32,
}

/// Everything that a command is started from.
#[derive(Debug)]
pub struct SpawnOptions<'a> {
    /// What is run.
    pub invocation: &'a Invocation,
    /// The directory it runs in, open, and its path.
    pub directory: (&'a Dir, &'a Path),
    /// Its whole environment.
    pub variables: &'a BTreeMap<OsString, OsString>,
    /// Whom it runs as, unless as this process.
    pub user: Option<User>,
    /// The program that starts another one in a new session, where that is needed.
    pub setsid: Option<&'a Path>,
    /// How it gets its mark.
    pub marking: Marking,
}

impl SpawnOptions<'_> {
    /// Starts it, as the first of its own process group.
    pub fn spawn(self, mark: CommandMark) -> io::Result<ProcessTree> {
        let [program, arguments @ ..] = self.invocation.argv.as_slice() else {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "no program is named",
            ));
        };
        // A program by its path, in an environment that is set up before, can be started without
        // copying this process first, which costs as much as a small command takes.
        let search_path = self.variables.get(OsStr::new("PATH"));
        let file = search_path.and_then(|path| find_program::find_program(path, program));
        let file = file.as_deref().unwrap_or(program.as_ref());
        let mut command = if let Some(setsid) = self.setsid {
            let mut command = Command::new(setsid);
            command.arg(program);
            command
        } else {
            let mut command = Command::new(file);
            command.arg0(program);
            if self.marking != Marking::ByLauncher {
                // A launcher starts a session, which the leader of a group cannot.
                command.process_group(0);
            }
            command
        };
        let (directory, path) = self.directory;
        command
            .args(arguments)
            .env_clear()
            .envs(self.variables)
            .current_dir(path_of(directory, path));
        let pipes = if let Some(user) = self.user {
            command.uid(user.user).gid(user.group);
            Some(OwnedPipes::connect(&mut command, self.invocation, user)?)
        } else {
            command
                .stdin(self.invocation.stdin())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            None
        };
        ProcessTree::spawn(command, pipes, mark, self.marking)
    }
}

/// Returns a path that leads to a directory that is open. On Linux it names the open handle itself,
/// so that nothing can be put in its place before the command starts there.
fn path_of(dir: &Dir, path: &Path) -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
    } else {
        path.to_owned()
    }
}
