//! Remembers when a newer version of an image was looked for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use ralph_core::image::{Checks, ImageName};

/// The file in the directory that is given.
const FILE: &str = "base-checks.json";

/// A larger file was not written here.
const MAX_BYTES: u64 = 1 << 20;

/// The memory, a file.
#[derive(Debug, Clone)]
pub(super) struct CheckMemory {
    directory: PathBuf,
}

impl CheckMemory {
    /// Remembers in this directory, which is made when it is needed.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns what is known about an image. A file that cannot be read knows nothing: looking
    /// once more does no harm.
    pub(super) fn of(&self, image: &ImageName) -> Checks {
        self.read().remove(image.as_str()).unwrap_or_default()
    }

    /// Remembers.
    pub(super) fn remember(&self, image: &ImageName, checks: Checks) -> io::Result<()> {
        let mut all = self.read();
        all.insert(image.to_string(), checks);
        let mut text = serde_json::to_vec_pretty(&all)?;
        text.push(b'\n');
        fs::create_dir_all(&self.directory)?;
        // Beside it and then in its place, so that nobody ever reads half a file.
        let path = self.directory.join(FILE);
        let beside = self
            .directory
            .join(format!("{FILE}.{}", std::process::id()));
        let written = fs::File::create(&beside).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&beside, &path))
            .inspect_err(|_| drop(fs::remove_file(&beside)))
    }

    fn read(&self) -> BTreeMap<String, Checks> {
        let path = self.directory.join(FILE);
        let is_ours =
            fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
        if !is_ours {
            return BTreeMap::new();
        }
        fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_known_later() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("images");
        let name = |text: &str| ImageName::parse(text).unwrap();
        let now = "2026-11-15T21:46:05Z".parse().ok();
        let both = Checks {
            succeeded: now,
            tried: now,
        };
        let tried = Checks {
            succeeded: None,
            tried: now,
        };

        let memory = CheckMemory::new(place.clone());
        assert_eq!(memory.of(&name("x:1")), Checks::default());
        memory.remember(&name("x:1"), both).unwrap();
        memory.remember(&name("y:1"), tried).unwrap();

        let memory = CheckMemory::new(place.clone());
        assert_eq!(
            [memory.of(&name("x:1")), memory.of(&name("y:1"))],
            [both, tried]
        );
        let files: Vec<_> = fs::read_dir(&place)
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        assert_eq!(files, [FILE]);
    }

    #[test]
    fn a_damaged_memory_knows_nothing_and_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{\"x:1\": 7").unwrap();
        let memory = CheckMemory::new(directory.path().to_owned());
        let name = ImageName::parse("x:1").unwrap();
        assert_eq!(memory.of(&name), Checks::default());
        let checks = Checks {
            succeeded: None,
            tried: "2026-11-15T21:46:05Z".parse().ok(),
        };
        memory.remember(&name, checks).unwrap();
        assert_eq!(memory.of(&name), checks);
    }
}
