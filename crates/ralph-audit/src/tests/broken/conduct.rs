//! Runs that leaked, left something behind, spent too much, or acted in a wrong order.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, insert_after, remove, stop};
use crate::tests::fixture::{
    AuditFixture, AuditFixtureEntry, CLEAN_ROOM, KNOWN_SECRET, WORK_SANDBOX, failed_checks, write,
};

const LEAKS_AND_LEFTOVERS: &[CorruptionCase] = &[
    corruption(
        "I5",
        "a token in a log",
        "files/notes.md contains a GitHub token at byte 7",
        |fixture| {
            fixture.write(
                "files/notes.md",
                &format!("token: ghp_{}\n", "a1".repeat(18)),
            );
        },
    ),
    corruption(
        "I5",
        "a key in a torn piece",
        "recovered/journal-7.part contains a private key",
        |fixture| {
            let key = format!(
                "-----BEGIN {} KEY-----\nMIIEpAIBAAKCAQEAtestestestest\n",
                "PRIVATE"
            );
            fixture.write("recovered/journal-7.part", &key);
        },
    ),
    corruption(
        "I5",
        "a known credential in JSON in JSON",
        "files/notes.md contains the value of `SERVICE_TOKEN`",
        |fixture| {
            let text = json!({"text": json!({"text": KNOWN_SECRET}).to_string()}).to_string();
            fixture.write("files/notes.md", &text);
        },
    ),
    corruption(
        "I5",
        "a token with colour codes in it",
        "files/notes.md contains a GitHub token with colour codes in it",
        |fixture| {
            let token = format!("gh\u{1b}[31mp_{}\n", "a1".repeat(18));
            fixture.write("files/notes.md", &token);
        },
    ),
    corruption(
        "I5",
        "a bearer token after a tab",
        "files/notes.md contains a bearer token at byte 0",
        |fixture| {
            fixture.write("files/notes.md", "Bearer\t x8Kf2mQ9vTz4LpW7r5Nc3Hd1\n");
        },
    ),
    corruption(
        "I5",
        "an assigned key",
        "files/notes.md contains an assigned key at byte 2",
        |fixture| {
            let text = "{ api_key\": \"x8Kf2mQ9vTz4LpW7r5Nc3Hd1\" }\n";
            fixture.write("files/notes.md", text);
        },
    ),
    corruption("I7", "a clean room is not removed", CLEAN_ROOM, |fixture| {
        remove(fixture, "sandbox_removed", 1);
    }),
    corruption(
        "I7",
        "the label of a clean room is left",
        "that was removed",
        |fixture| {
            fixture.label(CLEAN_ROOM, "clean_room");
            fs::remove_dir(fixture.sandbox(CLEAN_ROOM)).unwrap();
        },
    ),
    corruption(
        "I7",
        "a directory is left",
        "still exists after its removal",
        |fixture| {
            write(&fixture.sandbox(CLEAN_ROOM).join("repo/x"), "");
        },
    ),
    corruption(
        "I7",
        "an unknown sandbox",
        "sandboxes/local-0000000000c3.json",
        |fixture| {
            fixture.label("local-0000000000c3", "clean_room");
        },
    ),
];

#[test]
fn leaks_and_leftovers() {
    assert_detected(LEAKS_AND_LEFTOVERS);
}

#[test]
fn a_process_that_is_left_is_found() {
    let mut fixture = AuditFixture::succeeded();
    let name = format!("{:012x}", std::process::id());
    let id = format!("local-{name}");
    fixture.event_mut("sandbox_created", 1)["sandbox"] = json!(id);
    fixture.edit_entries(|_| {});
    fs::remove_file(fixture.sandbox(&format!("{WORK_SANDBOX}.json"))).unwrap();
    let mut child = Command::new("sleep")
        .arg("60")
        .env("RALPH_SANDBOX", &name)
        .spawn()
        .unwrap();
    let audit = fixture.audit();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(failed_checks(&audit), ["I7"]);
    let expected = format!("process {} of sandbox `{id}` is still running", child.id());
    assert_eq!(audit.checks[6].findings, [expected]);
    assert_eq!(failed_checks(&fixture.audit()), Vec::<&str>::new());
}

