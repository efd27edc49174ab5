//! Creates uncompressed archives in the formats of package managers.

/// The path and content of a file.
pub(super) type ArchiveMember<'a> = (&'a str, &'a [u8]);

/// The maximum size of an uncompressed gzip block, in bytes.
const MAX_STORED_BLOCK: usize = 0xffff;

/// Creates a tar archive.
pub(super) fn tar(members: &[ArchiveMember<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, *bytes)
            .expect("a short path");
    }
    builder.into_inner().expect("memory")
}

/// Wraps bytes in gzip.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks: Vec<&[u8]> = bytes.chunks(MAX_STORED_BLOCK).collect();
    for (index, block) in blocks.iter().enumerate() {
        let length = u16::try_from(block.len()).expect("a block");
        file.push(u8::from(index + 1 == blocks.len()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend(*block);
    }
    file.extend(checksum(bytes).to_le_bytes());
    file.extend(size(bytes).to_le_bytes());
    file
}

/// Creates an ar archive, the container format of Debian packages.
pub(super) fn ar(members: &[ArchiveMember<'_>]) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    for (path, bytes) in members {
        let length = bytes.len();
        let head = format!(
            "{path:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n",
            0, 0, 0, 100_644
        );
        file.extend(head.as_bytes());
        file.extend(*bytes);
        if !length.is_multiple_of(2) {
            file.push(b'\n');
        }
    }
    file
}

/// Creates a zip archive.
pub(super) fn zip(members: &[ArchiveMember<'_>]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (path, bytes) in members {
        let offset = size(&file);
        // Version 2.0, no flags, stored, the earliest timestamp.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(checksum(bytes).to_le_bytes());
        common.extend(size(bytes).to_le_bytes());
        common.extend(size(bytes).to_le_bytes());
        common.extend(
            u16::try_from(path.len())
                .expect("a short path")
                .to_le_bytes(),
        );
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(path.as_bytes());
        file.extend(*bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(path.as_bytes());
    }
    let (start, length) = (size(&file), size(&directory));
    let count = u16::try_from(members.len()).expect("few files");
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0, 0]);
    file
}

fn size(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a small file")
}

/// Returns the CRC-32 used by zip and gzip.
fn checksum(bytes: &[u8]) -> u32 {
    let mut rest = u32::MAX;
    for byte in bytes {
        rest ^= u32::from(*byte);
        for _ in 0..8 {
            let low = rest & 1;
            rest = (rest >> 1) ^ (low * 0xedb8_8320);
        }
    }
    !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
