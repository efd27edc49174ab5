//! The transcript of an agent's iteration, parsed for display.

use std::fs::File;
use std::io::Read as _;

use ralph_core::state::RunState;
use ralph_engine::durable::StoreError;
use ralph_engine::store::RunDir;
use ralph_providers::agent::{TranscriptEntry, TranscriptReader};
use serde::Serialize;
use utoipa::ToSchema;

use super::iteration_report::{TranscriptFile, find_transcript};
use crate::error::AppError;

/// The number of bytes that are parsed.
const MAX_PARSED_BYTES: u64 = 16 << 20;

/// What an agent did in an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Transcript {
    /// The size of the whole transcript.
    pub bytes: u64,
    pub entries: Vec<TranscriptEntry>,
    /// Whether something is missing because of a limit; the file has it all.
    pub cut: bool,
}

/// Parses the start of a transcript, up to 16 MiB.
pub fn transcript(dir: &RunDir, state: &RunState, number: u32) -> Result<Transcript, AppError> {
    let TranscriptFile { path, bytes } = find_transcript(dir, state, Some(number))?;
    let failed = |error| StoreError::when("read", &path)(error);
    let mut start = Vec::new();
    let mut file = File::open(&path).map_err(failed)?.take(MAX_PARSED_BYTES);
    file.read_to_end(&mut start).map_err(failed)?;
    let mut reader = TranscriptReader::default();
    for line in String::from_utf8_lossy(&start).lines() {
        reader.read_line(line);
    }
    let (entries, is_cut) = reader.finish();
    Ok(Transcript {
        bytes,
        entries,
        cut: is_cut || bytes > MAX_PARSED_BYTES,
    })
}
