//! How a person's command reaches a running process: a file in the run's directory.
//!
//! A file survives a crash, needs no port and no socket, and its removal is the receipt; the answer
//! is an event in the journal.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_core::run::Command;
use serde::{Deserialize, Serialize};

use crate::durable::{self, StoreError};

/// A command on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandFile {
    /// Its name; the journal's answer carries it.
    pub id: String,
    /// What is asked.
    pub command: Command,
}

/// The directory where commands wait.
#[derive(Debug, Clone)]
pub struct Mailbox {
    dir: PathBuf,
}

impl Mailbox {
    /// Uses a run's command directory.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Leaves a command. `id` must sort after those of earlier commands.
    pub fn send(&self, id: &str, command: Command) -> Result<(), StoreError> {
        durable::create_dir(&self.dir)?;
        let letter = CommandFile {
            id: id.to_owned(),
            command,
        };
        let text = serde_json::to_vec(&letter).unwrap_or_default();
        durable::write(&self.path(id), &text)
    }

    /// Returns the oldest command that waits. It stays until [`Mailbox::discard`].
    pub fn next(&self) -> Option<CommandFile> {
        let mut names: Vec<PathBuf> = fs::read_dir(&self.dir)
            .ok()?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| is_command_file(path))
            .collect();
        names.sort();
        names.iter().find_map(|path| {
            let letter = fs::read(path)
                .ok()
                .and_then(|text| serde_json::from_slice(&text).ok());
            if letter.is_none() {
                // Nothing that can be understood ever appears under such a name: not ours.
                fs::remove_file(path).ok();
            }
            letter
        })
    }

    /// Removes a command that has been answered.
    pub fn discard(&self, id: &str) {
        // Already gone is what we want; anything else shows up as the same command again.
        fs::remove_file(self.path(id)).ok();
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
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
