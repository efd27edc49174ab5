//! Filters, cursors, and the same list from the database and from the files.

use std::fs;

use super::fixture::*;
use crate::index::{IndexState, RunFilter, RunIndex, RunPage};

/// Follows the cursors of a list.
async fn pages(index: &RunIndex, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let all = RunFilter::default();
        let page = index.list(&all, cursor.as_deref(), limit).await.unwrap();
        pages.push(values(&page, "id"));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn filters_select_the_same_runs_in_the_database_and_in_the_files() {
    let runs = IndexedRuns::new();
    runs.finished(1, "Login form");
    runs.paused(2, "Login 100%");
    let damaged = runs.finished(3, "Search");
    let journal = runs.dir(&damaged).journal();
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace("\"seq\":3", "\"seq\":4")).unwrap();
    let files = runs.index();
    let maintained = runs.maintain();
    ready(&maintained.index).await;

    let all = RunFilter::default;
    for (filter, expected) in [
        (all(), vec!["damaged", "paused", "succeeded"]),
        (
            all().with_statuses("succeeded,paused").unwrap(),
            vec!["paused", "succeeded"],
        ),
        (all().with_attention(true), vec!["damaged", "paused"]),
        (all().with_attention(false), vec!["succeeded"]),
        (all().with_text("LOGIN"), vec!["paused", "succeeded"]),
        (all().with_text("100%"), vec!["paused"]),
        (all().with_text("1_0%"), vec![]),
        (all().with_repo("/work/Search"), vec!["damaged"]),
        (all().with_repo("/work/Sear"), vec![]),
        (all().with_statuses("failed").unwrap(), vec![]),
    ] {
        let stored = maintained.index.list(&filter, None, 10).await.unwrap();
        assert_eq!(values(&stored, "status"), expected, "{filter:?}");
        let read = files.list(&filter, None, 10).await.unwrap();
        assert_eq!(read.runs, stored.runs, "{filter:?}");
        assert_eq!(stored.state, IndexState::Ready);
        assert_ne!(read.state, IndexState::Ready);
    }
    maintained.stop().await;
}

#[tokio::test]
async fn a_list_continues_where_it_was_whatever_starts_or_is_removed() {
    let runs = IndexedRuns::new();
    for number in 1..=5 {
        runs.paused(number, "run");
    }
    let files = runs.index();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let id = |number| run_id(number).to_string();
    for index in [&maintained.index, &files] {
        let expected = [vec![id(5), id(4)], vec![id(3), id(2)], vec![id(1)]];
        assert_eq!(pages(index, 2).await, expected);
        assert_eq!(pages(index, 5).await.len(), 1);
    }

    let first: RunPage = maintained
        .index
        .list(&RunFilter::default(), None, 2)
        .await
        .unwrap();
    runs.paused(6, "later");
    fs::remove_dir_all(runs.dir(&run_id(4)).root()).unwrap();
    ready(&maintained.index).await;
    for index in [&maintained.index, &files] {
        let all = RunFilter::default();
        let next = index.list(&all, first.next.as_deref(), 2).await.unwrap();
        assert_eq!(values(&next, "id"), [id(3), id(2)]);
    }
    let invalid = maintained
        .index
        .list(&RunFilter::default(), Some("x"), 2)
        .await;
    assert_eq!(invalid.unwrap_err().what, "invalid cursor");
    maintained.stop().await;
}

#[tokio::test]
async fn a_database_in_memory_lists_the_same_runs() {
    let runs = IndexedRuns::with_database(Some("sqlite::memory:"));
    runs.finished(1, "one");
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    assert_eq!(
        list(&maintained.index).await.runs,
        list(&runs.index()).await.runs
    );
    assert!(!runs.database().exists());
    maintained.stop().await;
}
