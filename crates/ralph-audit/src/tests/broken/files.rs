//! Journals, logs and artifacts that were changed.

use std::fs;

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, insert_after, remove};
use crate::digest::sha256;
use crate::tests::fixture::AuditFixture;

const LOST_ITERATIONS: &[CorruptionCase] = &[
    corruption("I1", "a directory is gone", "iterations/1", |fixture| {
        fs::remove_dir_all(fixture.run_dir().join("iterations/1")).unwrap();
    }),
    corruption(
        "I1",
        "a file is gone",
        "iterations/2/metrics.json is missing",
        |fixture| {
            fs::remove_file(fixture.run_dir().join("iterations/2/metrics.json")).unwrap();
        },
    ),
    corruption(
        "I1",
        "a bit is flipped",
        "iterations/1/prompt.md was changed",
        |fixture| {
            fixture.replace("iterations/1/prompt.md", "1", "3");
        },
    ),
    corruption(
        "I1",
        "an eighth file",
        "iterations/2/notes.md does not belong",
        |fixture| {
            fixture.write("iterations/2/notes.md", "");
        },
    ),
    corruption(
        "I1",
        "a link",
        "iterations/2/prompt.md is not a regular file",
        |fixture| {
            let path = fixture.run_dir().join("iterations/2/prompt.md");
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("../1/prompt.md", path).unwrap();
        },
    ),
    corruption(
        "I1",
        "no digest",
        "iterations/1/prompt.md has no digest",
        |fixture| {
            let files = &mut fixture.event_mut("iteration_finished", 1)["files"];
            files.as_object_mut().unwrap().remove("prompt.md");
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I1",
        "an unknown digest",
        "names the unknown file `other.md`",
        |fixture| {
            fixture.event_mut("iteration_finished", 1)["files"]["other.md"] = json!("0");
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I1",
        "metrics are not JSON",
        "iterations/2/metrics.json is not JSON",
        |fixture| {
            forge(fixture, "metrics.json", "{");
        },
    ),
    corruption(
        "I1",
        "metrics of another iteration",
        "metrics.json is about iteration 1",
        |fixture| {
            forge(fixture, "metrics.json", r#"{"iteration": 1}"#);
        },
    ),
    corruption(
        "I1",
        "no attempts",
        "response.json has neither a list `attempts` nor an `agent`",
        |fixture| {
            forge(fixture, "response.json", "{}");
        },
    ),
    corruption(
        "I1",
        "a directory without a record",
        "iterations/3 has no record",
        |fixture| {
            fixture.write("iterations/3/prompt.md", "");
        },
    ),
    corruption(
        "I1",
        "an open directory is left",
        "iterations/2.open has no record",
        |fixture| {
            fixture.write("iterations/2.open/prompt.md", "");
        },
    ),
    corruption(
        "I1",
        "a number is left out",
        "iteration 3 starts, but 2 is next",
        |fixture| {
            renumber(fixture, 3);
            let dir = fixture.run_dir().join("iterations");
            fs::rename(dir.join("2"), dir.join("3")).unwrap();
        },
    ),
    corruption(
        "I1",
        "a start while one is open",
        "starts while iteration 1",
        |fixture| {
            let index = fixture.entry_index("iteration_started", 1);
            let event = fixture.entries[index].event.clone();
            insert_after(fixture, index, event);
        },
    ),
    corruption(
        "I1",
        "a finish without a start",
        "finishes, but it was not started",
        |fixture| {
            remove(fixture, "iteration_started", 2);
        },
    ),
    corruption(
        "I1",
        "a second finish",
        "iteration 2 finishes a second time",
        |fixture| {
            let index = fixture.entry_index("iteration_finished", 2);
            let event = fixture.entries[index].event.clone();
            insert_after(fixture, index, event);
        },
    ),
];

#[test]
fn lost_iterations() {
    assert_detected(LOST_ITERATIONS);
}

/// Changes an artifact and its digest in the journal.
fn forge(fixture: &mut AuditFixture, name: &str, text: &str) {
    fixture.write(&format!("iterations/2/{name}"), text);
    fixture.event_mut("iteration_finished", 2)["files"][name] = sha256(text.as_bytes()).into();
    fixture.edit_entries(|_| {});
}

/// Renumbers iteration 2 everywhere but in git, which is not checked for it.
fn renumber(fixture: &mut AuditFixture, number: u64) {
    fixture.edit_entries(|entries| {
        for entry in entries
            .iter_mut()
            .filter(|entry| entry.event["iteration"] == 2)
        {
            if matches!(entry.kind(), "iteration_started" | "iteration_finished") {
                entry.event["iteration"] = json!(number);
            }
        }
    });
    fixture.write(
        "iterations/2/metrics.json",
        &json!({"iteration": number}).to_string(),
    );
    let text = fixture.read("iterations/2/metrics.json");
    fixture.event_mut("iteration_finished", 2)["files"]["metrics.json"] =
        sha256(text.as_bytes()).into();
    fixture.edit_entries(|_| {});
}

const REWRITTEN_HISTORY: &[CorruptionCase] = &[
    corruption(
        "I2",
        "a record is changed",
        "record 11 does not follow",
        |fixture| {
            fixture.replace("journal.jsonl", "\"actions\":2", "\"actions\":3");
        },
    ),
    corruption(
        "I2",
        "a record is taken out",
        "line 5 of journal.jsonl has the number 6",
        |fixture| {
            let text = fixture.read("journal.jsonl");
            let kept: Vec<&str> = text
                .lines()
                .enumerate()
                .filter(|(at, _)| *at != 4)
                .map(|(_, line)| line)
                .collect();
            fixture.write("journal.jsonl", &(kept.join("\n") + "\n"));
        },
    ),
    corruption(
        "I2",
        "the last record is torn",
        "ends in the middle of record 55",
        |fixture| {
            let text = fixture.read("journal.jsonl");
            fixture.write("journal.jsonl", &(text + "{\"v\":1,"));
        },
    ),
    corruption("I2", "an empty line", "record 55 is not JSON", |fixture| {
        let text = fixture.read("journal.jsonl");
        fixture.write("journal.jsonl", &(text + "\n"));
    }),
    corruption(
        "I2",
        "another version",
        "record 1 has version 2",
        |fixture| {
            fixture.replace("journal.jsonl", "{\"v\":1,", "{\"v\":2,");
        },
    ),
    corruption(
        "I2",
        "a log is cut",
        "files/activity.log is shorter",
        |fixture| {
            let text = fixture.read("files/activity.log");
            let (kept, _) = text.trim_end().rsplit_once('\n').unwrap();
            fixture.write("files/activity.log", &format!("{kept}\n"));
        },
    ),
    corruption(
        "I2",
        "a log is rewritten",
        "files/activity.log was rewritten",
        |fixture| {
            fixture.replace("files/activity.log", "wrote", "wrate");
        },
    ),
    corruption(
        "I2",
        "a guardrail is removed",
        "files/guardrails.md was rewritten",
        |fixture| {
            fixture.replace("files/guardrails.md", "small", "large");
        },
    ),
    corruption(
        "I2",
        "an error is removed",
        "files/errors.log is shorter than the 40 bytes",
        |fixture| {
            let log = json!({"bytes": 40, "sha256": sha256(b"gone")});
            fixture.event_mut("iteration_finished", 2)["logs"]["errors.log"] = log;
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I2",
        "a log shrank meanwhile",
        "and 10 at record",
        |fixture| {
            let log = json!({"bytes": 10, "sha256": sha256(b"2026-03-01")});
            fixture.event_mut("iteration_finished", 2)["logs"]["activity.log"] = log;
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I2",
        "no recorded length of a log",
        "does not record the length of `errors.log`",
        |fixture| {
            fixture.event_mut("iteration_finished", 1)["logs"]["errors.log"] = Value::Null;
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I2",
        "a line without a stamp",
        "files/activity.log line 5",
        |fixture| {
            let text = fixture.read("files/activity.log");
            fixture.write("files/activity.log", &(text + "hello\n"));
        },
    ),
    corruption(
        "I2",
        "a torn line",
        "files/errors.log line 1 is incomplete",
        |fixture| {
            fixture.write("files/errors.log", "2026-03-01T08:00:01Z iteration=1 oops");
        },
    ),
];

#[test]
fn rewritten_history() {
    assert_detected(REWRITTEN_HISTORY);
}
