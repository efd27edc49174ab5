//! The files of one iteration, bounded for display.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use ralph_core::event::IterationMetrics;
use ralph_core::id::RunId;
use ralph_core::ports::TranscriptFormat;
use ralph_core::state::RunState;
use ralph_engine::durable::StoreError;
use ralph_engine::replies::Responses;
use ralph_engine::store::RunDir;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::changes::iteration_directory;
use crate::error::AppError;
use crate::format;

/// The largest file that is parsed instead of shown as it is.
const MAX_PARSED_BYTES: u64 = 16 << 20;

/// How much of a text is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimit {
    pub bytes: usize,
    pub lines: usize,
}

/// The end of a text that is kept when it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptText {
    Start,
    End,
}

/// One file of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IterationSection {
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// The size of the whole file.
    pub bytes: u64,
    /// A readable form of the file; empty for a missing file.
    pub text: String,
    /// Whether a part of the text is missing; the file has it all.
    pub cut: bool,
}

/// What an iteration asked for, got, did and changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct IterationReport {
    pub run: RunId,
    pub iteration: u32,
    /// Whether the iteration is in progress.
    pub open: bool,
    /// `None` while the iteration is in progress.
    pub metrics: Option<IterationMetrics>,
    pub prompt: IterationSection,
    pub reply: IterationSection,
    pub actions: IterationSection,
    pub test_output: IterationSection,
    pub diff: IterationSection,
    /// The output of the agent; `None` without an agent.
    pub transcript: Option<TranscriptFile>,
}

/// The transcript of an iteration of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TranscriptFile {
    #[schema(value_type = String)]
    pub path: PathBuf,
    pub bytes: u64,
}

/// Reads the files of an iteration.
pub fn iteration_report(
    dir: &RunDir,
    state: &RunState,
    number: u32,
    limit: TextLimit,
) -> Result<IterationReport, AppError> {
    let directory = iteration_directory(dir, state, number)?;
    let open = directory == dir.open_iteration(number);
    let read = |name: &str, kept: KeptText| read_section(&directory.join(name), kept, limit);
    let metrics = directory.join("metrics.json");
    let metrics = read_parsed(&metrics)?.map(|bytes| serde_json::from_slice(&bytes));
    Ok(IterationReport {
        run: state.plan.run.clone(),
        iteration: number,
        open,
        // Metrics of a damaged file are not shown; `ralph audit` reports it.
        metrics: metrics.and_then(|parsed| match parsed {
            Ok(metrics) => Some(metrics),
            Err(error) => {
                tracing::warn!(%error, "cannot parse the metrics of iteration {number}");
                None
            }
        }),
        prompt: read("prompt.md", KeptText::Start)?,
        reply: read_readable(&directory.join("response.json"), reply_text, limit)?,
        actions: read_readable(&directory.join("actions.jsonl"), actions_text, limit)?,
        test_output: read("test_output.txt", KeptText::End)?,
        diff: read("git_diff.patch", KeptText::Start)?,
        transcript: transcript_in(&directory)?,
    })
}

/// Finds the transcript of an iteration, or without a number that of the last iteration that has
/// one.
pub fn find_transcript(
    dir: &RunDir,
    state: &RunState,
    number: Option<u32>,
) -> Result<TranscriptFile, AppError> {
    let numbers = match number {
        Some(number) => vec![number],
        None => (1..=state.iteration).rev().collect(),
    };
    for number in numbers {
        if let Some(transcript) = transcript_in(&iteration_directory(dir, state, number)?)? {
            return Ok(transcript);
        }
    }
    let run = &state.plan.run;
    let what = match number {
        Some(number) => format!("iteration {number} of run `{run}` has no transcript"),
        None => format!("run `{run}` has no transcript"),
    };
    Err(match &state.plan.agent {
        Some(_) => AppError::usage(
            what,
            "no agent has started in it",
            format!("see `ralph logs {run}`"),
        ),
        None => AppError::usage(
            what,
            "no agent works on it",
            format!("see the replies of its model with `ralph show {run} --iteration N`"),
        ),
    })
}

