//! Copies files between host and sandbox in chunks, so that the size does not affect memory use.

use std::io::Read as _;
use std::path::Path;

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Sandbox, WriteMode};

use crate::durable::StoreError;
use crate::error::RunError;

const CHUNK_BYTES: usize = 8 << 20;
const CHUNK: u64 = CHUNK_BYTES as u64;

/// Writes a host file into a sandbox and replaces an existing one.
pub(crate) async fn upload(
    sandbox: &dyn Sandbox,
    from: &Path,
    to: &SandboxPath,
) -> Result<(), RunError> {
    upload_from(sandbox, from, 0, to, WriteMode::Replace).await
}

/// Writes bytes into a file of a sandbox and replaces existing content.
pub(crate) async fn write_all(
    sandbox: &dyn Sandbox,
    bytes: &[u8],
    to: &SandboxPath,
) -> Result<(), RunError> {
    let (first, rest) = bytes.split_at(bytes.len().min(CHUNK_BYTES));
    sandbox.write(to, first, WriteMode::Replace).await?;
    for chunk in rest.chunks(CHUNK_BYTES) {
        sandbox.write(to, chunk, WriteMode::Append).await?;
    }
    Ok(())
}

/// Appends the bytes of a host file after `offset` to its copy in a sandbox.
pub(crate) async fn upload_tail(
    sandbox: &dyn Sandbox,
    from: &Path,
    offset: u64,
    to: &SandboxPath,
) -> Result<(), RunError> {
    upload_from(sandbox, from, offset, to, WriteMode::Append).await
}

async fn upload_from(
    sandbox: &dyn Sandbox,
    from: &Path,
    offset: u64,
    to: &SandboxPath,
    first: WriteMode,
) -> Result<(), RunError> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = std::fs::File::open(from).map_err(StoreError::when("open", from))?;
    file.seek(SeekFrom::Start(offset))
        .map_err(StoreError::when("read", from))?;
    let mut mode = first;
    loop {
        let mut chunk = Vec::new();
        (&mut file)
            .take(CHUNK)
            .read_to_end(&mut chunk)
            .map_err(StoreError::when("read", from))?;
        // An empty file is written once, so that it exists.
        if chunk.is_empty() && mode == WriteMode::Append {
            return Ok(());
        }
        sandbox.write(to, &chunk, mode).await?;
        mode = WriteMode::Append;
    }
}
