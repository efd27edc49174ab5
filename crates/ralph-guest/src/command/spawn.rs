//! Starts a command with its output connected to pipes.

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

/// The user and group of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub user: u32,
    pub group: u32,
}

/// The settings for starting a command.
#[derive(Debug)]
pub struct SpawnOptions<'a> {
    pub invocation: &'a Invocation,
    /// The working directory, as an open handle and a path.
    pub directory: (&'a Dir, &'a Path),
    /// The complete environment.
    pub variables: &'a BTreeMap<OsString, OsString>,
    /// The user of the command; by default that of this process.
    pub user: Option<User>,
    /// The path of `setsid`, if the command needs a new session.
    pub setsid: Option<&'a Path>,
    pub marking: Marking,
}

impl SpawnOptions<'_> {
    /// Starts the command as the leader of its own process group.
    pub fn spawn(self, mark: CommandMark) -> io::Result<ProcessTree> {
        let [program, arguments @ ..] = self.invocation.argv.as_slice() else {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "the command has no program",
            ));
        };
        // With an absolute path and a prepared environment, the process can be spawned without a
        // `fork`, which takes as long as a small command.
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
                // A launcher starts a session, which a group leader cannot do.
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

/// Returns a path to an open directory. On Linux it refers to the handle itself, so that the
/// directory cannot be replaced before the command starts.
fn path_of(dir: &Dir, path: &Path) -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
    } else {
        path.to_owned()
    }
}
