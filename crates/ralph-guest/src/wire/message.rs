//! What host and guest say to each other. Every message is a JSON object; what one side does not
//! know in it, it ignores.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::command::{CommandLine, CommandOutcome};
use crate::files::{ConfinedFileError, GuestEntryKind};

/// The version of the protocol. Host and guest are built together, so both must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// What the host says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    /// The version that the host speaks.
    pub protocol: u32,
}

/// What the guest says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestWelcome {
    /// The version that the guest speaks.
    pub protocol: u32,
    /// The user that commands run as.
    pub user: u32,
}

/// What the host asks for, one stream each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestRequest {
    /// Opens the conversation.
    Hello(HostHello),
    /// Answers at once, to show that somebody is there.
    Ping,
    /// Runs a command.
    Exec(ExecRequest),
    /// Sends a regular file if it has at most `limit` bytes.
    Read {
        /// The file.
        path: String,
        /// The most bytes that are wanted.
        limit: u64,
    },
    /// Writes a regular file from the bytes that follow.
    Write {
        /// The file.
        path: String,
        /// How.
        way: FileWriteMode,
    },
    /// Sends the entries of a directory, a line of JSON each.
    List {
        /// The directory.
        path: String,
    },
    /// Makes a directory and the missing ones above it.
    MakeDirectory {
        /// The directory.
        path: String,
    },
    /// Tells what is at a path.
    Stat {
        /// The path.
        path: String,
    },
    /// Removes whatever is at a path.
    Delete {
        /// The path.
        path: String,
    },
    /// Answers when everything that was written in the sandbox is on disk.
    Sync,
    /// Listens on an address inside and opens a stream to the host for each connection.
    Listen {
        /// What the host calls it.
        name: String,
        /// The address, as `127.0.0.1:3128`.
        address: String,
        /// What it listens for.
        #[serde(default)]
        listening: ListenKind,
    },
}

/// What is listened for inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenKind {
    /// Connections; each is a stream.
    #[default]
    Connections,
    /// Datagrams; each is a stream that carries it, after its length in two bytes, and the answer
    /// in the same form.
    Datagrams,
}

/// How to write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileWriteMode {
    /// The whole file becomes the bytes, all or nothing.
    Replace,
    /// The bytes are put at the end.
    Append,
}

/// A command to run. Its input follows as bytes; its output comes back as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// What to run.
    pub program: CommandLine,
    /// Where, below the root of the sandbox.
    pub cwd: String,
    /// Environment on top of the guest's.
    pub env: BTreeMap<String, String>,
    /// Whether input follows; without, the command reads from nothing.
    pub input: bool,
    /// When the whole tree is killed.
    pub timeout_ms: u64,
    /// How many bytes it may print before the whole tree is killed.
    pub output_limit: u64,
}

/// A signal to the process group of a command that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRequest {
    /// Its number.
    pub signal: i32,
}

/// What the guest answers, once per request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestReply {
    /// The conversation is open.
    Welcome(GuestWelcome),
    /// It is done.
    Done,
    /// The command has ended; its output came before.
    Ended(CommandOutcome),
    /// What is at the path.
    Stat(PathStat),
    /// The program could not be started.
    NotStarted(GuestFailure),
    /// The file has more bytes than wanted.
    TooLarge {
        /// How many.
        size: u64,
    },
    /// It was not done.
    Failed(GuestFailure),
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStat {
    /// What it is.
    pub kind: GuestEntryKind,
    /// Its size in bytes.
    pub size: u64,
}

/// What the guest opens a stream with when something inside connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectRequest {
    /// What the host calls the address that is listened on.
    pub listener: String,
    /// The address that was really connected to.
    pub local: SocketAddr,
    /// Who connected.
    pub peer: SocketAddr,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestFailure {
    /// The path or a link on the way leads outside.
    Escapes,
    /// There is something, but no regular file or directory.
    NotRegular,
    /// There is nothing.
    NotFound,
    /// The system refused.
    System {
        /// Its number for that, if it has one.
        number: Option<i32>,
        /// Its words for that.
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
