//! Pipes owned by the user of a command.
//!
//! A pipe belongs to the user that created it, and opening `/dev/stderr` reopens the pipe with a
//! check of its owner. A command of another user could write to its output, but not open it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::fchown;
use std::process::{self, Stdio};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::invocation::Invocation;
use super::spawn::User;

/// The ends of a command's pipes that stay in this process.
pub(super) struct OwnedPipes {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl OwnedPipes {
    /// Creates the pipes of a command, changes their owner and connects the command to them.
    pub(super) fn connect(
        command: &mut Command,
        invocation: &Invocation,
        user: User,
    ) -> io::Result<Self> {
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        // Both ends of a pipe share one inode.
        set_owner(&stdout, user)?;
        set_owner(&stderr, user)?;
        command.stdout(stdout_end).stderr(stderr_end);
        let stdin = if invocation.needs_pipe() {
            let (stdin_end, stdin) = io::pipe()?;
            set_owner(&stdin, user)?;
            command.stdin(stdin_end);
            Some(stdin.into())
        } else {
            command.stdin(Stdio::null());
            None
        };
        Ok(Self {
            stdin,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    /// Passes the remaining ends to the handle of the started command.
    pub(super) fn attach(self, child: &mut Child) -> io::Result<()> {
        child.stdin = self
            .stdin
            .map(|end| ChildStdin::from_std(process::ChildStdin::from(end)))
            .transpose()?;
        child.stdout = Some(ChildStdout::from_std(self.stdout.into())?);
        child.stderr = Some(ChildStderr::from_std(self.stderr.into())?);
        Ok(())
    }
}

fn set_owner(pipe: impl AsFd, User { user, group }: User) -> io::Result<()> {
    fchown(pipe, Some(user), Some(group))
}
