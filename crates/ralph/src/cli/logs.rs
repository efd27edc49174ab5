//! `ralph logs`: prints the log of a run; with `--follow` also new lines and the live output of the
//! running command.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use clap::Args;
use ralph_app::AppError;
use ralph_app::follow::POLL_INTERVAL;
use ralph_app::results::find_transcript;
use ralph_app::server::ServerQueue;
use ralph_core::parse_value;
use ralph_engine::durable::StoreError;
use ralph_engine::live_output::{LiveFollower, LiveLine};
use ralph_engine::store::RunDir;
use serde_json::{Value, json};

use super::attach::QUEUE_INTERVAL;
use super::context::Context;
use super::exit::ExitCode;
use super::output::{CliOutput, StdoutReader};
use super::run_arg::RunArg;
use crate::terminal::lines::live_line;
use crate::terminal::sanitize;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print new lines and live output until no process works on the run
    #[arg(short, long)]
    pub follow: bool,
    #[command(flatten)]
    pub source: LogSourceArgs,
    /// Print JSON, one line of the log per line
    #[arg(long)]
    pub json: bool,
}

/// The printed file.
#[derive(Debug, Args)]
pub(super) struct LogSourceArgs {
    /// Print the errors instead
    #[arg(long)]
    pub errors: bool,
    /// Print the output of the agent in the last iteration instead, or in that of `--iteration`
    #[arg(long, conflicts_with_all = ["follow", "errors"])]
    pub transcript: bool,
    /// The iteration whose transcript is printed
    #[arg(long, value_name = "N", requires = "transcript")]
    pub iteration: Option<u32>,
}

/// The number of bytes that are read at once; a longer line is printed in pieces.
const CHUNK_BYTES: u64 = 64 * 1024;

/// The number of earlier lines of live output that are printed first.
const EARLIER_LIVE_LINES: usize = 20;

/// Prints the log.
pub(super) async fn run(args: &LogsArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let mut log = LogTail {
        path: log_path(&args.source, &dir)?,
        offset: 0,
        output: LogOutput {
            output: context.output(),
            is_json: args.json,
            is_transcript: args.source.transcript,
        },
    };
    if args.follow {
        // Live output is not part of the error log.
        let live = (!args.source.errors).then(|| LiveFollower::new(&dir));
        follow(&dir, &mut log, live, context).await?;
    } else {
        log.print_new(PartialLine::Print)?;
    }
    Ok(ExitCode::Success)
}

/// Returns the path of the requested file.
fn log_path(args: &LogSourceArgs, dir: &RunDir) -> Result<PathBuf, AppError> {
    if args.transcript {
        return Ok(find_transcript(dir, &dir.state()?, args.iteration)?.path);
    }
    Ok(dir.file(if args.errors {
        "errors.log"
    } else {
        "activity.log"
    }))
}

async fn follow(
    dir: &RunDir,
    log: &mut LogTail,
    mut live: Option<LiveFollower>,
    context: &Context,
) -> Result<(), AppError> {
    // Prints the whole log first, then the end of the live output so far.
    let mut reader = log.print_new(PartialLine::Hold)?;
    let mut limit = EARLIER_LIVE_LINES;
    while reader == StdoutReader::Connected {
        // Checked before reading, so that the last lines of a process are not missed.
        let is_held = dir.is_held();
        let partial = if is_held {
            PartialLine::Hold
        } else {
            PartialLine::Print
        };
        if let Some(live) = &mut live {
            reader = print_live(dir, live, limit, partial, log.output)?;
            limit = usize::MAX;
        }
        if reader == StdoutReader::Connected {
            reader = log.print_new(partial)?;
        }
        if is_held {
            tokio::time::sleep(POLL_INTERVAL).await;
        } else if ServerQueue::read(&context.app).await.contains(dir) {
            tokio::time::sleep(QUEUE_INTERVAL).await;
        } else {
            return Ok(());
        }
    }
    Ok(())
}