const EXCEEDED_BUDGETS: &[CorruptionCase] = &[
    corruption(
        "I6",
        "iterations",
        "iteration 2 was started, but `max_iterations` is 1",
        |fixture| {
            limit(fixture, "max_iterations", json!(1));
        },
    ),
    corruption(
        "I6",
        "tokens",
        "another call after 1000 tokens",
        |fixture| {
            limit(fixture, "max_tokens", json!(1000));
        },
    ),
    corruption(
        "I6",
        "tokens of an abandoned call",
        "another call after 2000 tokens",
        |fixture| {
            let index = fixture.entry_index("model_asked", 2);
            insert_after(fixture, index, abandoned_call());
            limit(fixture, "max_tokens", json!(2000));
        },
    ),
    corruption("I6", "cost", "another call after $0.250000000", |fixture| {
        limit(fixture, "max_cost", json!(0.25));
    }),
    corruption(
        "I6",
        "wall time",
        "(`iteration_started`) was written at 20230 ms",
        |fixture| {
            let index = fixture.entry_index("iteration_started", 2);
            limit(fixture, "max_wall_time", json!({"secs": 5, "nanos": 0}));
            fixture.edit_entries(|entries| {
                entries[index..]
                    .iter_mut()
                    .for_each(|entry| entry.active_ms += 20_000);
            });
        },
    ),
    corruption(
        "I6",
        "the clock goes back",
        "went back from 40 ms to 7 ms",
        |fixture| {
            fixture.edit_entries(|entries| entries[4].active_ms = 7);
        },
    ),
];

#[test]
fn exceeded_budgets() {
    assert_detected(EXCEEDED_BUDGETS);
}

fn limit(fixture: &mut AuditFixture, key: &str, value: Value) {
    fixture.event_mut("run_created", 1)["plan"]["limits"][key] = value;
    fixture.edit_entries(|_| {});
}

/// Returns the record of a call in the second iteration whose reply was lost.
fn abandoned_call() -> Value {
    json!({"type": "model_abandoned", "iteration": 2, "attempt": 1,
        "usage": {"input_tokens": 900, "output_tokens": 100}, "cost_usd": 0.25})
}

