//! Moves files between the sandbox and the host, a piece at a time.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::guest::Guest;
use crate::files::{EntryKind, Refusal};
use crate::wire::{Failure, Flow, Reply, Stat, Stream, WriteWay};

/// How much of a file is in memory at once.
const PIECE: usize = 128 * 1024;

/// Sends a file, then that it is done.
pub(super) async fn read(guest: &Guest, path: &str, limit: u64, stream: &Stream) -> Reply {
    let mut reading = match guest.place.read(path.as_ref()) {
        Ok(reading) => reading,
        Err(refusal) => return failed(refusal),
    };
    if reading.size() > limit {
        let size = reading.size();
        return Reply::TooLarge { size };
    }
    let mut sent = 0;
    loop {
        let expected = usize::try_from(reading.size() - sent.min(reading.size())).unwrap_or(PIECE);
        // One more than expected shows that the file has grown.
        let mut piece = vec![0; (expected + 1).min(PIECE)];
        let count = match reading.piece(&mut piece) {
            Ok(0) => return Reply::Done,
            Ok(count) => count,
            Err(error) => return failed(error.into()),
        };
        sent += count as u64;
        if sent > limit {
            return Reply::TooLarge { size: sent };
        }
        piece.truncate(count);
        stream.sender.room(count).await;
        stream.sender.data(Flow::Main, piece);
    }
}

/// Writes the bytes that come.
pub(super) async fn write(guest: &Guest, path: &str, way: WriteWay, stream: &mut Stream) -> Reply {
    let target = Path::new(path);
    let writing = match way {
        WriteWay::Replace => guest.place.replace(target),
        WriteWay::Append => guest.place.append(target),
    };
    let mut writing = match writing {
        Ok(writing) => writing,
        Err(refusal) => return failed(refusal),
    };
    while let Some((_, bytes)) = stream.data.next().await {
        if let Err(error) = writing.piece(&bytes) {
            return failed(error.into());
        }
    }
    // The bytes end also when the host goes away in the middle, which must not look like a file.
    if stream.sender.is_over() {
        return Reply::Done;
    }
    match writing.finish() {
        Ok(()) => Reply::Done,
        Err(refusal) => failed(refusal),
    }
}

/// Sends the entries of a directory, then that it is done.
pub(super) async fn list(guest: &Guest, path: &str, stream: &Stream) -> Reply {
    let entries = match guest.place.list(path.as_ref()) {
        Ok(entries) => entries,
        Err(refusal) => return failed(refusal),
    };
    let mut lines = Vec::new();
    for entry in entries {
        // Plain structures always have a form in JSON.
        lines.extend(serde_json::to_vec(&entry).unwrap_or_default());
        lines.push(b'\n');
        if lines.len() >= PIECE {
            stream.sender.all(Flow::Main, &lines).await;
            lines.clear();
        }
    }
    stream.sender.all(Flow::Main, &lines).await;
    Reply::Done
}

/// Makes a directory and the missing ones above it.
pub(super) fn make_directory(guest: &Guest, path: &str) -> Reply {
    match guest.place.make_directory(path.as_ref()) {
        Ok(_) => Reply::Done,
        Err(refusal) => failed(refusal),
    }
}

/// Tells what is at a path.
pub(super) fn stat(guest: &Guest, path: &str) -> Reply {
    match guest.place.dir().symlink_metadata(path) {
        Ok(metadata) => Reply::Stat(Stat {
            kind: EntryKind::of(metadata.file_type()),
            size: metadata.len(),
        }),
        Err(error) => failed(error.into()),
    }
}

/// Removes whatever is at a path.
pub(super) fn delete(guest: &Guest, path: &str) -> Reply {
    match guest.place.delete(path.as_ref()) {
        Ok(()) => Reply::Done,
        Err(refusal) => failed(refusal),
    }
}

/// Syncs the filesystem of the sandbox, on a thread of its own: a slow disk takes a while.
pub(super) async fn sync(guest: Arc<Guest>) -> Reply {
    let synced = tokio::task::spawn_blocking(move || guest.place.sync()).await;
    match synced.unwrap_or_else(|stopped| Err(io::Error::other(stopped))) {
        Ok(()) => Reply::Done,
        Err(error) => failed(error.into()),
    }
}

fn failed(refusal: Refusal) -> Reply {
    Reply::Failed(Failure::from(refusal))
}
