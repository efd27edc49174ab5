//! Repairs the end of line-based files after a crash: an incomplete last line is moved aside.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::durable::{self, StoreError};

/// Moves the bytes after the last newline of a line-based file into the directory `recovered`, so
/// that the file has only complete lines and nothing is lost.
pub(crate) fn repair_tail(path: &Path, recovered: &Path) -> Result<(), StoreError> {
    if ends_with_newline(path).map_err(StoreError::when("read", path))? {
        return Ok(());
    }
    let bytes = fs::read(path).map_err(StoreError::when("read", path))?;
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let piece = &bytes[whole..];
    durable::create_dir(recovered)?;
    durable::write(&recovered_path(recovered, path, whole, piece), piece)?;
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(StoreError::when("open", path))?;
    file.set_len(whole as u64)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::when("repair", path))
}

/// Returns whether a file ends with a newline; a missing or empty one counts as such.
fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        file => file?,
    };
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

/// Returns the path for a torn part, named after its file and position, without overwriting another
/// one.
fn recovered_path(recovered: &Path, path: &Path, whole: usize, piece: &[u8]) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let first = recovered.join(format!("{stem}-{whole}.part"));
    let others = (2_u32..).map(|count| recovered.join(format!("{stem}-{whole}-{count}.part")));
    let is_free = |name: &PathBuf| fs::read(name).map_or(true, |kept| kept == piece);
    std::iter::once(first.clone())
        .chain(others)
        .find(is_free)
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_moved_aside_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (path, recovered) = (
            dir.path().join("activity.log"),
            dir.path().join("recovered"),
        );
        repair_tail(&path, &recovered).unwrap();
        for (text, whole) in [
            ("", ""),
            ("one\n", "one\n"),
            ("one\ntw", "one\n"),
            ("one\nthr", "one\n"),
            // As after a crash in the middle of the repair.
            ("one\nthr", "one\n"),
            ("torn", ""),
        ] {
            fs::write(&path, text).unwrap();
            repair_tail(&path, &recovered).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), whole, "{text:?}");
        }
        let mut kept: Vec<(String, String)> = fs::read_dir(&recovered)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        kept.sort();
        let kept: Vec<(&str, &str)> = kept.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        assert_eq!(
            kept,
            [
                ("activity-0.part", "torn"),
                ("activity-4-2.part", "thr"),
                ("activity-4.part", "tw"),
            ]
        );
    }
}