/// Returns the transcript in the directory of an iteration.
fn transcript_in(directory: &Path) -> Result<Option<TranscriptFile>, StoreError> {
    for format in TranscriptFormat::ALL {
        let path = directory.join(format.file_name());
        match path.metadata() {
            Ok(metadata) => {
                let bytes = metadata.len();
                return Ok(Some(TranscriptFile { path, bytes }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::when("read", &path)(error)),
        }
    }
    Ok(None)
}

/// Reads a file that is shown as it is.
fn read_section(
    path: &Path,
    kept: KeptText,
    limit: TextLimit,
) -> Result<IterationSection, StoreError> {
    let (bytes, text) = match read_part(path, kept, limit.bytes as u64) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => (0, String::new()),
        Err(error) => return Err(StoreError::when("read", path)(error)),
    };
    let (text, is_shorter) = bounded(&text, kept, limit);
    Ok(IterationSection {
        path: path.to_owned(),
        bytes,
        cut: is_shorter || bytes > limit.bytes as u64,
        text,
    })
}

/// Reads a file in a readable form, or as it is if it has none.
fn read_readable(
    path: &Path,
    to_text: fn(&[u8]) -> Option<String>,
    limit: TextLimit,
) -> Result<IterationSection, StoreError> {
    let Some(bytes) = read_parsed(path)? else {
        return read_section(path, KeptText::Start, limit);
    };
    let Some(text) = to_text(&bytes) else {
        return read_section(path, KeptText::Start, limit);
    };
    let (text, cut) = bounded(&text, KeptText::Start, limit);
    Ok(IterationSection {
        path: path.to_owned(),
        bytes: bytes.len() as u64,
        text,
        cut,
    })
}

/// Returns the size of a file and one end of it.
fn read_part(path: &Path, kept: KeptText, limit: u64) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if kept == KeptText::End {
        file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((length, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the bytes of a file that exists and is small enough to be parsed.
fn read_parsed(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let failed = |error| StoreError::when("read", path)(error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    let mut start = file.take(MAX_PARSED_BYTES + 1);
    start.read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes.len() as u64 <= MAX_PARSED_BYTES).then_some(bytes))
}

/// Cuts a text to the limit, at line ends. Returns whether a part is missing.
fn bounded(text: &str, kept: KeptText, limit: TextLimit) -> (String, bool) {
    let lines: Vec<&str> = text.lines().collect();
    let mut bytes = 0;
    let mut fits = |line: &&&str| {
        bytes += line.len() + 1;
        bytes <= limit.bytes
    };
    let count = match kept {
        KeptText::Start => lines.iter().take_while(&mut fits).count(),
        KeptText::End => lines.iter().rev().take_while(&mut fits).count(),
    };
    let count = count.min(limit.lines);
    let shown = match kept {
        KeptText::Start => &lines[..count],
        KeptText::End => &lines[lines.len() - count..],
    };
    (shown.join("\n"), count < lines.len())
}

/// Returns the replies of a model, each with its rejection, if it was rejected. An agent's report
/// stays as it is.
fn reply_text(bytes: &[u8]) -> Option<String> {
    let Ok(responses) = serde_json::from_slice::<Responses>(bytes) else {
        return None;
    };
    let replies: Vec<String> = responses
        .attempts
        .iter()
        .map(|attempt| {
            let rejected = attempt.error.as_ref();
            let rejected = rejected.map_or_else(String::new, |why| format!("\nrejected: {why}"));
            format!(
                "attempt {} · {}\n{}{rejected}",
                attempt.attempt, attempt.model, attempt.reply
            )
        })
        .collect();
    Some(replies.join("\n"))
}

/// Returns a line per action: its number, its kind, its label and its result.
fn actions_text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Option<Vec<String>> = text.lines().map(action_line).collect();
    lines.map(|lines| lines.join("\n"))
}

fn action_line(line: &str) -> Option<String> {
    let Ok(action) = serde_json::from_str::<Value>(line) else {
        return None;
    };
    let text = |key: &str| action[key].as_str().unwrap_or_default().to_owned();
    let result = match text("result").as_str() {
        "ran" => match action["ended"]["exited"].as_i64() {
            Some(code) => format!("exit {code}"),
            None => format!("ended {}", action["ended"]),
        },
        "done" => "done".to_owned(),
        other => format!("{other}: {}", text("why")),
    };
    let number = action["index"].as_u64()? + 1;
    let took = format::milliseconds(action["duration_ms"].as_u64().unwrap_or_default());
    let (kind, label) = (text("type"), text("label"));
    Some(format!("{number}. {kind} {label} · {result} ({took})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: TextLimit = TextLimit {
        bytes: 12,
        lines: 3,
    };

    #[test]
    fn a_text_is_cut_at_line_ends_from_either_side() {
        let cut = |text: &str, kept| bounded(text, kept, LIMIT);
        assert_eq!(cut("a\nb", KeptText::Start), ("a\nb".into(), false));
        assert_eq!(cut("a\nb\nc\nd", KeptText::Start), ("a\nb\nc".into(), true));
        assert_eq!(cut("a\nb\nc\nd", KeptText::End), ("b\nc\nd".into(), true));
        let long = "0123456\n012345";
        assert_eq!(cut(long, KeptText::Start), ("0123456".into(), true));
        assert_eq!(cut(long, KeptText::End), ("012345".into(), true));
    }

    #[test]
    fn actions_are_one_line_each() {
        let line = r#"{"index":0,"type":"run","label":"make","result":"ran","ended":{"exited":2},"duration_ms":40}"#;
        assert_eq!(action_line(line).unwrap(), "1. run make · exit 2 (40ms)");
        let line = r#"{"index":1,"type":"write","label":"a.txt","result":"refused","why":"no","duration_ms":1}"#;
        assert_eq!(
            action_line(line).unwrap(),
            "2. write a.txt · refused: no (1ms)"
        );
        assert_eq!(actions_text(b"not json\n"), None);
    }
}
