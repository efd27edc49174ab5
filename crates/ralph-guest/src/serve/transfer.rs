//! Transfers files between sandbox and host in chunks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::guest::Guest;
use crate::files::{ConfinedFileError, GuestEntryKind};
use crate::wire::{FileWriteMode, Flow, GuestFailure, GuestReply, GuestStream, PathStat};

/// The chunk size in memory, in bytes.
const CHUNK_BYTES: usize = 128 * 1024;

/// Sends a file and returns the reply.
pub(super) async fn read(
    guest: &Guest,
    path: &str,
    limit: u64,
    stream: &GuestStream,
) -> GuestReply {
    let mut reader = match guest.dir.open_file(path.as_ref()) {
        Ok(reader) => reader,
        Err(refusal) => return failure_reply(refusal),
    };
    if reader.size() > limit {
        let size = reader.size();
        return GuestReply::TooLarge { size };
    }
    let mut sent = 0;
    loop {
        let expected =
            usize::try_from(reader.size() - sent.min(reader.size())).unwrap_or(CHUNK_BYTES);
        // One byte more than expected shows that the file has grown.
        let mut chunk = vec![0; (expected + 1).min(CHUNK_BYTES)];
        let count = match reader.read_chunk(&mut chunk) {
            Ok(0) => return GuestReply::Done,
            Ok(count) => count,
            Err(error) => return failure_reply(error.into()),
        };
        sent += count as u64;
        if sent > limit {
            return GuestReply::TooLarge { size: sent };
        }
        chunk.truncate(count);
        stream.sender.wait_for_room(count).await;
        stream.sender.send_data(Flow::Main, chunk);
    }
}

/// Writes the received bytes.
pub(super) async fn write(
    guest: &Guest,
    path: &str,
    mode: FileWriteMode,
    stream: &mut GuestStream,
) -> GuestReply {
    let target = Path::new(path);
    let writer = match mode {
        FileWriteMode::Replace => guest.dir.replace(target),
        FileWriteMode::Append => guest.dir.append(target),
    };
    let mut writer = match writer {
        Ok(writer) => writer,
        Err(refusal) => return failure_reply(refusal),
    };
    while let Some((_, bytes)) = stream.data.next().await {
        if let Err(error) = writer.write_chunk(&bytes) {
            return failure_reply(error.into());
        }
    }
    // The bytes also end if the host disconnects, which must not complete the file.
    if stream.sender.is_closed() {
        return GuestReply::Done;
    }
    match writer.finish() {
        Ok(()) => GuestReply::Done,
        Err(refusal) => failure_reply(refusal),
    }
}

/// Sends the entries of a directory and returns the reply.
pub(super) async fn list(guest: &Guest, path: &str, stream: &GuestStream) -> GuestReply {
    let entries = match guest.dir.list(path.as_ref()) {
        Ok(entries) => entries,
        Err(refusal) => return failure_reply(refusal),
    };
    let mut lines = Vec::new();
    for entry in entries {
        lines.extend(serde_json::to_vec(&entry).expect("a plain structure is valid JSON"));
        lines.push(b'\n');
        if lines.len() >= CHUNK_BYTES {
            stream.sender.send_all(Flow::Main, &lines).await;
            lines.clear();
        }
    }
    stream.sender.send_all(Flow::Main, &lines).await;
    GuestReply::Done
}

/// Creates a directory and its missing parents.
pub(super) fn create_directory(guest: &Guest, path: &str) -> GuestReply {
    match guest.dir.create_directory(path.as_ref()) {
        Ok(_) => GuestReply::Done,
        Err(refusal) => failure_reply(refusal),
    }
}

/// Returns the type and size of a path.
pub(super) fn stat(guest: &Guest, path: &str) -> GuestReply {
    match guest.dir.dir().symlink_metadata(path) {
        Ok(metadata) => GuestReply::Stat(PathStat {
            kind: GuestEntryKind::from_file_type(metadata.file_type()),
            size: metadata.len(),
        }),
        Err(error) => failure_reply(error.into()),
    }
}

/// Removes the entry at a path.
pub(super) fn delete(guest: &Guest, path: &str) -> GuestReply {
    match guest.dir.delete(path.as_ref()) {
        Ok(()) => GuestReply::Done,
        Err(refusal) => failure_reply(refusal),
    }
}

/// Syncs the filesystem of the sandbox on its own thread, because a slow disk takes a while.
pub(super) async fn sync(guest: Arc<Guest>) -> GuestReply {
    let synced = tokio::task::spawn_blocking(move || guest.dir.sync()).await;
    match synced.unwrap_or_else(|stopped| Err(io::Error::other(stopped))) {
        Ok(()) => GuestReply::Done,
        Err(error) => failure_reply(error.into()),
    }
}

fn failure_reply(refusal: ConfinedFileError) -> GuestReply {
    GuestReply::Failed(GuestFailure::from(refusal))
}
