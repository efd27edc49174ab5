//! Removes whole directories in any state that a command left them in.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::Path;

use cap_std::fs::{Dir, Permissions, PermissionsExt as _};

/// The number of attempts to remove a directory that is being filled concurrently.
const MAX_ROUNDS: usize = 10;

/// Removes a directory entry: a file, a link itself, or a directory with its content. A missing
/// entry is not an error.
pub fn remove_entry(parent: &Dir, name: &OsStr) -> io::Result<()> {
    let result = match parent.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => remove_directory(parent, name),
        Ok(_) => parent.remove_file(name),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn remove_directory(parent: &Dir, name: &OsStr) -> io::Result<()> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        remove_contents(&open_directory(parent, name)?)?;
        match parent.remove_dir(name) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && rounds < MAX_ROUNDS => {}
            result => return result,
        }
    }
}

/// Removes all entries of a directory. Nested directories are first moved up into it, so that
/// neither the stack nor the number of open files limits their depth.
fn remove_contents(top: &Dir) -> io::Result<()> {
    let mut pending: Vec<OsString> = Vec::new();
    let mut moved = 0_u64;
    remove_files(top, |name| {
        pending.push(name.into());
        Ok(())
    })?;
    while let Some(name) = pending.pop() {
        let dir = match open_directory(top, &name) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        remove_files(&dir, |inner| {
            // Moving a directory changes its `..` entry, which needs write access.
            make_accessible(&dir, inner)?;
            pending.push(move_up(&dir, inner, top, &mut moved)?);
            Ok(())
        })?;
        match top.remove_dir(&name) {
            // The directory is being filled concurrently; the next round tries again.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            result => result?,
        }
    }
    Ok(())
}

/// Removes the entries of a directory that are not directories and passes the names of the others
/// to `on_directory`.
fn remove_files(
    dir: &Dir,
    mut on_directory: impl FnMut(&OsStr) -> io::Result<()>,
) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let result = if entry.file_type()?.is_dir() {
            on_directory(&name)
        } else {
            dir.remove_file(&name)
        };
        match result {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

fn move_up(dir: &Dir, name: &OsStr, top: &Dir, moved: &mut u64) -> io::Result<OsString> {
    loop {
        let new_name = OsString::from(format!(".erase-{moved}"));
        *moved += 1;
        match dir.rename(name, top, &new_name) {
            Ok(()) => return Ok(new_name),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty
                        | ErrorKind::AlreadyExists
                        | ErrorKind::NotADirectory
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

fn open_directory(parent: &Dir, name: &OsStr) -> io::Result<Dir> {
    make_accessible(parent, name)?;
    parent.open_dir(Path::new(name))
}

fn make_accessible(parent: &Dir, name: &OsStr) -> io::Result<()> {
    parent.set_permissions(Path::new(name), Permissions::from_mode(0o700))
}
