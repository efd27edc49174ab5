//! Jumps into journals, and the measurements of iterations.

use std::fs;

use ralph_engine::journal::{JournalPosition, read_after};

use super::fixture::*;
use crate::index::IterationPoint;

#[tokio::test]
async fn every_record_is_found_and_stale_marks_do_not_mislead() {
    let runs = IndexedRuns::new();
    let (run, mut journal) = runs.create(1, "long");
    for number in 0..40 {
        journal.append(notice(&"y".repeat(number * 2000))).unwrap();
    }
    let mut offsets = Vec::new();
    let path = runs.dir(&run).journal();
    read_after(&path, &JournalPosition::start(), &mut |record, offset| {
        offsets.push((record.seq, offset));
    })
    .unwrap();
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    for index in [&maintained.index, &runs.index()] {
        for (seq, offset) in &offsets {
            assert_eq!(index.offset_of(&run, *seq).await.unwrap(), Some(*offset));
        }
        assert_eq!(index.offset_of(&run, 42).await.unwrap(), None);
    }
    assert!(
        runs.dump().await.contains(&format!("\n{run}|")),
        "there are marks"
    );
    maintained.stop().await;

    // The index is not maintained any more, and the journal is replaced by one with other offsets.
    let stale = runs.maintain();
    ready(&stale.index).await;
    drop(journal);
    fs::remove_dir_all(runs.dir(&run).root()).unwrap();
    let (run, mut journal) = runs.create(1, "another with the same id");
    for _ in 0..41 {
        journal.append(notice(&"z".repeat(30_000))).unwrap();
    }
    let mut last = (0, 0);
    read_after(&path, &JournalPosition::start(), &mut |record, offset| {
        last = (record.seq, offset);
    })
    .unwrap();
    assert_eq!(
        stale.index.offset_of(&run, last.0).await.unwrap(),
        Some(last.1)
    );
    stale.stop().await;
}

#[tokio::test]
async fn iterations_have_their_measurements() {
    let runs = IndexedRuns::new();
    let run = runs.finished(1, "two iterations");
    let maintained = runs.maintain();
    ready(&maintained.index).await;
    let points = maintained.index.iterations(runs.dir(&run)).await.unwrap();
    let from_files = runs.index().iterations(runs.dir(&run)).await.unwrap();
    let in_milliseconds = |points: &[IterationPoint]| -> Vec<serde_json::Value> {
        let json = |point: &IterationPoint| {
            let mut json = serde_json::to_value(point).unwrap();
            json["finished_at"] = point.finished_at.as_millisecond().into();
            json
        };
        points.iter().map(json).collect()
    };
    assert_eq!(in_milliseconds(&points), in_milliseconds(&from_files));
    let numbers: Vec<i64> = points.iter().map(|point| point.iteration).collect();
    assert_eq!(numbers, [1, 2]);
    let second = &points[1];
    assert_eq!(second.duration_ms, 1500);
    assert!((second.cost_usd - 0.25).abs() < 1e-9);
    assert_eq!((second.input_tokens, second.output_tokens), (100, 10));
    assert_eq!(second.loop_score, Some(0.5));
    assert_eq!(
        (second.tests_passed, second.tests_failed),
        (Some(2), Some(1))
    );
    assert_eq!((second.boxes_ticked, second.boxes_total), (1, 2));
    maintained.stop().await;
}
