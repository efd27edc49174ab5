//! Records the last check for a newer version of each base image.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::logged::logged;
use ralph_core::image::{ImageName, RegistryChecks};

/// The file name in the given directory.
const CHECKS_FILE: &str = "base-checks.json";

/// A larger file was not written by ralph.
const MAX_BYTES: u64 = 1 << 20;

/// A file with the time and result of the checks.
#[derive(Debug, Clone)]
pub(super) struct BaseCheckStore {
    directory: PathBuf,
}

impl BaseCheckStore {
    /// Stores the file in `directory`, which is created on demand.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the checks of an image. An unreadable file counts as empty: an extra check does no
    /// harm.
    pub(super) fn get(&self, image: &ImageName) -> RegistryChecks {
        self.load_all().remove(image.as_str()).unwrap_or_default()
    }

    /// Records the checks of an image.
    pub(super) fn record(&self, image: &ImageName, checks: RegistryChecks) -> io::Result<()> {
        let mut all = self.load_all();
        all.insert(image.to_string(), checks);
        let mut text = serde_json::to_vec_pretty(&all)?;
        text.push(b'\n');
        fs::create_dir_all(&self.directory)?;
        // Written to a temporary file and renamed, so that readers never see a partial file.
        let path = self.directory.join(CHECKS_FILE);
        let temporary = self
            .directory
            .join(format!("{CHECKS_FILE}.{}", std::process::id()));
        let written = fs::File::create(&temporary).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&temporary, &path))
            .inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    fn load_all(&self) -> BTreeMap<String, RegistryChecks> {
        let path = self.directory.join(CHECKS_FILE);
        let is_ours =
            fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
        if !is_ours {
            return BTreeMap::new();
        }
        let doing = "read the times of image checks";
        logged(doing, fs::read(&path))
            .and_then(|bytes| logged(doing, serde_json::from_slice(&bytes)))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_checks_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let images = directory.path().join("images");
        let name = |text: &str| ImageName::parse(text).unwrap();
        let now = Some("2026-11-15T21:46:05Z".parse().unwrap());
        let both = RegistryChecks {
            succeeded: now,
            tried: now,
        };
        let tried = RegistryChecks {
            succeeded: None,
            tried: now,
        };

        let store = BaseCheckStore::new(images.clone());
        assert_eq!(store.get(&name("x:1")), RegistryChecks::default());
        store.record(&name("x:1"), both).unwrap();
        store.record(&name("y:1"), tried).unwrap();

        let store = BaseCheckStore::new(images.clone());
        assert_eq!(
            [store.get(&name("x:1")), store.get(&name("y:1"))],
            [both, tried]
        );
        let files: Vec<_> = fs::read_dir(&images)
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        assert_eq!(files, [CHECKS_FILE]);
    }

    #[test]
    fn a_damaged_file_reads_as_empty_and_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(CHECKS_FILE), "{\"x:1\": 7").unwrap();
        let store = BaseCheckStore::new(directory.path().to_owned());
        let name = ImageName::parse("x:1").unwrap();
        assert_eq!(store.get(&name), RegistryChecks::default());
        let checks = RegistryChecks {
            succeeded: None,
            tried: Some("2026-11-15T21:46:05Z".parse().unwrap()),
        };
        store.record(&name, checks).unwrap();
        assert_eq!(store.get(&name), checks);
    }
}
