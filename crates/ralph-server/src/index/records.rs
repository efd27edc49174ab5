//! The place of records in a journal, and the measurements of iterations.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ralph_app::AppError;
use ralph_core::event::RECORD_VERSION;
use ralph_core::id::RunId;
use ralph_engine::durable::StoreError;
use ralph_engine::journal::offset_of_record;
use ralph_engine::store::RunDir;
use serde::Serialize;
use sqlx::Row as _;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::feed::{from_stored, to_stored};
use super::folded_run::{FinishedIteration, FoldedRun};
use super::index_error::IndexError;
use super::run_index::{IndexState, RunIndex};

/// The measurements of a finished iteration.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct IterationPoint {
    pub(crate) iteration: i64,
    /// The end of the iteration.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) finished_at: jiff::Timestamp,
    pub(crate) duration_ms: u64,
    pub(crate) cost_usd: f64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Null if it was not measured.
    pub(crate) loop_score: Option<f64>,
    /// Null if the tests did not run or could not be counted.
    pub(crate) tests_passed: Option<i64>,
    pub(crate) tests_failed: Option<i64>,
    pub(crate) tests_skipped: Option<i64>,
    pub(crate) boxes_ticked: u64,
    pub(crate) boxes_total: u64,
}

impl RunIndex {
    /// Returns the offset of a record in its journal; none if the journal has no record of this number.
    /// Only a bounded part of the journal is read, unless the index cannot be used.
    pub(crate) async fn offset_of(&self, run: &RunId, seq: u64) -> Result<Option<u64>, IndexError> {
        let known = match self.mark_before(run, seq).await {
            Ok(mark) => mark,
            Err(error) => {
                tracing::debug!(%run, %error, "the journal is read from its start");
                None
            }
        };
        let journal = self.journal(run)?;
        let found = spawn_blocking(move || find_record(&journal, known, seq));
        let found = found.await;
        Ok(found.map_err(|error| IndexError::Interrupted(error.to_string()))??)
    }

    /// Returns the nearest known record at or before a number, with its offset.
    async fn mark_before(&self, run: &RunId, seq: u64) -> Result<Option<(u64, u64)>, IndexError> {
        let mark: Option<(i64, i64)> = sqlx::query_as(
            "SELECT seq, byte_offset FROM marks WHERE run = $1 AND seq <= $2 \
             ORDER BY seq DESC LIMIT 1",
        )
        .bind(run.as_str())
        .bind(to_stored(seq))
        .fetch_optional(&self.database()?.pool)
        .await
        .map_err(IndexError::when("read"))?;
        Ok(mark.map(|(seq, offset)| (from_stored(seq), from_stored(offset))))
    }

    /// Returns the measurements of the finished iterations of a run, in their order. The journal is only
    /// read while the index catches up.
    pub(crate) async fn iterations(&self, dir: RunDir) -> Result<Vec<IterationPoint>, AppError> {
        if self.state() == IndexState::Ready {
            let run = dir.root().file_name().unwrap_or_default().to_string_lossy();
            match self.stored_iterations(&run).await {
                Ok(iterations) => return Ok(iterations),
                Err(error) => tracing::debug!(%run, %error, "the journal is read"),
            }
        }
        let read = spawn_blocking(move || FoldedRun::read(&dir, None)).await;
        let read = read.map_err(|error| {
            let fix = "see the diagnostics log";
            AppError::runtime("cannot read the run", error.to_string(), fix)
        })?;
        let (_, records, _) = read?;
        Ok(records.iterations.iter().map(IterationPoint::new).collect())
    }

    async fn stored_iterations(&self, run: &str) -> Result<Vec<IterationPoint>, IndexError> {
        let rows = sqlx::query("SELECT * FROM iterations WHERE run = $1 ORDER BY iteration")
            .bind(run)
            .fetch_all(&self.database()?.pool)
            .await
            .map_err(IndexError::when("read"))?;
        let points = rows.iter().map(point).collect::<Result<_, _>>();
        points.map_err(IndexError::when("read"))
    }
}

impl IterationPoint {
    fn new(finished: &FinishedIteration) -> Self {
        let metrics = &finished.metrics;
        let tests = metrics.tests;
        Self {
            iteration: i64::from(metrics.iteration),
            finished_at: finished.at,
            duration_ms: metrics.duration_ms,
            cost_usd: metrics.cost_usd.dollars(),
            input_tokens: metrics.usage.input_tokens,
            output_tokens: metrics.usage.output_tokens,
            loop_score: metrics.loop_score,
            tests_passed: tests.map(|tests| to_stored(tests.passed)),
            tests_failed: tests.map(|tests| to_stored(tests.failed)),
            tests_skipped: tests.map(|tests| to_stored(tests.skipped)),
            boxes_ticked: metrics.boxes_ticked as u64,
            boxes_total: metrics.boxes_total as u64,
        }
    }
}

/// Finds a record from a mark. A mark of a journal that was replaced since leads to another record; the
/// journal is read from its start then.
fn find_record(
    journal: &Path,
    mark: Option<(u64, u64)>,
    seq: u64,
) -> Result<Option<u64>, StoreError> {
    const START: (u64, u64) = (1, 0);
    if let Some(mark) = mark
        && let Some(offset) = offset_of_record(journal, mark, seq)?
        && is_record(journal, offset, seq).map_err(StoreError::when("read", journal))?
    {
        return Ok(Some(offset));
    }
    offset_of_record(journal, START, seq)
}

/// Returns whether the record at an offset has a number; the number follows the version in a record.
fn is_record(journal: &Path, offset: u64, seq: u64) -> io::Result<bool> {
    let expected = format!("{{\"v\":{RECORD_VERSION},\"seq\":{seq},");
    let mut start = vec![0; expected.len()];
    let file = File::open(journal)?;
    match file.read_exact_at(&mut start, offset) {
        Ok(()) => Ok(start == expected.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn point(row: &sqlx::any::AnyRow) -> Result<IterationPoint, sqlx::Error> {
    let number = |column: &str| row.try_get::<i64, _>(column).map(from_stored);
    let finished = jiff::Timestamp::from_millisecond(row.try_get("finished_ms")?)
        .map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(IterationPoint {
        iteration: row.try_get("iteration")?,
        finished_at: finished,
        duration_ms: number("duration_ms")?,
        cost_usd: ralph_core::money::Usd::from_nanos(number("cost_nano_usd")?).dollars(),
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        loop_score: row.try_get("loop_score")?,
        tests_passed: row.try_get("tests_passed")?,
        tests_failed: row.try_get("tests_failed")?,
        tests_skipped: row.try_get("tests_skipped")?,
        boxes_ticked: number("boxes_ticked")?,
        boxes_total: number("boxes_total")?,
    })
}
