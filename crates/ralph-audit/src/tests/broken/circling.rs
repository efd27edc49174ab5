//! Runs whose circling, doctor or errands contradict their records.

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, insert_after};
use crate::tests::fixture::AuditFixture;

/// Changes the record of the first iteration to a score with these signals.
fn measure(world: &mut AuditFixture, score: f64, signals: &[&str], ladder: &Value, step: &Value) {
    let place = world.entry_index("iteration_finished", 1);
    let signals: Vec<Value> = signals.iter().map(|name| json!({"signal": name})).collect();
    let (ladder, step) = (ladder.clone(), step.clone());
    world.edit_entries(|entries| {
        let metrics = &mut entries[place].event["metrics"];
        metrics["loop_score"] = json!(score);
        metrics["gutter"] = json!({"signals": signals, "ladder": ladder, "facts": {}});
        if !step.is_null() {
            metrics["gutter"]["step"] = step;
        }
    });
}

fn insert(world: &mut AuditFixture, event: Value) {
    let place = world.entry_index("iteration_finished", 1);
    insert_after(world, place, event);
}

const CASES: &[CorruptionCase] = &[
    corruption("GUT", "a score of its own", "add up to 5 tenths", |world| {
        let ground = json!({"consecutive": 0});
        measure(world, 0.2, &["repeated_failure"], &ground, &Value::Null);
    }),
    corruption(
        "GUT",
        "a circle played down",
        "add up to 7 tenths",
        |world| {
            let ground = json!({"consecutive": 0});
            measure(world, 0.2, &["cycle"], &ground, &Value::Null);
        },
    ),
    corruption(
        "GUT",
        "a gutter in silence",
        "of iteration 1 was not told",
        |world| {
            let ladder = json!({"consecutive": 1, "rung": "rotate"});
            let signals = ["repeated_failure", "file_thrash"];
            measure(world, 0.7, &signals, &ladder, &json!({"step": "rotate"}));
        },
    ),
    corruption(
        "GUT",
        "a step without need",
        "a step without a gutter",
        |world| {
            let ground = json!({"consecutive": 0});
            measure(
                world,
                0.3,
                &["stagnation"],
                &ground,
                &json!({"step": "pause"}),
            );
            insert(world, json!({"type": "gutter", "iteration": 1}));
        },
    ),
    corruption(
        "GUT",
        "rungs left out",
        "from 0 gutters in a row to 4",
        |world| {
            let ladder = json!({"consecutive": 4, "rung": "pause"});
            let signals = ["repeated_failure", "file_thrash"];
            measure(world, 0.7, &signals, &ladder, &Value::Null);
        },
    ),
    corruption(
        "INT",
        "a doctor nobody asked",
        "the doctor was not asked",
        |world| {
            insert(
                world,
                json!({"type": "doctor_replied", "number": 1, "attempt": 1}),
            );
        },
    ),
    corruption(
        "INT",
        "a doctor asked twice",
        "without an outcome",
        |world| {
            let asked = |attempt| json!({"type": "doctor_asked", "number": 1, "attempt": attempt});
            insert(world, asked(2));
            insert(world, asked(1));
        },
    ),
    corruption(
        "INT",
        "an errand nobody gave",
        "was not accepted",
        |world| {
            insert(
                world,
                json!({"type": "command_done", "id": "7", "done": true, "detail": ""}),
            );
        },
    ),
];

#[test]
fn circling_doctor_calls_and_commands() {
    assert_detected(CASES);
}
