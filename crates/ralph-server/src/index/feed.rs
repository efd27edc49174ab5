//! The feed of all runs: which records were noticed, in one order for all readers.
//!
//! An entry names records and does not contain them; readers read the journals. Positions count from 1
//! and have a meaning within one instance of the index: a new index is another instance.

use ralph_core::id::RunId;
use sqlx::AnyConnection;

use super::index_error::IndexError;
use super::run_index::RunIndex;

/// The number of entries that are stored; a reader that is further behind starts at the head.
const MAX_FEED_ENTRIES: i64 = 100_000;

/// A position in the feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FeedPosition {
    /// The instance of the index; empty while the index is not open.
    pub(crate) instance: String,
    /// The number of the last entry before the position.
    pub(crate) position: u64,
}

/// New records of one run, or another change of it: `last_seq` is before `first_seq` then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedEntry {
    pub(crate) position: u64,
    pub(crate) run: RunId,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
}

/// The entries after a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeedPage {
    /// The next entries, the oldest first; empty at the head.
    Entries(Vec<FeedEntry>),
    /// The position is of another instance, or its entries are no longer stored.
    Expired,
}

impl RunIndex {
    /// Returns at most `limit` entries after a position.
    pub(crate) async fn feed_after(
        &self,
        after: &FeedPosition,
        limit: u32,
    ) -> Result<FeedPage, IndexError> {
        let database = self.database()?;
        let head = self.feed_head().borrow().clone();
        if head.instance != after.instance || after.position > head.position {
            return Ok(FeedPage::Expired);
        }
        let rows: Vec<(i64, String, i64, i64)> = sqlx::query_as(
            "SELECT position, run, first_seq, last_seq FROM feed \
             WHERE position > $1 AND position <= $2 \
             AND EXISTS (SELECT 1 FROM instances WHERE name = 'index' AND id = $3) \
             ORDER BY position LIMIT $4",
        )
        .bind(to_stored(after.position))
        .bind(to_stored(head.position))
        .bind(after.instance.as_str())
        .bind(i64::from(limit))
        .fetch_all(&database.pool)
        .await
        .map_err(IndexError::when("read the feed of"))?;
        let next = rows
            .first()
            .map_or(head.position, |row| from_stored(row.0) - 1);
        if next != after.position {
            return Ok(FeedPage::Expired);
        }
        let entries = rows.into_iter().filter_map(|(position, run, first, last)| {
            Some(FeedEntry {
                position: from_stored(position),
                run: RunId::parse(&run)?,
                first_seq: from_stored(first),
                last_seq: from_stored(last),
            })
        });
        Ok(FeedPage::Entries(entries.collect()))
    }
}

/// The range of an entry for a run that changed without new records.
pub(super) const NO_RECORDS: (u64, u64) = (1, 0);

/// Appends new records of a run after a position, and returns their position.
pub(super) async fn append_feed(
    connection: &mut AnyConnection,
    head: u64,
    run: &RunId,
    (first_seq, last_seq): (u64, u64),
) -> Result<u64, sqlx::Error> {
    let position = head + 1;
    sqlx::query("INSERT INTO feed (position, run, first_seq, last_seq) VALUES ($1, $2, $3, $4)")
        .bind(to_stored(position))
        .bind(run.as_str())
        .bind(to_stored(first_seq))
        .bind(to_stored(last_seq))
        .execute(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM feed WHERE position <= $1")
        .bind(to_stored(position) - MAX_FEED_ENTRIES)
        .execute(connection)
        .await?;
    Ok(position)
}

/// Starts a new instance: all positions so far lose their meaning.
pub(super) async fn start_instance(
    connection: &mut AnyConnection,
    instance: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM feed")
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO instances (name, id) VALUES ('index', $1) \
         ON CONFLICT (name) DO UPDATE SET id = excluded.id",
    )
    .bind(instance)
    .execute(connection)
    .await
    .map(drop)
}

/// Returns the head of the stored feed; none if there is no instance yet.
pub(super) async fn stored_head(
    connection: &mut AnyConnection,
) -> Result<Option<FeedPosition>, sqlx::Error> {
    let instance: Option<String> =
        sqlx::query_scalar("SELECT id FROM instances WHERE name = 'index'")
            .fetch_optional(&mut *connection)
            .await?;
    let Some(instance) = instance else {
        return Ok(None);
    };
    let position: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(position), 0) FROM feed")
        .fetch_one(connection)
        .await?;
    Ok(Some(FeedPosition {
        instance,
        position: from_stored(position),
    }))
}

/// Converts a number for the database, whose integers have a sign.
pub(super) fn to_stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number of the database.
pub(super) fn from_stored(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
