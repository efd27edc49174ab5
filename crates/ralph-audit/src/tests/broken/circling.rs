//! Runs whose circling, doctor calls or user commands contradict their records.

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, insert_after};
use crate::tests::fixture::AuditFixture;

/// Changes the record of the first iteration to a score with these signals.
fn measure(fixture: &mut AuditFixture, score: f64, signals: &[&str], ladder: &Value, step: &Value) {
    let index = fixture.entry_index("iteration_finished", 1);
    let signals: Vec<Value> = signals.iter().map(|name| json!({"signal": name})).collect();
    let (ladder, step) = (ladder.clone(), step.clone());
    fixture.edit_entries(|entries| {
        let metrics = &mut entries[index].event["metrics"];
        metrics["loop_score"] = json!(score);
        metrics["gutter"] = json!({"signals": signals, "ladder": ladder, "facts": {}});
        if !step.is_null() {
            metrics["gutter"]["step"] = step;
        }
    });
}

fn insert(fixture: &mut AuditFixture, event: Value) {
    let index = fixture.entry_index("iteration_finished", 1);
    insert_after(fixture, index, event);
}

const CASES: &[CorruptionCase] = &[
    corruption(
        "GUT",
        "a score that differs from its signals",
        "add up to 5 tenths",
        |fixture| {
            let ladder = json!({"consecutive": 0});
            measure(fixture, 0.2, &["repeated_failure"], &ladder, &Value::Null);
        },
    ),
    corruption(
        "GUT",
        "a score below its signals",
        "add up to 7 tenths",
        |fixture| {
            let ladder = json!({"consecutive": 0});
            measure(fixture, 0.2, &["cycle"], &ladder, &Value::Null);
        },
    ),
    corruption(
        "GUT",
        "an unrecorded gutter",
        "of iteration 1 was not recorded",
        |fixture| {
            let ladder = json!({"consecutive": 1, "rung": "rotate"});
            let signals = ["repeated_failure", "file_thrash"];
            measure(fixture, 0.7, &signals, &ladder, &json!({"step": "rotate"}));
        },
    ),
    corruption(
        "GUT",
        "an unnecessary step",
        "a step without a gutter",
        |fixture| {
            let ladder = json!({"consecutive": 0});
            measure(
                fixture,
                0.3,
                &["stagnation"],
                &ladder,
                &json!({"step": "pause"}),
            );
            insert(fixture, json!({"type": "gutter", "iteration": 1}));
        },
    ),
    corruption(
        "GUT",
        "skipped rungs",
        "from 0 gutters in a row to 4",
        |fixture| {
            let ladder = json!({"consecutive": 4, "rung": "pause"});
            let signals = ["repeated_failure", "file_thrash"];
            measure(fixture, 0.7, &signals, &ladder, &Value::Null);
        },
    ),
    corruption(
        "INT",
        "a doctor reply without a question",
        "the doctor was not asked",
        |fixture| {
            insert(
                fixture,
                json!({"type": "doctor_replied", "number": 1, "attempt": 1}),
            );
        },
    ),
    corruption(
        "INT",
        "a doctor asked twice",
        "without an outcome",
        |fixture| {
            let asked = |attempt| json!({"type": "doctor_asked", "number": 1, "attempt": attempt});
            insert(fixture, asked(2));
            insert(fixture, asked(1));
        },
    ),
    corruption(
        "INT",
        "a command that was not received",
        "was not accepted",
        |fixture| {
            insert(
                fixture,
                json!({"type": "command_done", "id": "7", "done": true, "detail": ""}),
            );
        },
    ),
];

#[test]
fn circling_doctor_calls_and_commands() {
    assert_detected(CASES);
}
