//! The sandbox port: where commands run and files live.
//!
//! Every provider passes the same contract suite. The promises that the engine builds on:
//! output is delivered while the command runs and never kept; a timeout, an output limit or
//! dropping the future of [`Sandbox::exec`] ends the whole process tree, also children that moved
//! to another session; nothing of the caller's environment reaches a command; file operations
//! never follow a link out of the sandbox and never open anything but regular files and directories.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use crate::path::SandboxPath;

/// The provider's name of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxId(pub String);

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a sandbox is marked with, so that it can be found again: `run`, `owner`, `generation`, `purpose`.
pub type Labels = BTreeMap<String, String>;

/// What a new sandbox should be.
#[derive(Debug, Clone, Default)]
pub struct SandboxSpec {
    /// The marks to find it by.
    pub labels: Labels,
    /// Environment of every command, on top of the provider's clean one.
    pub env: BTreeMap<String, String>,
}

/// How well a provider keeps a command from the machine it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Not at all: commands run as the user.
    None,
    /// A container without a network interface.
    Container,
    /// A virtual machine.
    Machine,
}

/// Something that keeps a provider from working, with the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderProblem {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

/// A sandbox as a provider lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    /// Its name.
    pub id: SandboxId,
    /// What it is marked with.
    pub labels: Labels,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecProgram {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// One command.
#[derive(Debug, Clone)]
pub struct Exec {
    /// What to run.
    pub program: ExecProgram,
    /// Where to run it.
    pub cwd: SandboxPath,
    /// Environment on top of the sandbox's.
    pub env: BTreeMap<String, String>,
    /// What the command reads; it sees the end of its input after that.
    pub stdin: Vec<u8>,
    /// When the whole tree is killed.
    pub timeout: Duration,
    /// How many bytes it may print before the whole tree is killed.
    pub output_limit: u64,
}

impl Exec {
    /// Returns what tells it from others: its command line, or its program.
    pub fn label(&self) -> &str {
        match &self.program {
            ExecProgram::Shell(command) => command,
            ExecProgram::Argv(argv) => argv.first().map_or("", String::as_str),
        }
    }

    /// The output limit unless a caller sets another.
    pub const OUTPUT_LIMIT: u64 = 1 << 30;

    /// A shell command in the repository.
    pub fn shell(command: impl Into<String>, timeout: Duration) -> Self {
        Self::new(ExecProgram::Shell(command.into()), timeout)
    }

    /// A program with arguments in the repository.
    pub fn argv<S: Into<String>>(argv: impl IntoIterator<Item = S>, timeout: Duration) -> Self {
        Self::new(
            ExecProgram::Argv(argv.into_iter().map(Into::into).collect()),
            timeout,
        )
    }

    fn new(program: ExecProgram, timeout: Duration) -> Self {
        Self {
            program,
            cwd: SandboxPath::repo(),
            env: BTreeMap::new(),
            stdin: Vec::new(),
            timeout,
            output_limit: Self::OUTPUT_LIMIT,
        }
    }

    /// Runs it in another directory.
    #[must_use]
    pub fn in_dir(mut self, cwd: SandboxPath) -> Self {
        self.cwd = cwd;
        self
    }

    /// Gives it something to read.
    #[must_use]
    pub fn with_stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets a variable for this command alone.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }
}

/// Which stream a chunk of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes output as it arrives. What it keeps is its own decision.
pub trait OutputSink: Send {
    /// Takes the next bytes of a stream; a chunk may end anywhere, also inside a character.
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]);
}

/// Gives a command more to read while it runs.
#[async_trait]
pub trait InputSource: Send {
    /// Waits for the next bytes; none at the end. Dropping the wait loses nothing.
    async fn next(&mut self) -> Option<Vec<u8>>;
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, not sent by us.
    Signalled(i32),
    /// Its tree was killed at the timeout.
    TimedOut,
    /// Its tree was killed because it printed too much.
    OutputLimit,
    /// Its tree was killed because it filled the sandbox's disk.
    DiskLimit,
    /// Something in its tree was killed for lack of memory, whatever the exit code says.
    OutOfMemory,
}

/// The facts about a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutcome {
    /// How it ended.
    pub ended: ExecStatus,
    /// How long it took.
    pub duration: Duration,
    /// How many bytes it printed on standard output, kept or not.
    pub stdout_bytes: u64,
    /// How many bytes it printed on standard error, kept or not.
    pub stderr_bytes: u64,
    /// Something in its tree could not start another process, because there were too many.
    pub process_limit: bool,
}

