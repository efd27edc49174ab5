//! A new index equals one that followed the runs.

use std::fs;

use ralph_core::run::RunStatus;

use super::fixture::*;
use crate::index::maintenance::MaintenanceCounts;

#[tokio::test]
async fn building_the_index_twice_and_in_any_order_gives_the_same_content() {
    let runs = IndexedRuns::new();
    // Later runs have smaller ids, so the order of the directories differs from that of creation.
    for number in [7, 3, 9, 1, 5] {
        runs.finished(number, &format!("finished {number}"));
    }
    runs.paused(2, "paused");
    let damaged = runs.finished(4, "damaged");
    fs::write(runs.dir(&damaged).journal(), "{}\n").unwrap();
    runs.update().await;
    let first = runs.dump().await;
    assert!(first.contains("damaged"), "{first}");

    runs.remove_database();
    let counts = runs.update().await;
    assert_eq!(
        counts,
        MaintenanceCounts {
            updated: 7,
            removed: 0,
            created: 1
        }
    );
    assert_eq!(runs.dump().await, first);

    // The directories are found in another order.
    runs.remove_database();
    let all = runs.directory().join("state/runs");
    let other = runs.directory().join("state/other");
    fs::create_dir(&other).unwrap();
    for number in [5, 4, 9, 2, 1, 7, 3] {
        let name = run_id(number).to_string();
        fs::rename(all.join(&name), other.join(&name)).unwrap();
    }
    fs::remove_dir(&all).unwrap();
    fs::rename(&other, &all).unwrap();
    runs.update().await;
    assert_eq!(runs.dump().await, first);
    assert_eq!(runs.update().await, MaintenanceCounts::default());
}

#[tokio::test]
async fn an_index_that_follows_runs_equals_a_new_one() {
    let runs = IndexedRuns::new();
    let finished = runs.finished(1, "finished");
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let (followed, mut journal) = runs.create(2, "followed");
    for iteration in 1..=3 {
        iterate(&mut journal, iteration);
        journal.append(notice(&"x".repeat(400 * 1024))).unwrap();
        ready(&maintained.index).await;
    }
    journal.append(status(RunStatus::Stopped)).unwrap();
    drop(journal);
    // A finished run continues.
    let mut journal = runs.reopen(&finished);
    journal.append(notice("more")).unwrap();
    drop(journal);
    let removed = runs.finished(3, "removed");
    ready(&maintained.index).await;
    fs::remove_dir_all(runs.dir(&removed).root()).unwrap();
    ready(&maintained.index).await;
    let listed = list(&maintained.index).await;
    assert_eq!(
        values(&listed, "id"),
        [followed.as_str(), finished.as_str()]
    );
    maintained.stop().await;

    let followed = runs.dump().await;
    runs.remove_database();
    runs.update().await;
    assert_eq!(runs.dump().await, followed);
}

#[tokio::test]
async fn a_run_whose_process_ends_is_interrupted_and_a_replaced_journal_is_read_again() {
    let runs = IndexedRuns::new();
    let (run, mut journal) = runs.create(1, "first");
    journal.append(status(RunStatus::Running)).unwrap();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    assert_eq!(
        values(&list(&maintained.index).await, "status"),
        ["running"]
    );
    drop(journal);
    ready(&maintained.index).await;
    assert_eq!(
        values(&list(&maintained.index).await, "status"),
        ["interrupted"]
    );

    let instance = maintained.index.feed_head().borrow().instance.clone();
    let backup = IndexedRuns::new();
    backup.finished(1, "restored from a copy");
    fs::copy(backup.dir(&run).journal(), runs.dir(&run).journal()).unwrap();
    ready(&maintained.index).await;
    let listed = list(&maintained.index).await;
    assert_eq!(values(&listed, "title"), ["restored from a copy"]);
    let after = maintained.index.feed_head().borrow().instance.clone();
    assert_ne!(after, instance, "old positions of the feed are void");
    maintained.stop().await;
}
