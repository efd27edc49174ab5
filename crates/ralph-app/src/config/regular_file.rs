//! Reads task and configuration files: only regular files inside their repository.

use std::fs::FileType;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use ralph_guest::files::{ConfinedDir, ConfinedFileError};

/// The reason why a task or configuration file is not read.
#[derive(Debug, thiserror::Error)]
pub enum RegularFileError {
    /// The system could not read the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Reading the file could block forever or have side effects.
    #[error("it is {kind}, not a regular file")]
    NotRegular {
        /// The actual kind of file.
        kind: &'static str,
    },
    /// A symbolic link leads out of the permitted directory.
    #[error("it points to `{}`, outside of `{}`", real.display(), root.display())]
    OutsideRoot {
        /// The target of the link.
        real: PathBuf,
        /// The directory that must contain the file.
        root: PathBuf,
    },
}

impl RegularFileError {
    /// Returns the fix for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io(_) => "make it readable, or remove it",
            Self::NotRegular { .. } => "replace it with a regular file, or remove it",
            Self::OutsideRoot { .. } => {
                "name the target of the link, or replace the link with a copy"
            }
        }
    }

    /// Returns whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// The content of a regular file.
#[derive(Debug)]
pub struct RegularFile {
    /// The first bytes, up to the requested limit.
    pub bytes: Vec<u8>,
    /// In bytes.
    pub size: u64,
}

/// Reads at most `limit` bytes of a regular file that is below `root` after resolving symbolic
/// links. Never blocks: pipes and devices are rejected before they are opened.
pub fn read_regular(path: &Path, root: &Path, limit: u64) -> Result<RegularFile, RegularFileError> {
    let root = root.canonicalize()?;
    let real = path.canonicalize()?;
    let Ok(inside) = real.strip_prefix(&root) else {
        return Err(RegularFileError::OutsideRoot { real, root });
    };
    let kind = real.metadata()?.file_type();
    if !kind.is_file() {
        return Err(RegularFileError::NotRegular {
            kind: kind_name(kind),
        });
    }
    let opened = ConfinedDir::open(&root)?.open_file(inside);
    let opened = opened.map_err(|refusal| match refusal {
        ConfinedFileError::Escapes => RegularFileError::OutsideRoot {
            real: real.clone(),
            root: root.clone(),
        },
        ConfinedFileError::NotRegular => RegularFileError::NotRegular {
            kind: "another kind of file now",
        },
        ConfinedFileError::NotFound => io::Error::from(io::ErrorKind::NotFound).into(),
        ConfinedFileError::Io(error) => error.into(),
    })?;
    let size = opened.size();
    let mut bytes = opened.read_bounded(limit)?;
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(RegularFile { bytes, size })
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Reads at most `limit` bytes of a file that the user named, relative to `directory`. A path in
/// the repository of that directory must not lead out of it; any other path must not lead out of
/// its own repository, or else its directory.
pub fn read_user_named(
    file: &Path,
    directory: &Path,
    limit: u64,
) -> Result<RegularFile, RegularFileError> {
    let path = normalized(&directory.join(file));
    let here = enclosing_repository(directory).filter(|root| path.starts_with(root));
    let parent = path.parent().unwrap_or(Path::new("/"));
    let root = here.unwrap_or_else(|| project_root(parent));
    read_regular(&path, root, limit)
}

/// Returns the path without `.` and `..`, without accessing the file system.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Returns the root of the repository that contains a directory.
fn enclosing_repository(directory: &Path) -> Option<&Path> {
    let mut above = directory.ancestors();
    above.find(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Returns the root of the repository that contains a directory, or the directory itself.
pub fn project_root(directory: &Path) -> &Path {
    enclosing_repository(directory).unwrap_or(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read_error(file: &str, directory: &Path) -> String {
        match read_user_named(Path::new(file), directory, 5) {
            Ok(read) => String::from_utf8(read.bytes).unwrap(),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn only_regular_files_of_the_repository_are_read() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for repository in ["one", "two"] {
            fs::create_dir_all(root.join(repository).join(".git")).unwrap();
            fs::create_dir(root.join(repository).join("sub")).unwrap();
            fs::write(root.join(repository).join("task.md"), repository).unwrap();
        }
        let one = root.join("one");
        symlink("../two/task.md", one.join("link.md")).unwrap();
        symlink(root.join("two"), one.join("dir")).unwrap();
        symlink("../task.md", one.join("sub/inner.md")).unwrap();
        symlink("/dev/zero", one.join("zero")).unwrap();
        symlink("nowhere", one.join("broken")).unwrap();
        let fifo = one.join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let out = |real: &str| format!("it points to `{real}`, outside of `{}`", one.display());
        let other = root.join("two/task.md").display().to_string();
        for (file, expected) in [
            ("task.md", "one".to_owned()),
            ("./sub/../task.md", "one".to_owned()),
            ("sub/inner.md", "one".to_owned()),
            ("../two/task.md", "two".to_owned()),
            (other.as_str(), "two".to_owned()),
            ("link.md", out(&other)),
            ("dir/task.md", out(&other)),
            ("zero", out("/dev/zero")),
            ("fifo", "it is a named pipe, not a regular file".to_owned()),
            ("sub", "it is a directory, not a regular file".to_owned()),
        ] {
            assert_eq!(read_error(file, &one), expected, "{file}");
        }
        assert!(read_error("/dev/null", &one).starts_with("it is a device"));
        let missing = read_user_named(Path::new("broken"), &one, 5).unwrap_err();
        assert!(missing.is_missing(), "{missing}");
        fs::write(one.join("long"), "0123456789").unwrap();
        let long = read_user_named(Path::new("long"), &one, 5).unwrap();
        assert_eq!((long.bytes.as_slice(), long.size), (&b"01234"[..], 10));
    }
}
