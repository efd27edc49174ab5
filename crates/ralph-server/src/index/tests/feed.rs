//! The feed names every record of every run once.

use std::collections::BTreeMap;

use ralph_core::id::RunId;

use super::fixture::*;
use crate::index::{FeedPage, FeedPosition, RunIndex};

/// Reads the feed from a position in small pages.
async fn read(index: &RunIndex, after: &FeedPosition) -> Vec<(RunId, u64)> {
    let (mut records, mut after) = (Vec::new(), after.clone());
    loop {
        let FeedPage::Entries(entries) = index.feed_after(&after, 2).await.unwrap() else {
            panic!("{after:?} expired");
        };
        let Some(last) = entries.last() else {
            return records;
        };
        after.position = last.position;
        for entry in &entries {
            let numbers = entry.first_seq..=entry.last_seq;
            records.extend(numbers.map(|seq| (entry.run.clone(), seq)));
        }
    }
}

#[tokio::test]
async fn every_new_record_is_in_the_feed_once_also_after_a_restart() {
    let runs = IndexedRuns::new();
    let old = runs.finished(1, "before the index");
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let start = maintained.index.feed_head().borrow().clone();
    assert!(read(&maintained.index, &start).await.is_empty());

    let (first, mut one) = runs.create(2, "one");
    let (second, mut two) = runs.create(3, "two");
    for round in 0..5 {
        one.append(notice("one")).unwrap();
        if round % 2 == 0 {
            two.append(notice("two")).unwrap();
            ready(&maintained.index).await;
        }
    }
    maintained.stop().await;
    // Nothing is lost while no index is maintained.
    one.append(notice("later")).unwrap();
    let mut continued = runs.reopen(&old);
    let continued_at = continued.append(notice("continued")).unwrap();

    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let mut expected: BTreeMap<RunId, Vec<u64>> = BTreeMap::new();
    expected.insert(first, (1..=7).collect());
    expected.insert(second, (1..=4).collect());
    expected.insert(old, vec![continued_at]);
    let mut found: BTreeMap<RunId, Vec<u64>> = BTreeMap::new();
    for (run, seq) in read(&maintained.index, &start).await {
        found.entry(run).or_default().push(seq);
    }
    assert_eq!(found, expected);
    maintained.stop().await;
}

#[tokio::test]
async fn positions_of_another_index_have_expired() {
    let runs = IndexedRuns::new();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    runs.finished(1, "one");
    ready(&maintained.index).await;
    let head = maintained.index.feed_head().borrow().clone();
    assert_eq!(head.position, 1);
    let ahead = FeedPosition {
        position: 2,
        ..head.clone()
    };
    let page = maintained.index.feed_after(&ahead, 10).await.unwrap();
    assert_eq!(page, FeedPage::Expired);
    maintained.stop().await;

    runs.remove_database();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let page = maintained.index.feed_after(&head, 10).await.unwrap();
    assert_eq!(page, FeedPage::Expired);
    maintained.stop().await;
}