impl ExecStatus {
    /// Returns the exit code by the shell's conventions: 124 for a timeout, 128+n for a signal.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::OutputLimit | Self::DiskLimit | Self::OutOfMemory => 137,
        }
    }

    /// Tells whether the command did what it should.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl fmt::Display for ExecStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signalled(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("timed out (124)"),
            Self::OutputLimit => f.write_str("killed: printed too much"),
            Self::DiskLimit => f.write_str("killed: the sandbox's disk is full"),
            Self::OutOfMemory => f.write_str("killed: out of memory"),
        }
    }
}

/// How to write a file. Missing parent directories are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The whole file becomes these bytes, all or nothing.
    Replace,
    /// The bytes are put at the end.
    Append,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SandboxEntryKind,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed.
    pub modified: jiff::Timestamp,
}

/// Why a sandbox could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The sandbox itself is not there any more.
    #[error("sandbox `{0}` is gone")]
    Gone(SandboxId),
    /// A path or a link on the way leads outside.
    #[error("path `{0}` leads outside the sandbox")]
    Escapes(String),
    /// There is something, but no regular file or directory.
    #[error("`{0}` is not a regular file")]
    NotRegular(String),
    /// There is nothing.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// More bytes than the caller wants to hold.
    #[error("`{path}` has {size} bytes, at most {limit} are read")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        size: u64,
        /// The caller's limit.
        limit: u64,
    },
    /// The program cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Spawn {
        /// What should have run.
        program: String,
        /// Why it did not.
        source: std::io::Error,
    },
    /// The sandbox stopped in the middle and goes on again, but what it did until then is unknown.
    #[error("interrupted: {why}")]
    Interrupted {
        /// What happened to the sandbox.
        why: String,
    },
    /// What the provider stands on does not work.
    #[error("{}", .0.what)]
    Provider(ProviderProblem),
    /// The machine refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// One live sandbox.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Returns its name.
    fn id(&self) -> &SandboxId;
    /// Runs a command to its end. Dropping the future kills its whole tree.
    async fn exec(
        &self,
        exec: Exec,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError>;
    /// Runs a command that reads what `input` gives it, after what it has in `stdin`.
    async fn exec_with_input(
        &self,
        exec: Exec,
        input: &mut dyn InputSource,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError>;
    /// Returns a regular file's bytes if there are at most `limit`.
    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError>;
    /// Writes a regular file.
    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError>;
    /// Returns the entries of a directory, sorted by name.
    async fn list(&self, path: &SandboxPath) -> Result<Vec<SandboxEntry>, SandboxError>;
    /// Removes a file, a link itself, or a whole directory. A missing one is fine.
    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError>;
    /// Waits until everything that was written in it, by whichever program, would survive a power cut.
    async fn sync(&self) -> Result<(), SandboxError>;
    /// Ends everything that runs in it and removes it. Doing it twice is fine. A removed sandbox does not
    /// come back after a power cut.
    async fn remove(&self) -> Result<(), SandboxError>;
    /// Returns the program inside of the sandbox that probes its network, where the provider brings one:
    /// `PROGRAM probe-network --gate ADDRESS --host NAME --direct ADDRESS`.
    fn probe_program(&self) -> Option<&str> {
        None
    }
    /// Returns the ability to show a port of the sandbox in a browser, where there is one.
    fn preview(&self) -> Option<&dyn Preview> {
        None
    }
}

/// Shows a port of a sandbox in a browser.
pub trait Preview: Send + Sync {
    /// Returns the address of a port.
    fn url(&self, port: u16) -> String;
}

/// Makes and finds sandboxes of one kind.
#[async_trait]
pub trait SandboxProvider: Send + Sync {
    /// Returns the name that `--sandbox` takes.
    fn name(&self) -> &'static str;
    /// Tells how well commands are kept from the machine.
    fn isolation(&self) -> Isolation;
    /// Returns what is kept from commands though the provider does not isolate; none if it does.
    fn confinement(&self) -> Option<Confinement> {
        None
    }
    /// Returns what keeps it from working here; nothing means it works. It changes nothing.
    async fn preflight(&self) -> Vec<ProviderProblem>;
    /// Makes a sandbox with an empty repository directory and an empty scratch directory.
    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// Takes over a sandbox that exists, ending whatever still runs in it; none if it is gone.
    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError>;
    /// Returns the sandboxes of this provider.
    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError>;
}