const WRONG_WRITERS_AND_STATES: &[CorruptionCase] = &[
    corruption(
        "I13",
        "a stale process writes",
        "was written in epoch 1, but epoch 3",
        |fixture| {
            let index = fixture.entry_index("verify_started", 1);
            fixture.edit_entries(|entries| entries[index].epoch = 1);
        },
    ),
    corruption(
        "I13",
        "an epoch is opened twice",
        "opens epoch 2, but epoch 2",
        |fixture| {
            fixture.edit_entries(|entries| {
                for entry in entries.iter_mut().filter(|entry| entry.epoch == 3) {
                    entry.epoch = 2;
                    if entry.kind() == "run_opened" {
                        entry.event["epoch"] = json!(2);
                    }
                }
            });
        },
    ),
    corruption(
        "I13",
        "an opening names another epoch",
        "names another epoch",
        |fixture| {
            fixture.event_mut("run_opened", 2)["epoch"] = json!(9);
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I14",
        "a skipped status",
        "`verifying` must not follow `preparing`",
        |fixture| {
            let index = fixture.entry_index("status_changed", 2);
            fixture.edit_entries(|entries| entries[index].event["status"] = json!("verifying"));
        },
    ),
    corruption(
        "I14",
        "prepared again without a crash",
        "`preparing` must not follow `running`",
        |fixture| {
            let index = fixture.entry_index("status_changed", 2);
            insert_after(
                fixture,
                index,
                json!({"type": "status_changed", "status": "preparing"}),
            );
        },
    ),
    corruption(
        "I14",
        "an unknown status",
        "`sleeping` must not follow",
        |fixture| {
            let index = fixture.entry_index("status_changed", 2);
            insert_after(
                fixture,
                index,
                json!({"type": "status_changed", "status": "sleeping"}),
            );
        },
    ),
    corruption(
        "I14",
        "something follows the end",
        "`running` must not follow `failed`",
        |fixture| {
            let index = fixture.entry_index("status_changed", 2);
            fixture.edit_entries(|entries| {
                let failed = json!({"type": "status_changed", "status": "failed", "reason": {"kind": "model", "reason": "no"}});
                let before = entries[index].clone();
                entries.insert(index, AuditFixtureEntry { event: failed, ..before });
            });
        },
    ),
    corruption(
        "I14",
        "work after the end",
        "(`tests_run`) comes after the run has succeeded",
        |fixture| {
            let index = fixture.entry_index("tests_run", 2);
            let event = fixture.entries[index].event.clone();
            insert_after(fixture, fixture.entries.len() - 1, event);
        },
    ),
    corruption(
        "I14",
        "a charge after the end",
        "(`model_abandoned`) comes after the run has succeeded",
        |fixture| insert_after(fixture, fixture.entries.len() - 1, abandoned_call()),
    ),
    corruption(
        "I14",
        "an agent after the end",
        "(`agent_did`) comes after the run has succeeded",
        |fixture| {
            let event = json!({"type": "agent_did", "iteration": 2});
            insert_after(fixture, fixture.entries.len() - 1, event);
        },
    ),
    corruption(
        "I14",
        "created twice",
        "the run was created before",
        |fixture| {
            let event = fixture.entries[0].event.clone();
            insert_after(fixture, 3, event);
        },
    ),
];

#[test]
fn wrong_writers_and_states() {
    assert_detected(WRONG_WRITERS_AND_STATES);
}

const CHANGED_CONTRACTS_AND_OPEN_INTENTS: &[CorruptionCase] = &[
    corruption(
        "CON",
        "the file of an ended run",
        "changed by hand after the run had ended",
        |fixture| {
            fixture.replace("ralph_task.md", "goodbye", "nothing");
        },
    ),
    corruption(
        "CON",
        "the file of a paused run",
        "`ralph resume` restores it",
        |fixture| {
            fixture.replace("ralph_task.md", "max_iterations: 5", "max_iterations: 6");
            let index = fixture.entry_index("verify_started", 1);
            fixture.edit_entries(|entries| {
                entries.truncate(index);
                let reason = json!({"kind": "person"});
                entries[index - 1].event =
                    json!({"type": "status_changed", "status": "paused", "reason": reason});
            });
        },
    ),
    corruption(
        "CON",
        "the file is gone",
        "ralph_task.md cannot be read",
        |fixture| {
            stop(fixture);
            fs::remove_file(fixture.run_dir().join("ralph_task.md")).unwrap();
        },
    ),
    corruption(
        "INT",
        "an action without an end",
        "action 0 of iteration 1 has no outcome",
        |fixture| {
            remove(fixture, "action_finished", 1);
        },
    ),
    corruption(
        "INT",
        "a command is repeated without a record",
        "action 0 of iteration 2 has no outcome",
        |fixture| {
            remove(fixture, "action_finished", 3);
        },
    ),
    corruption(
        "INT",
        "an action ends twice",
        "action 0 of iteration 1 finished a second time",
        |fixture| {
            let index = fixture.entry_index("action_finished", 1);
            let started = fixture.entries[fixture.entry_index("action_started", 1)]
                .event
                .clone();
            let ended = fixture.entries[index].event.clone();
            insert_after(fixture, index, ended);
            insert_after(fixture, index, started);
        },
    ),
    corruption(
        "INT",
        "an effect without an intent",
        "action 0 of iteration 1 finished without",
        |fixture| {
            remove(fixture, "action_started", 1);
        },
    ),
    corruption(
        "INT",
        "a call without a reply",
        "attempt 1 of iteration 1 has no outcome",
        |fixture| {
            remove(fixture, "model_replied", 1);
        },
    ),
    corruption(
        "INT",
        "a reply without a call",
        "attempt 1 of iteration 1 has an outcome but no call",
        |fixture| {
            remove(fixture, "model_asked", 1);
        },
    ),
];

#[test]
fn changed_contracts_and_open_intents() {
    assert_detected(CHANGED_CONTRACTS_AND_OPEN_INTENTS);
}