/// Prints the last new lines of the live output, at most `limit`.
fn print_live(
    dir: &RunDir,
    live: &mut LiveFollower,
    limit: usize,
    partial: PartialLine,
    output: LogOutput,
) -> Result<StdoutReader, AppError> {
    let mut lines = live
        .read_new()
        .map_err(StoreError::when("read the live output of", dir.root()))?;
    if partial == PartialLine::Print {
        lines.extend(live.take_incomplete_line());
    }
    let lines = &lines[lines.len().saturating_sub(limit)..];
    if lines.is_empty() {
        return Ok(StdoutReader::Connected);
    }
    output.print_live(lines)
}

/// The format of the log on standard output.
#[derive(Clone, Copy)]
struct LogOutput {
    output: CliOutput,
    is_json: bool,
    is_transcript: bool,
}

impl LogOutput {
    /// Prints lines of the log file.
    fn print_log(self, text: &str) -> Result<StdoutReader, AppError> {
        if self.is_json {
            let entry = if self.is_transcript {
                transcript_entry
            } else {
                log_entry
            };
            self.print_entries(text.lines().map(entry))
        } else {
            self.output.print_text(&sanitize::text(text))
        }
    }

    /// Prints lines of the live output.
    fn print_live(self, lines: &[LiveLine]) -> Result<StdoutReader, AppError> {
        if self.is_json {
            let entry = |line: &LiveLine| json!({ "live_output": line.text });
            return self.print_entries(lines.iter().map(entry));
        }
        let lines: Vec<StyledLine> = lines.iter().map(live_line).collect();
        self.output.print_lines(&lines)
    }

    fn print_entries(self, entries: impl Iterator<Item = Value>) -> Result<StdoutReader, AppError> {
        for entry in entries {
            if self.output.print_json(&entry)? == StdoutReader::Disconnected {
                return Ok(StdoutReader::Disconnected);
            }
        }
        Ok(StdoutReader::Connected)
    }
}

/// Returns a line of a transcript: its JSON, or else its text.
fn transcript_entry(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| json!({ "text": line }))
}

/// Returns the parts of a log line. A line without a time and an iteration has only a text.
fn log_entry(line: &str) -> Value {
    let parts = line.split_once(" iteration=").and_then(|(at, rest)| {
        let at = parse_value::<jiff::Timestamp>(at)?;
        let (iteration, text) = rest.split_once(' ')?;
        Some((at, parse_value::<u32>(iteration)?, text))
    });
    match parts {
        Some((at, iteration, text)) => json!({"at": at, "iteration": iteration, "text": text}),
        None => json!({"text": line}),
    }
}

/// The handling of an incomplete last line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartialLine {
    /// The line is held back until it is complete.
    Hold,
    /// The line is printed as it is.
    Print,
}

/// A log file and the printed position in it.
struct LogTail {
    path: PathBuf,
    offset: u64,
    output: LogOutput,
}

impl LogTail {
    /// Prints the new content since the last call.
    fn print_new(&mut self, partial: PartialLine) -> Result<StdoutReader, AppError> {
        loop {
            let bytes = match self.read_chunk() {
                Ok(bytes) => bytes,
                // A new run has no log yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(StdoutReader::Connected);
                }
                Err(source) => return Err(StoreError::when("read", &self.path)(source).into()),
            };
            let is_full = bytes.len() as u64 == CHUNK_BYTES;
            let last_newline = bytes.iter().rposition(|byte| *byte == b'\n');
            let length = match last_newline {
                Some(end) if is_full || partial == PartialLine::Hold => end + 1,
                None if !is_full && partial == PartialLine::Hold => 0,
                Some(_) | None => bytes.len(),
            };
            if length == 0 {
                return Ok(StdoutReader::Connected);
            }
            self.offset += length as u64;
            let text = String::from_utf8_lossy(&bytes[..length]);
            if self.output.print_log(&text)? == StdoutReader::Disconnected {
                return Ok(StdoutReader::Disconnected);
            }
        }
    }

    fn read_chunk(&self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(CHUNK_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
