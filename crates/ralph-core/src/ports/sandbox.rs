//! The sandbox port: runs commands and stores files.
//!
//! Every provider passes the same contract suite. The engine relies on these promises: output is
//! delivered while the command runs and is not stored; a timeout, an output limit or dropping the
//! future of [`Sandbox::exec`] kills the whole process tree, including children in other sessions;
//! commands do not inherit the caller's environment; file operations never follow a link out of the
//! sandbox and open only regular files and directories.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::confinement::Confinement;
use crate::path::SandboxPath;

/// The provider's name for a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxId(pub String);

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Labels by which a sandbox is found: `run`, `owner`, `generation`, `purpose`.
pub type Labels = BTreeMap<String, String>;

/// Parameters of a new sandbox.
#[derive(Debug, Clone, Default)]
pub struct SandboxSpec {
    pub labels: Labels,
    /// Environment of every command, on top of the provider's clean one.
    pub env: BTreeMap<String, String>,
}

/// How well a provider isolates commands from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// No isolation: commands run as the user.
    None,
    /// A container without a network interface.
    Container,
    /// A virtual machine.
    Machine,
}

/// A problem that prevents a provider from working, with its solution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderProblem {
    pub what: String,
    /// The solution, as an imperative.
    pub fix: String,
}

/// A sandbox as a provider lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    pub id: SandboxId,
    pub labels: Labels,
}

/// The program of a command.
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
    pub program: ExecProgram,
    pub cwd: SandboxPath,
    /// Environment on top of the sandbox's.
    pub env: BTreeMap<String, String>,
    /// The input of the command, or its beginning if there is an [`InputSource`].
    pub stdin: Vec<u8>,
    /// The process tree is killed after this time.
    pub timeout: Duration,
    /// The process tree is killed after this many bytes of output.
    pub output_limit: u64,
}

impl Exec {
    /// Returns the command line, or the program without its arguments.
    pub fn label(&self) -> &str {
        match &self.program {
            ExecProgram::Shell(command) => command,
            ExecProgram::Argv(argv) => argv.first().map_or("", String::as_str),
        }
    }

    /// The default output limit, in bytes.
    pub const OUTPUT_LIMIT: u64 = 1 << 30;

    /// Creates a shell command that runs in the repository.
    pub fn shell(command: impl Into<String>, timeout: Duration) -> Self {
        Self::new(ExecProgram::Shell(command.into()), timeout)
    }

    /// Creates a command without a shell that runs in the repository.
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

    /// Sets the working directory.
    #[must_use]
    pub fn in_dir(mut self, cwd: SandboxPath) -> Self {
        self.cwd = cwd;
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn with_stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets an environment variable for this command.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }
}

/// The stream of a chunk of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives output as it arrives.
pub trait OutputSink: Send {
    /// Receives the next bytes of a stream; a chunk may end anywhere, even inside a character.
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]);
}

