//! The tables of the runs: what is stored about them, and how it is read at the start.

use std::collections::BTreeMap;

use ralph_core::id::RunId;
use sqlx::AnyConnection;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::feed::{from_stored, to_stored};
use super::folded_run::FinishedIteration;
use super::journal_file::JournalFile;
use super::tracked_run::{RunRow, RunUpdate, TrackedRun, UpdateKind};

/// Reads the runs of the index, without the states of unfinished ones.
pub(super) async fn load(
    connection: &mut AnyConnection,
) -> Result<BTreeMap<RunId, TrackedRun>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT id, sort_key, device, inode, length, modified_ns, seq, digest, needs_process, held, \
         ended FROM runs",
    )
    .fetch_all(connection)
    .await?;
    let mut runs = BTreeMap::new();
    for row in rows {
        let id: String = row.try_get("id")?;
        let Some(id) = RunId::parse(&id) else {
            continue;
        };
        runs.insert(id, tracked(&row)?);
    }
    Ok(runs)
}

fn tracked(row: &AnyRow) -> Result<TrackedRun, sqlx::Error> {
    let flag = |column: &str| row.try_get::<i64, _>(column).map(|value| value != 0);
    Ok(TrackedRun {
        sort_key: row.try_get("sort_key")?,
        file: JournalFile {
            device: row.try_get("device")?,
            inode: row.try_get("inode")?,
            length: row.try_get("length")?,
            modified_ns: row.try_get("modified_ns")?,
        },
        seq: from_stored(row.try_get("seq")?),
        digest: row.try_get("digest")?,
        needs_process: flag("needs_process")?,
        held: flag("held")?,
        ended: flag("ended")?,
        fold: None,
    })
}

/// Stores a run with its new records.
pub(super) async fn store(
    connection: &mut AnyConnection,
    update: &RunUpdate,
) -> Result<(), sqlx::Error> {
    let run = &update.row.id;
    match update.kind {
        UpdateKind::Appended => {}
        UpdateKind::Reread | UpdateKind::Replaced => remove_records(connection, run).await?,
    }
    store_row(connection, &update.row).await?;
    for (seq, offset) in &update.records.marks {
        sqlx::query("INSERT INTO marks (run, seq, byte_offset) VALUES ($1, $2, $3)")
            .bind(run.as_str())
            .bind(to_stored(*seq))
            .bind(to_stored(*offset))
            .execute(&mut *connection)
            .await?;
    }
    for iteration in &update.records.iterations {
        store_iteration(connection, run, iteration).await?;
    }
    Ok(())
}

async fn store_row(connection: &mut AnyConnection, row: &RunRow) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO runs (id, sort_key, status, repo, search_text, details, needs_process, held, \
         ended, device, inode, length, modified_ns, seq, digest) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
         ON CONFLICT (id) DO UPDATE SET sort_key = excluded.sort_key, status = excluded.status, \
         repo = excluded.repo, search_text = excluded.search_text, details = excluded.details, \
         needs_process = excluded.needs_process, held = excluded.held, ended = excluded.ended, \
         device = excluded.device, inode = excluded.inode, length = excluded.length, \
         modified_ns = excluded.modified_ns, seq = excluded.seq, digest = excluded.digest",
    )
    .bind(row.id.as_str())
    .bind(row.sort_key.as_str())
    .bind(row.status.as_str())
    .bind(row.repo.as_str())
    .bind(row.search_text.as_str())
    .bind(row.details.as_str())
    .bind(i64::from(row.needs_process))
    .bind(i64::from(row.held))
    .bind(i64::from(row.ended))
    .bind(row.file.device)
    .bind(row.file.inode)
    .bind(row.file.length)
    .bind(row.file.modified_ns)
    .bind(to_stored(row.seq))
    .bind(row.digest.as_str())
    .execute(connection)
    .await
    .map(drop)
}

async fn store_iteration(
    connection: &mut AnyConnection,
    run: &RunId,
    iteration: &FinishedIteration,
) -> Result<(), sqlx::Error> {
    let metrics = &iteration.metrics;
    let tests = metrics.tests;
    sqlx::query(
        "INSERT INTO iterations (run, iteration, finished_ms, duration_ms, cost_nano_usd, \
         input_tokens, output_tokens, loop_score, tests_passed, tests_failed, tests_skipped, \
         boxes_ticked, boxes_total) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
         ON CONFLICT (run, iteration) DO NOTHING",
    )
    .bind(run.as_str())
    .bind(i64::from(metrics.iteration))
    .bind(iteration.at.as_millisecond())
    .bind(to_stored(metrics.duration_ms))
    .bind(to_stored(metrics.cost_usd.nanos()))
    .bind(to_stored(metrics.usage.input_tokens))
    .bind(to_stored(metrics.usage.output_tokens))
    .bind(metrics.loop_score)
    .bind(tests.map(|tests| to_stored(tests.passed)))
    .bind(tests.map(|tests| to_stored(tests.failed)))
    .bind(tests.map(|tests| to_stored(tests.skipped)))
    .bind(to_stored(metrics.boxes_ticked as u64))
    .bind(to_stored(metrics.boxes_total as u64))
    .execute(connection)
    .await
    .map(drop)
}

/// Removes a run that is no longer in the state directory.
pub(super) async fn remove(connection: &mut AnyConnection, run: &RunId) -> Result<(), sqlx::Error> {
    remove_records(connection, run).await?;
    sqlx::query("DELETE FROM runs WHERE id = $1")
        .bind(run.as_str())
        .execute(connection)
        .await
        .map(drop)
}

async fn remove_records(connection: &mut AnyConnection, run: &RunId) -> Result<(), sqlx::Error> {
    for statement in [
        "DELETE FROM marks WHERE run = $1",
        "DELETE FROM iterations WHERE run = $1",
    ] {
        sqlx::query(statement)
            .bind(run.as_str())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
