//! Lists of runs, newest first: from the database, or from the files while it catches up.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ralph_app::AppError;
use ralph_app::runs::{RunDetails, RunSummary};
use ralph_core::id::RunId;
use ralph_engine::store::StateDir;
use serde_json::Value;
use sqlx::Row as _;
use tokio::task::spawn_blocking;

use super::database::Database;
use super::index_error::IndexError;
use super::run_filter::RunFilter;
use super::run_index::{IndexState, RunIndex};
use super::tracked_run::search_text;

/// A part of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPage {
    /// The details of each run: the JSON of `ralph show`.
    pub(crate) runs: Vec<String>,
    /// Continues the list; none at its end.
    pub(crate) next: Option<String>,
    /// Whether the list comes from an index that is up to date.
    pub(crate) state: IndexState,
}

/// The last run of a page. Runs that are added or removed later do not change what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListCursor {
    run: RunId,
    sort_key: String,
}

impl ListCursor {
    fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}", self.run, self.sort_key))
    }

    fn decode(text: &str) -> Result<Self, AppError> {
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(text)
            .unwrap_or_else(|_| Vec::new());
        let decoded = String::from_utf8_lossy(&bytes);
        let parts = decoded.split_once(' ').and_then(|(run, sort_key)| {
            Some(Self {
                run: RunId::parse(run)?,
                sort_key: sort_key.to_owned(),
            })
        });
        parts.ok_or_else(|| {
            let fix = "use the `next` of an earlier page, or leave the cursor out";
            AppError::usage("invalid cursor", "", fix)
        })
    }
}

/// An entry of a list with what the cursor needs.
struct ListedRun {
    cursor: ListCursor,
    details: String,
}

impl RunIndex {
    /// Lists runs, newest first, from a cursor of an earlier page. Journals are only read while the
    /// index catches up.
    pub(crate) async fn list(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<RunPage, AppError> {
        let cursor = cursor.map(ListCursor::decode).transpose()?;
        let mut state = self.state();
        // One more than asked for, to know whether the list continues.
        let wanted = limit + 1;
        let mut listed = None;
        if state == IndexState::Ready {
            let read =
                async { list_stored(&self.database()?, filter, cursor.as_ref(), wanted).await };
            match read.await {
                // The database may have been replaced by one that is incomplete.
                Ok(runs) if self.state() == IndexState::Ready => listed = Some(runs),
                Ok(_) => state = self.state(),
                Err(error) => {
                    tracing::debug!(%error, "the list is read from the files");
                    state = IndexState::CatchingUp {
                        why: error.to_string(),
                    };
                }
            }
        }
        let mut runs = match listed {
            Some(runs) => runs,
            None => self.list_files(filter, cursor, wanted).await?,
        };
        let next = (runs.len() > limit).then(|| {
            runs.truncate(limit);
            runs.last().map(|last| last.cursor.encode())
        });
        Ok(RunPage {
            runs: runs.into_iter().map(|run| run.details).collect(),
            next: next.flatten(),
            state,
        })
    }

    async fn list_files(
        &self,
        filter: &RunFilter,
        cursor: Option<ListCursor>,
        wanted: usize,
    ) -> Result<Vec<ListedRun>, AppError> {
        let state = self.app().state_dir()?;
        let filter = filter.clone();
        let listed =
            spawn_blocking(move || list_from_files(&state, &filter, cursor.as_ref(), wanted));
        listed.await.unwrap_or_else(|error| {
            let fix = "see the diagnostics log";
            Err(AppError::runtime(
                "cannot list the runs",
                error.to_string(),
                fix,
            ))
        })
    }
}

async fn list_stored(
    database: &Database,
    filter: &RunFilter,
    cursor: Option<&ListCursor>,
    wanted: usize,
) -> Result<Vec<ListedRun>, IndexError> {
    // An empty text means no restriction. The stored key of the cursor's run counts, because the first
    // run of a version that records the order changes the keys of older ones.
    let rows = sqlx::query(
        "SELECT id, sort_key, details FROM runs \
         WHERE ($1 = '' OR $1 LIKE '%,' || status || ',%') \
         AND ($2 = '' OR repo = $2) \
         AND ($3 = '%%' OR search_text LIKE $3 ESCAPE '\\') \
         AND ($4 = '' OR sort_key < COALESCE((SELECT sort_key FROM runs WHERE id = $4), $5)) \
         ORDER BY sort_key DESC LIMIT $6",
    )
    .bind(filter.status_list())
    .bind(filter.repo())
    .bind(filter.text_pattern())
    .bind(cursor.map_or("", |cursor| cursor.run.as_str()))
    .bind(cursor.map_or("", |cursor| cursor.sort_key.as_str()))
    .bind(i64::try_from(wanted).unwrap_or(i64::MAX))
    .fetch_all(&database.pool)
    .await
    .map_err(IndexError::when("read"))?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let read = || -> Result<(String, String, String), sqlx::Error> {
            Ok((
                row.try_get("id")?,
                row.try_get("sort_key")?,
                row.try_get("details")?,
            ))
        };
        let (id, sort_key, details) = read().map_err(IndexError::when("read"))?;
        let Some(run) = RunId::parse(&id) else {
            continue;
        };
        runs.push(ListedRun {
            cursor: ListCursor { run, sort_key },
            details,
        });
    }
    Ok(runs)
}

/// Lists runs from their journals, for the time in which the index cannot be used.
fn list_from_files(
    state: &StateDir,
    filter: &RunFilter,
    cursor: Option<&ListCursor>,
    wanted: usize,
) -> Result<Vec<ListedRun>, AppError> {
    let all = state.runs_by_creation()?;
    let after = cursor.map(|cursor| {
        let current = all.iter().find(|(_, id)| *id == cursor.run);
        current.map_or(cursor.sort_key.as_str(), |(sort_key, _)| sort_key)
    });
    let mut runs = Vec::new();
    for (sort_key, id) in all.iter().rev() {
        if runs.len() == wanted {
            break;
        }
        if after.is_some_and(|after| sort_key.as_str() >= after) {
            continue;
        }
        let Some((details, repo)) = read_details(state, id) else {
            continue;
        };
        if filter.matches(&details, &repo, &search_text(&details, &repo)) {
            runs.push(ListedRun {
                cursor: ListCursor {
                    run: id.clone(),
                    sort_key: sort_key.clone(),
                },
                details: details.to_string(),
            });
        }
    }
    Ok(runs)
}

fn read_details(state: &StateDir, id: &RunId) -> Option<(Value, String)> {
    let dir = state.run(id);
    let (details, repo) = if let Ok(state) = dir.state() {
        (
            serde_json::to_value(RunDetails::from_state(&dir, &state)),
            state.plan.repo,
        )
    } else {
        // The description of a run that cannot be read says why.
        let outline = ralph_engine::journal::RunOutline::read(&dir.journal());
        (
            serde_json::to_value(RunSummary::read(id, &dir)),
            outline.repo.unwrap_or_default(),
        )
    };
    match details {
        Ok(details) => Some((details, repo)),
        Err(error) => {
            tracing::warn!(run = %id, %error, "a run cannot be described");
            None
        }
    }
}