/// Supplies further standard input to a running command.
#[async_trait]
pub trait InputSource: Send {
    /// Waits for the next bytes; `None` at the end. Cancelling the wait loses nothing.
    async fn next(&mut self) -> Option<Vec<u8>>;
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    /// The command exited with this code.
    Exited(i32),
    /// A signal that ralph did not send ended the command.
    Signalled(i32),
    /// The process tree was killed at the timeout.
    TimedOut,
    /// The process tree was killed at the output limit.
    OutputLimit,
    /// The process tree was killed because it filled the sandbox's disk.
    DiskLimit,
    /// A process was killed for lack of memory, whatever the exit code.
    OutOfMemory,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutcome {
    pub ended: ExecStatus,
    pub duration: Duration,
    /// Bytes printed on standard output, stored or not.
    pub stdout_bytes: u64,
    /// Bytes printed on standard error, stored or not.
    pub stderr_bytes: u64,
    /// Whether a process could not be started because of the process limit.
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

    /// Returns whether the exit code is 0.
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

/// How to write a file. Missing parent directories are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Atomically replaces the content of the file.
    Replace,
    /// Appends to the file.
    Append,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever its target.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEntry {
    pub name: String,
    pub kind: SandboxEntryKind,
    /// In bytes.
    pub size: u64,
    pub modified: jiff::Timestamp,
}

/// Why a sandbox operation failed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The sandbox no longer exists.
    #[error("sandbox `{0}` is gone")]
    Gone(SandboxId),
    /// A path or a link in it leads outside.
    #[error("path `{0}` leads outside the sandbox")]
    Escapes(String),
    /// The path exists but is neither a regular file nor a directory.
    #[error("`{0}` is not a regular file")]
    NotRegular(String),
    /// The path does not exist.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// The file is larger than the caller's limit.
    #[error("`{path}` has {size} bytes, at most {limit} are read")]
    TooLarge {
        path: String,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// The program cannot be started.
    #[error("cannot start `{program}`: {source}")]
    Spawn {
        program: String,
        source: std::io::Error,
    },
    /// The sandbox was interrupted and runs again; the effects of the operation are unknown.
    #[error("interrupted: {why}")]
    Interrupted { why: String },
    /// The software that the provider depends on does not work.
    #[error("{}", .0.what)]
    Provider(ProviderProblem),
    /// An I/O operation failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation and its path.
        doing: String,
        source: std::io::Error,
    },
}

/// A live sandbox.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Returns the provider's name for the sandbox.
    fn id(&self) -> &SandboxId;
    /// Runs a command to its end. The command reads `exec.stdin` and then, if there is an `input`,
    /// the bytes of that source as they arrive. Dropping the future kills the whole process tree.
    async fn exec(
        &self,
        exec: Exec,
        input: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError>;
    /// Returns the bytes of a regular file of at most `limit` bytes.
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
    /// Removes a file, a link itself or a whole directory. A missing path is not an error.
    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError>;
    /// Waits until everything written in the sandbox, by any program, would survive a power
    /// failure.
    async fn sync(&self) -> Result<(), SandboxError>;
    /// Ends all processes and removes the sandbox. Idempotent. A removed sandbox does not reappear
    /// after a power failure.
    async fn remove(&self) -> Result<(), SandboxError>;
    /// Returns the program inside the sandbox that probes its network, if the provider ships one:
    /// `PROGRAM probe-network --gate ADDRESS --host NAME --direct ADDRESS`.
    fn probe_program(&self) -> Option<&str> {
        None
    }
    /// Returns whether the workspace has the same path in every sandbox of the provider, so that
    /// installed programs can be copied from one to another.
    fn has_fixed_paths(&self) -> bool {
        false
    }
    /// Stops and continues all processes of the sandbox, if the provider supports it.
    fn freezer(&self) -> Option<&dyn Freezer> {
        None
    }

    /// Returns the port preview, if the provider supports it.
    fn preview(&self) -> Option<&dyn Preview> {
        None
    }
}

/// Stops and continues all processes of a sandbox, without any of them noticing.
#[async_trait]
pub trait Freezer: Send + Sync {
    /// Stops all processes. Timeouts of running commands do not advance, and other operations wait.
    async fn freeze(&self) -> Result<(), SandboxError>;
    /// Continues all processes. Idempotent.
    async fn thaw(&self) -> Result<(), SandboxError>;
}

/// Exposes a port of a sandbox to a browser.
pub trait Preview: Send + Sync {
    /// Returns the URL of a port.
    fn url(&self, port: u16) -> String;
}

/// Creates and finds sandboxes of one kind.
#[async_trait]
pub trait SandboxProvider: Send + Sync {
    /// Returns the value for `--sandbox`.
    fn name(&self) -> &'static str;
    /// Returns how well commands are isolated from the host.
    fn isolation(&self) -> Isolation;
    /// Returns the remaining protection of a provider that does not isolate; `None` if it does.
    fn confinement(&self) -> Option<Confinement> {
        None
    }
    /// Checks whether the provider works here and returns the problems. It has no side effects.
    async fn preflight(&self) -> Vec<ProviderProblem>;
    /// Creates a sandbox with an empty repository directory and an empty scratch directory.
    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// Takes over an existing sandbox and ends its processes; `None` if it is gone.
    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError>;
    /// Returns this provider's sandboxes.
    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError>;
}
