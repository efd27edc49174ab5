//! A database that is locked, removed or damaged: the list stays the same, and the index comes back.

use std::fs;
use std::io::Write as _;

use sqlx::{ConnectOptions as _, Executor as _};

use super::fixture::*;
use crate::index::{IndexState, RunIndex};

/// Locks the database like another process, until the connection is closed.
async fn lock(runs: &IndexedRuns) -> sqlx::AnyConnection {
    let mut connection = connect(runs).await;
    connection.execute("BEGIN EXCLUSIVE").await.unwrap();
    connection
}

async fn connect(runs: &IndexedRuns) -> sqlx::AnyConnection {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", runs.database().display());
    let options: sqlx::any::AnyConnectOptions = url.parse().unwrap();
    options.connect().await.unwrap()
}

fn is_catching_up(index: &RunIndex) -> bool {
    index.state() != IndexState::Ready
}

#[tokio::test]
async fn runs_continue_and_lists_are_complete_while_another_process_locks_the_index() {
    let runs = IndexedRuns::new();
    runs.finished(1, "before");
    let maintained = runs.maintain();
    let index = &maintained.index;
    ready(index).await;
    let start = index.feed_head().borrow().clone();
    let other = lock(&runs).await;

    let (run, mut journal) = runs.create(2, "during the lock");
    journal.append(notice("recorded")).unwrap();
    until("the index is catching up", async || is_catching_up(index)).await;
    let listed = list(index).await;
    assert_eq!(values(&listed, "title"), ["during the lock", "before"]);
    let IndexState::CatchingUp { why } = listed.state else {
        panic!("the list says that the index is up to date");
    };
    assert!(why.contains("lock"), "{why}");
    assert_eq!(*index.feed_head().borrow(), start);

    // A server that starts now is not stopped by it either.
    sqlx::Connection::close(other).await.unwrap();
    ready(index).await;
    assert_eq!(list(index).await.runs, listed.runs);
    let page = index.feed_after(&start, 10).await.unwrap();
    let crate::index::FeedPage::Entries(entries) = page else {
        panic!("the feed starts again");
    };
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0].run, entries[0].last_seq), (&run, 2));
    maintained.stop().await;
}

#[tokio::test]
async fn an_index_that_is_locked_at_the_start_is_used_later() {
    let runs = IndexedRuns::new();
    runs.finished(1, "before");
    runs.update().await;
    runs.finished(2, "not in the index");
    let other = lock(&runs).await;
    let maintained = runs.maintain();
    let index = &maintained.index;
    assert_eq!(list(index).await.runs.len(), 2);
    until("the start is over", async || {
        is_catching_up(index) && index.state() != index_start()
    })
    .await;
    assert_eq!(list(index).await.runs.len(), 2);
    sqlx::Connection::close(other).await.unwrap();
    ready(index).await;
    assert_eq!(list(index).await.runs.len(), 2);
    maintained.stop().await;
}

fn index_start() -> IndexState {
    IndexState::CatchingUp {
        why: "the server is starting".to_owned(),
    }
}

/// Breaks the index in some way, and expects the same list after it was replaced.
async fn replaced_after(damage: impl Fn(&IndexedRuns), while_running: bool) {
    let runs = IndexedRuns::new();
    for number in 1..=3 {
        runs.finished(number, "run");
    }
    runs.paused(4, "paused");
    let mut maintained = runs.maintain();
    ready(&maintained.index).await;
    let before = list(&maintained.index).await;
    let instance = maintained.index.feed_head().borrow().instance.clone();
    if while_running {
        damage(&runs);
    } else {
        maintained.stop().await;
        damage(&runs);
        maintained = runs.maintain();
    }
    let index = &maintained.index;
    until("the index is a new one", async || {
        let head = index.feed_head().borrow().instance.clone();
        let is_new = !head.is_empty() && head != instance;
        is_new && index.state() == IndexState::Ready
    })
    .await;
    let after = list(index).await;
    assert_eq!(after.runs, before.runs);
    assert_eq!(after.state, IndexState::Ready);
    maintained.stop().await;
}

fn overwrite(runs: &IndexedRuns) {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(runs.database())
        .unwrap();
    file.write_all(&[7; 8192]).unwrap();
}

#[tokio::test]
async fn an_index_that_is_removed_while_running_is_built_again() {
    replaced_after(IndexedRuns::remove_database, true).await;
}

#[tokio::test]
async fn an_index_that_is_removed_while_stopped_is_built_again() {
    replaced_after(IndexedRuns::remove_database, false).await;
}

#[tokio::test]
async fn an_index_that_is_overwritten_while_stopped_is_built_again() {
    replaced_after(overwrite, false).await;
}

#[tokio::test]
async fn an_index_that_is_overwritten_while_running_is_built_again() {
    replaced_after(overwrite, true).await;
}

#[tokio::test]
async fn an_index_that_is_cut_off_is_built_again() {
    let cut = |runs: &IndexedRuns| {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(runs.database())
            .unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    };
    replaced_after(cut, false).await;
}

#[tokio::test]
async fn an_index_with_tables_of_another_version_is_built_again() {
    let runs = IndexedRuns::new();
    runs.finished(1, "run");
    runs.update().await;
    let before = runs.dump().await;
    let mut other = connect(&runs).await;
    other
        .execute("UPDATE _sqlx_migrations SET checksum = x'00'")
        .await
        .unwrap();
    sqlx::Connection::close(other).await.unwrap();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    maintained.stop().await;
    assert_eq!(runs.dump().await, before);
}
