//! Copies the results of set-up out of a sandbox and into another one, as a tar stream. The host
//! stores the stream and never unpacks it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::id::Digest;
use ralph_core::ports::{Exec, ExecStatus, InputSource, OutputSink, OutputStream, Sandbox};
use sha2::{Digest as _, Sha256};

use crate::error::RunError;
use crate::git::SandboxGit;

/// The largest stored result, in bytes.
pub(super) const MAX_ARCHIVE_BYTES: u64 = 4 << 30;
const TIMEOUT: Duration = Duration::from_mins(15);
const CHUNK_BYTES: usize = 256 << 10;
/// The longest message of tar that is repeated, in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// Packs the listed files and the directories outside the repository that set-up writes to.
const PACK: &str = r#"
cd .. || exit 3
set --
for directory in home cache; do if [ -d "$directory" ]; then set -- "$@" "$directory"; fi; done
exec tar -c -f - --null -T - "$@"
"#;

/// Unpacks without replacing any file of the checkout.
const UNPACK: &str = "cd .. && exec tar -x -p -f - --skip-old-files";

/// A copied result.
pub(super) enum Packed {
    /// The digest of the content.
    Complete(Digest),
    /// The result is larger than the limit.
    TooLarge,
}

/// Copies the untracked files of the repository, the home directory and the caches to a file of the
/// host, of at most `limit` bytes.
pub(super) async fn pack(
    sandbox: &dyn Sandbox,
    target: File,
    limit: u64,
) -> Result<Packed, RunError> {
    let listed = SandboxGit::new(sandbox).untracked_paths().await?;
    let mut names = Vec::new();
    // The repository itself belongs to the sandbox, whatever git lists.
    let is_repository = |path: &String| path == ".git" || path.starts_with(".git/");
    for path in listed.into_iter().filter(|path| !is_repository(path)) {
        names.extend_from_slice(format!("repo/{path}").as_bytes());
        names.push(0);
    }
    let mut exec = Exec::shell(PACK, TIMEOUT).with_stdin(names);
    exec.output_limit = limit;
    let mut writer = ArchiveWriter {
        target,
        hash: Sha256::new(),
        failure: None,
        message: Vec::new(),
    };
    let outcome = sandbox.exec(exec, None, &mut writer).await?;
    let failed = |source| crate::durable::StoreError {
        doing: "write",
        path: "the result of set-up".into(),
        source,
    };
    if let Some(source) = writer.failure {
        return Err(failed(source).into());
    }
    if outcome.ended == ExecStatus::OutputLimit {
        return Ok(Packed::TooLarge);
    }
    if !outcome.ended.is_success() {
        let message = String::from_utf8_lossy(&writer.message).trim().to_owned();
        let source = io::Error::other(format!("tar: {}: {message}", outcome.ended));
        return Err(failed(source).into());
    }
    writer.target.sync_all().map_err(failed)?;
    let content = Digest::from_sha256(&writer.hash.finalize());
    Ok(Packed::Complete(content))
}

/// Copies a stored result into a sandbox. Returns whether that succeeded.
pub(super) async fn restore(sandbox: &dyn Sandbox, archive: &Path) -> Result<bool, RunError> {
    let file = match File::open(archive) {
        Ok(file) => file,
        Err(error) => {
            tracing::warn!("cannot open `{}`: {error}", archive.display());
            return Ok(false);
        }
    };
    let mut input = ArchiveReader { file };
    let mut messages = MessageSink::default();
    let exec = Exec::shell(UNPACK, TIMEOUT);
    let outcome = sandbox.exec(exec, Some(&mut input), &mut messages).await?;
    if !outcome.ended.is_success() {
        let message = String::from_utf8_lossy(&messages.0).trim().to_owned();
        tracing::warn!(
            "cannot copy the result of set-up: {}: {message}",
            outcome.ended
        );
    }
    Ok(outcome.ended.is_success())
}

/// Writes standard output to a file and computes its digest.
struct ArchiveWriter {
    target: File,
    hash: Sha256,
    failure: Option<io::Error>,
    message: Vec<u8>,
}

impl OutputSink for ArchiveWriter {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout if self.failure.is_none() => {
                self.hash.update(bytes);
                self.failure = self.target.write_all(bytes).err();
            }
            OutputStream::Stdout => {}
            OutputStream::Stderr => push_bounded(&mut self.message, bytes),
        }
    }
}

/// The first messages of a command.
#[derive(Default)]
struct MessageSink(Vec<u8>);

impl OutputSink for MessageSink {
    fn chunk(&mut self, _stream: OutputStream, bytes: &[u8]) {
        push_bounded(&mut self.0, bytes);
    }
}

fn push_bounded(message: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_MESSAGE_BYTES.saturating_sub(message.len());
    message.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

/// Supplies a file as standard input.
struct ArchiveReader {
    file: File,
}

#[async_trait]
impl InputSource for ArchiveReader {
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        match self.file.read(&mut chunk) {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some(chunk)
            }
            Err(error) => {
                // Tar reports the missing end.
                tracing::warn!("cannot read the result of set-up: {error}");
                None
            }
        }
    }
}
