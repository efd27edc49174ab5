//! Reads and writes files of a sandbox.
//!
//! Everything goes through a handle of the sandbox's directory that lets no path and no link lead
//! outside. The operations block: each is a handful of system calls on small files in the middle
//! of an iteration, and a detour over another thread would cost more than they do.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::{
    Dir, File, FileType, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};
use ralph_core::ports::{Entry, EntryKind, SandboxError};
use rustix::fs::OFlags;

use super::mark::Name;
use super::refusal::Attempt;

/// The permissions of a new file.
const NEW_FILE_MODE: u32 = 0o644;
/// How many links in a row are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Returns a regular file's bytes if there are at most `limit`.
pub(super) fn read(attempt: &Attempt<'_>, limit: u64) -> Result<Vec<u8>, SandboxError> {
    let path = Path::new(attempt.path.as_str());
    let mut options = OpenOptions::new();
    options.read(true);
    let (file, size) = open_regular(attempt, path, &mut options)?;
    let too_large = |size| SandboxError::TooLarge {
        path: attempt.path.to_string(),
        size,
        limit,
    };
    if size > limit {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // One more than allowed, to notice a file that grows meanwhile.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| attempt.refused(source))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Makes a file out of these bytes, all or nothing. An existing one keeps its permissions.
pub(super) fn replace(attempt: &Attempt<'_>, bytes: &[u8]) -> Result<(), SandboxError> {
    let refused = |source| attempt.refused(source);
    let (target, existing) = follow_links(attempt)?;
    let mode = match existing {
        Some(metadata) if !metadata.is_file() => return Err(attempt.not_regular()),
        Some(metadata) => metadata.mode() & 0o777,
        None => NEW_FILE_MODE,
    };
    let name = target.file_name().ok_or_else(|| attempt.not_regular())?;
    let parent = make_parent(attempt.dir, &target).map_err(refused)?;
    // The temporary file is beside the repository, where a crash leaves nothing to commit. Nothing
    // is synced: what has to survive a power cut is kept outside of the sandbox.
    let temporary = PathBuf::from(format!(".write-{}", Name::random().id()));
    let written = write_new(attempt.dir, &temporary, bytes, mode)
        .and_then(|()| attempt.dir.rename(&temporary, &parent, name));
    if written.is_err() {
        attempt.dir.remove_file(&temporary).ok();
    }
    written.map_err(refused)
}

/// Puts bytes at the end of a file.
pub(super) fn append(attempt: &Attempt<'_>, bytes: &[u8]) -> Result<(), SandboxError> {
    let refused = |source| attempt.refused(source);
    let (target, existing) = follow_links(attempt)?;
    if existing.is_none() {
        make_parent(attempt.dir, &target).map_err(refused)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(NEW_FILE_MODE);
    let (mut file, _) = open_regular(attempt, &target, &mut options)?;
    file.write_all(bytes).map_err(refused)
}

/// Returns the entries of a directory, sorted by name.
pub(super) fn list(attempt: &Attempt<'_>) -> Result<Vec<Entry>, SandboxError> {
    let refused = |source| attempt.refused(source);
    let entries = attempt
        .dir
        .read_dir(attempt.path.as_str())
        .map_err(refused)?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(refused)?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(refused(error)),
        };
        let modified = metadata.modified().map_err(refused)?.into_std();
        found.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            kind: kind(metadata.file_type()),
            size: metadata.len(),
            modified: timestamp(modified),
        });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Returns the nearest time that can be told: a command can give a file any other.
fn timestamp(time: SystemTime) -> jiff::Timestamp {
    let nearest = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(_) => jiff::Timestamp::MAX,
        Err(_) => jiff::Timestamp::MIN,
    };
    time.try_into().unwrap_or(nearest)
}

fn kind(file_type: FileType) -> EntryKind {
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Special
    }
}

/// Opens a regular file and returns its size. Opening a pipe could wait forever and opening a
/// device could do anything, so it is looked at before, and again in case it was exchanged.
fn open_regular(
    attempt: &Attempt<'_>,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<(File, u64), SandboxError> {
    match attempt.dir.metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(attempt.not_regular()),
        // A missing one may be about to be made; opening it says the rest.
        Ok(_) | Err(_) => {}
    }
    let never_wait = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(never_wait.bits().cast_signed());
    let opened = attempt.dir.open_with(path, options);
    let file = opened.map_err(|source| attempt.refused(source))?;
    let metadata = file.metadata().map_err(|source| attempt.refused(source))?;
    if metadata.is_file() {
        Ok((file, metadata.len()))
    } else {
        Err(attempt.not_regular())
    }
}

/// Returns where a path leads in the end and what is there. The last link may lead to nothing yet.
fn follow_links(attempt: &Attempt<'_>) -> Result<(PathBuf, Option<Metadata>), SandboxError> {
    let mut target = PathBuf::from(attempt.path.as_str());
    for _ in 0..MAX_LINKS {
        let metadata = match attempt.dir.symlink_metadata(&target) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((target, None)),
            Err(error) => return Err(attempt.refused(error)),
        };
        if !metadata.is_symlink() {
            return Ok((target, Some(metadata)));
        }
        let link = attempt.dir.read_link_contents(&target);
        let link = link.map_err(|source| attempt.refused(source))?;
        // A link with a root replaces the whole path here and is refused in the next round.
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(attempt.refused(rustix::io::Errno::LOOP.into()))
}

fn make_parent(dir: &Dir, path: &Path) -> io::Result<Dir> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    match dir.open_dir(parent) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            dir.create_dir_all(parent)?;
            dir.open_dir(parent)
        }
        opened => opened,
    }
}

fn write_new(dir: &Dir, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = dir.open_with(path, &options)?;
    file.write_all(bytes)?;
    // Set afterwards, so that it does not depend on the mask of this process.
    file.set_permissions(Permissions::from_mode(mode))
}
