//! SHA-256 of bytes, files and prefixes of a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

const CHUNK: usize = 1 << 16;

/// Returns the digest of bytes in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

fn hex(hasher: Sha256) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// Returns the digest of a whole file.
pub(super) fn file_sha256(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(hex(hasher));
        }
        hasher.update(&chunk[..read]);
    }
}

/// Returns the digests of prefixes of a file in one pass. `lengths` are ascending; a length beyond
/// the end has no digest. A missing file counts as empty.
pub(super) fn prefix_digests(path: &Path, lengths: &[u64]) -> io::Result<Vec<Option<String>>> {
    let mut file: Box<dyn io::Read> = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
        file => Box::new(file?),
    };
    let mut hasher = Sha256::new();
    let mut position = 0;
    let mut digests = Vec::new();
    for length in lengths {
        let remaining = length.saturating_sub(position);
        position += hash_all(&mut hasher, &mut file.by_ref().take(remaining))?;
        digests.push((position == *length).then(|| hex(hasher.clone())));
    }
    Ok(digests)
}

fn hash_all(hasher: &mut Sha256, source: &mut impl io::Read) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut total = 0;
    loop {
        let read = source.read(&mut chunk)?;
        if read == 0 {
            return Ok(total);
        }
        hasher.update(&chunk[..read]);
        total += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_the_digest_of_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * CHUNK + 7).collect();
        std::fs::write(&path, &bytes).unwrap();
        let lengths = [0, 0, 5, CHUNK, CHUNK + 1, bytes.len(), bytes.len() + 1];
        let expected: Vec<Option<String>> = lengths
            .iter()
            .map(|length| bytes.get(..*length).map(sha256))
            .collect();
        let lengths = lengths.map(|length| length as u64);
        assert_eq!(prefix_digests(&path, &lengths).unwrap(), expected);
        assert_eq!(file_sha256(&path).unwrap(), sha256(&bytes));

        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let absent = prefix_digests(&dir.path().join("absent"), &[0, 1]).unwrap();
        assert_eq!(absent, [Some(nothing.to_owned()), None]);
    }
}
