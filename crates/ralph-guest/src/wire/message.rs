//! The messages between host and guest. Every message is a JSON object; unknown fields are ignored.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::command::{CommandLine, CommandOutcome};
use crate::files::{ConfinedFileError, GuestEntryKind};

/// The protocol version. Host and guest are built together, so both must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// The first message of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub protocol: u32,
}

/// The first message of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestWelcome {
    pub protocol: u32,
    /// The user ID of commands.
    pub user: u32,
}

/// A request of the host; each has its own stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestRequest {
    /// Starts the session.
    Hello(HostHello),
    /// Answered immediately, to check the connection.
    Ping,
    /// Runs a command.
    Exec(ExecRequest),
    /// Sends a regular file if it has at most `limit` bytes.
    Read {
        path: String,
        /// In bytes.
        limit: u64,
    },
    /// Writes a regular file from the bytes that follow.
    Write { path: String, way: FileWriteMode },
    /// Sends the entries of a directory, one JSON line each.
    List { path: String },
    /// Creates a directory and its missing parents.
    MakeDirectory { path: String },
    /// Returns the type and size of a path.
    Stat { path: String },
    /// Removes the entry at a path.
    Delete { path: String },
    /// Waits until everything written in the sandbox is on disk.
    Sync,
    /// Listens on an address inside the sandbox and opens a stream to the host for each connection.
    Listen {
        /// The host's name for the listener.
        name: String,
        /// For example `127.0.0.1:3128`.
        address: String,
        #[serde(default)]
        listening: ListenKind,
    },
}

/// The kind of a listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenKind {
    /// Connections; each becomes a stream.
    #[default]
    Connections,
    /// Datagrams; each becomes a stream that contains the datagram, prefixed with its two-byte
    /// length, and the response in the same form.
    Datagrams,
}

/// The way to write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileWriteMode {
    /// Replaces the whole file atomically.
    Replace,
    /// Appends the bytes.
    Append,
}

/// A command to run. Its input follows as bytes; its output is returned as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    pub program: CommandLine,
    /// The working directory, relative to the root of the sandbox.
    pub cwd: String,
    /// Variables added to the environment of the image.
    pub env: BTreeMap<String, String>,
    /// Whether input follows; otherwise standard input is empty.
    pub input: bool,
    /// The time after which the whole tree is killed, in milliseconds.
    pub timeout_ms: u64,
    /// The output in bytes after which the whole tree is killed.
    pub output_limit: u64,
}

/// A signal for the process group of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRequest {
    pub signal: i32,
}

/// The reply of the guest, one per request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestReply {
    /// The session is open.
    Welcome(GuestWelcome),
    /// The request succeeded.
    Done,
    /// The command has ended; its output was sent before.
    Ended(CommandOutcome),
    /// The type and size of a path.
    Stat(PathStat),
    /// The program could not be started.
    NotStarted(GuestFailure),
    /// The file is larger than the limit.
    TooLarge {
        /// In bytes.
        size: u64,
    },
    /// The request failed.
    Failed(GuestFailure),
}

/// The type and size of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStat {
    pub kind: GuestEntryKind,
    /// In bytes.
    pub size: u64,
}

/// The first message of a stream that the guest opens for a connection inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectRequest {
    /// The host's name for the listener.
    pub listener: String,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// The address of the client.
    pub peer: SocketAddr,
}

/// The reason a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestFailure {
    /// The path or a link in it leads outside the sandbox.
    Escapes,
    /// The entry is not a regular file.
    NotRegular,
    /// The entry does not exist.
    NotFound,
    /// The system reported an error.
    System {
        /// The error number, if any.
        number: Option<i32>,
        text: String,
    },
}

impl From<ConfinedFileError> for GuestFailure {
    fn from(refusal: ConfinedFileError) -> Self {
        match refusal {
            ConfinedFileError::Escapes => Self::Escapes,
            ConfinedFileError::NotRegular => Self::NotRegular,
            ConfinedFileError::NotFound => Self::NotFound,
            ConfinedFileError::Io(error) => Self::from(error),
        }
    }
}

impl From<io::Error> for GuestFailure {
    fn from(error: io::Error) -> Self {
        Self::System {
            number: error.raw_os_error(),
            text: error.to_string(),
        }
    }
}

impl From<GuestFailure> for ConfinedFileError {
    fn from(failure: GuestFailure) -> Self {
        match failure {
            GuestFailure::Escapes => Self::Escapes,
            GuestFailure::NotRegular => Self::NotRegular,
            GuestFailure::NotFound => Self::NotFound,
            GuestFailure::System {
                number: Some(number),
                ..
            } => Self::Io(io::Error::from_raw_os_error(number)),
            GuestFailure::System { number: None, text } => Self::Io(io::Error::other(text)),
        }
    }
}
