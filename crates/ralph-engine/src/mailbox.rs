//! Delivers user commands to a running process as files in the run's directory.
//!
//! A file survives a crash and needs neither a port nor a socket. Its removal is the receipt; the
//! response is an event in the journal.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ralph_core::run::Command;
use serde::{Deserialize, Serialize};

use crate::durable::{self, StoreError};

/// A queued user command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandFile {
    /// Also in the response in the journal.
    pub id: String,
    pub command: Command,
}

/// The directory of queued commands.
#[derive(Debug, Clone)]
pub struct Mailbox {
    dir: PathBuf,
}

impl Mailbox {
    /// Uses a run's command directory.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Queues a command. `id` must sort after those of earlier commands.
    pub fn send(&self, id: &str, command: Command) -> Result<(), StoreError> {
        durable::create_dir(&self.dir)?;
        let file = CommandFile {
            id: id.to_owned(),
            command,
        };
        let path = self.path(id);
        let text = serde_json::to_vec(&file)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", &path))?;
        durable::write(&path, &text)
    }

    /// Returns the oldest queued command. It stays until [`Mailbox::discard`].
    pub fn next(&self) -> Option<CommandFile> {
        let names = match self.waiting() {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!("cannot list `{}`: {error}", self.dir.display());
                return None;
            }
        };
        names.iter().find_map(|path| read_command(path))
    }

    /// Returns the files of queued commands, oldest first.
    fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.dir)?;
        let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| is_command_file(path));
        paths.sort();
        Ok(paths)
    }

    /// Removes a command whose response is in the journal. If the removal fails, the command is
    /// received again and ignored.
    pub fn discard(&self, id: &str) {
        durable::remove_leftover(&self.path(id));
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }
}

/// Reads a command. An invalid file is removed: commands are written atomically, so it has another
/// origin.
fn read_command(path: &Path) -> Option<CommandFile> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("cannot read `{}`: {error}", path.display());
            }
            return None;
        }
    };
    match serde_json::from_slice(&text) {
        Ok(command) => Some(command),
        Err(error) => {
            tracing::warn!("`{}` is not a command: {error}", path.display());
            durable::remove_leftover(path);
            None
        }
    }
}

fn is_command_file(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden
        && path
            .extension()
            .is_some_and(|extension| extension == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_arrive_in_order_and_stay_until_answered() {
        let dir = tempfile::tempdir().unwrap();
        let mailbox = Mailbox::new(dir.path().join("commands"));
        assert_eq!(mailbox.next(), None);
        mailbox.send("002", Command::Stop).unwrap();
        mailbox.send("001", Command::Pause).unwrap();
        fs::write(dir.path().join("commands/000.json"), "nonsense").unwrap();
        let first = CommandFile {
            id: "001".into(),
            command: Command::Pause,
        };
        assert_eq!(mailbox.next(), Some(first.clone()));
        assert_eq!(mailbox.next(), Some(first));
        mailbox.discard("001");
        assert_eq!(mailbox.next().unwrap().command, Command::Stop);
    }
}
