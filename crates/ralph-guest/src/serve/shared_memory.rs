//! Removes shared memory that commands leave behind: it counts against the memory of the sandbox
//! and could cause later commands to be killed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::command::{self, User};
use crate::files::remove_entry;
use crate::{available, best_effort};

/// The directories of POSIX shared memory and message queues.
const DIRECTORIES: [&str; 2] = ["/dev/shm", "/dev/mqueue"];
/// System V objects, and the option of `ipcrm` that removes each kind.
const SYSV_OBJECTS: [(&str, &str); 3] = [
    ("/proc/sysvipc/shm", "-m"),
    ("/proc/sysvipc/msg", "-q"),
    ("/proc/sysvipc/sem", "-s"),
];
/// The maximum number of objects removed per call.
const MAX_OBJECTS: usize = 1000;
/// The time limit of a removal.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The shared memory of a container, used by concurrent and consecutive commands.
#[derive(Debug)]
pub(super) struct SharedMemory {
    running: AtomicUsize,
    user: Option<User>,
    search_path: OsString,
}

impl SharedMemory {
    pub(super) fn new(user: Option<User>, search_path: &OsStr) -> Self {
        Self {
            running: AtomicUsize::new(0),
            user,
            search_path: search_path.to_owned(),
        }
    }

    /// Registers a starting command.
    pub(super) fn begin_use(&self) -> SharedMemoryUse<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        SharedMemoryUse(self)
    }

    /// Removes everything, unless another command is running.
    pub(super) async fn end_use(&self, command: SharedMemoryUse<'_>) {
        drop(command);
        if self.running.load(Ordering::Relaxed) > 0 {
            return;
        }
        for directory in DIRECTORIES {
            clear_directory(directory);
        }
        let objects = removal_arguments();
        if !objects.is_empty() {
            self.remove_objects(objects).await;
        }
    }

    /// Removes System V objects with the image's own program, because only their owner may do so.
    async fn remove_objects(&self, mut arguments: Vec<String>) {
        arguments.truncate(2 * MAX_OBJECTS);
        let Some(program) = command::find_program(&self.search_path, "ipcrm") else {
            return;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        if let Some(User { user, group }) = self.user {
            command.uid(user).gid(group);
        }
        // An object that was already removed is not an error.
        best_effort(timeout(REMOVAL_TIMEOUT, command.status()).await);
    }
}

/// A command that may use the shared memory.
#[derive(Debug)]
pub(super) struct SharedMemoryUse<'a>(&'a SharedMemory);

impl Drop for SharedMemoryUse<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes the entries of a directory, skipping those that cannot be removed.
fn clear_directory(directory: &str) {
    let Ok(dir) = Dir::open_ambient_dir(directory, ambient_authority()) else {
        return;
    };
    for entry in dir.entries().into_iter().flatten().flatten() {
        best_effort(remove_entry(&dir, &entry.file_name()));
    }
}

/// Returns the arguments for all System V objects.
fn removal_arguments() -> Vec<String> {
    let files = SYSV_OBJECTS.iter();
    files
        .flat_map(|(file, option)| {
            // A kernel without such objects has no table.
            let table = available(fs::read_to_string(file));
            parse_ids(&table.unwrap_or_default())
                .into_iter()
                .flat_map(move |id| [(*option).to_owned(), id])
        })
        .collect()
}

/// Returns the second column of a table with a heading.
fn parse_ids(table: &str) -> Vec<String> {
    let rows = table.lines().skip(1);
    rows.filter_map(|row| row.split_ascii_whitespace().nth(1))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_from_the_table() {
        let table =
            "       key      shmid perms\n         0          3  1600\n  -17          4   600\n";
        assert_eq!(parse_ids(table), ["3", "4"]);
        assert_eq!(
            parse_ids("       key      shmid perms\n"),
            Vec::<String>::new()
        );
    }
}
