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
        "files/notes.md holds a GitHub token at byte 7",
        |world| {
            world.write(
                "files/notes.md",
                &format!("token: ghp_{}\n", "a1".repeat(18)),
            );
        },
    ),
    corruption(
        "I5",
        "a key in a torn piece",
        "recovered/journal-7.part holds a private key",
        |world| {
            let key = format!(
                "-----BEGIN {} KEY-----\nMIIEpAIBAAKCAQEAtestestestest\n",
                "PRIVATE"
            );
            world.write("recovered/journal-7.part", &key);
        },
    ),
    corruption(
        "I5",
        "a known credential in JSON in JSON",
        "files/notes.md holds the value of `SERVICE_TOKEN`",
        |world| {
            let text = json!({"text": json!({"text": KNOWN_SECRET}).to_string()}).to_string();
            world.write("files/notes.md", &text);
        },
    ),
    corruption(
        "I5",
        "a token with colour codes in it",
        "files/notes.md holds a GitHub token behind colour codes",
        |world| {
            let token = format!("gh\u{1b}[31mp_{}\n", "a1".repeat(18));
            world.write("files/notes.md", &token);
        },
    ),
    corruption(
        "I5",
        "a bearer token after a tab",
        "files/notes.md holds a bearer token at byte 0",
        |world| {
            world.write("files/notes.md", "Bearer\t x8Kf2mQ9vTz4LpW7r5Nc3Hd1\n");
        },
    ),
    corruption(
        "I5",
        "a key that is assigned",
        "files/notes.md holds an assigned key at byte 2",
        |world| {
            let text = "{ api_key\": \"x8Kf2mQ9vTz4LpW7r5Nc3Hd1\" }\n";
            world.write("files/notes.md", text);
        },
    ),
    corruption("I7", "a clean room is not removed", CLEAN_ROOM, |world| {
        remove(world, "sandbox_removed", 1);
    }),
    corruption(
        "I7",
        "a mark of a clean room is left",
        "that was removed",
        |world| {
            world.label(CLEAN_ROOM, "clean_room");
            fs::remove_dir(world.sandbox(CLEAN_ROOM)).unwrap();
        },
    ),
    corruption(
        "I7",
        "a directory is left",
        "is still there after its removal",
        |world| {
            write(&world.sandbox(CLEAN_ROOM).join("repo/x"), "");
        },
    ),
    corruption(
        "I7",
        "an unknown sandbox",
        "sandboxes/local-0000000000c3.json",
        |world| {
            world.label("local-0000000000c3", "clean_room");
        },
    ),
];

#[test]
fn leaks_and_leftovers() {
    assert_detected(LEAKS_AND_LEFTOVERS);
}

#[test]
fn a_process_that_is_left_is_found() {
    let mut world = AuditFixture::succeeded();
    let name = format!("{:012x}", std::process::id());
    let id = format!("local-{name}");
    world.event_mut("sandbox_created", 1)["sandbox"] = json!(id);
    world.edit_entries(|_| {});
    fs::remove_file(world.sandbox(&format!("{WORK_SANDBOX}.json"))).unwrap();
    let mut child = Command::new("sleep")
        .arg("60")
        .env("RALPH_SANDBOX", &name)
        .spawn()
        .unwrap();
    let audit = world.audit();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(failed_checks(&audit), ["I7"]);
    let expected = format!("process {} of sandbox `{id}` still runs", child.id());
    assert_eq!(audit.checks[6].findings, [expected]);
    assert_eq!(failed_checks(&world.audit()), Vec::<&str>::new());
}

const OVERDRAWN_BUDGETS: &[CorruptionCase] = &[
    corruption(
        "I6",
        "iterations",
        "iteration 2 was started, `max_iterations` is 1",
        |world| {
            limit(world, "max_iterations", json!(1));
        },
    ),
    corruption("I6", "tokens", "another call after 1000 tokens", |world| {
        limit(world, "max_tokens", json!(1000));
    }),
    corruption("I6", "cost", "another call after $0.250000000", |world| {
        limit(world, "max_cost", json!(0.25));
    }),
    corruption(
        "I6",
        "wall time",
        "(`iteration_started`) comes at 20230 ms",
        |world| {
            let place = world.entry_index("iteration_started", 2);
            limit(world, "max_wall_time", json!({"secs": 5, "nanos": 0}));
            world.edit_entries(|entries| {
                entries[place..]
                    .iter_mut()
                    .for_each(|entry| entry.active_ms += 20_000);
            });
        },
    ),
    corruption(
        "I6",
        "the clock goes back",
        "went back from 40 ms to 7 ms",
        |world| {
            world.edit_entries(|entries| entries[4].active_ms = 7);
        },
    ),
];

#[test]
fn overdrawn_budgets() {
    assert_detected(OVERDRAWN_BUDGETS);
}

fn limit(world: &mut AuditFixture, key: &str, value: Value) {
    world.event_mut("run_created", 1)["plan"]["limits"][key] = value;
    world.edit_entries(|_| {});
}

const WRONG_WRITERS_AND_STATES: &[CorruptionCase] = &[
    corruption(
        "I13",
        "a stale process writes",
        "was written in epoch 1, but epoch 3",
        |world| {
            let place = world.entry_index("verify_started", 1);
            world.edit_entries(|entries| entries[place].epoch = 1);
        },
    ),
    corruption(
        "I13",
        "an epoch is opened twice",
        "opens epoch 2, but epoch 2",
        |world| {
            world.edit_entries(|entries| {
                for entry in entries.iter_mut().filter(|entry| entry.epoch == 3) {
                    entry.epoch = 2;
                    if entry.kind() == "run_opened" {
                        entry.event["epoch"] = json!(2);
                    }
                }
            });
        },
    ),
    corruption("I13", "an opening lies", "names another epoch", |world| {
        world.event_mut("run_opened", 2)["epoch"] = json!(9);
        world.edit_entries(|_| {});
    }),
    corruption(
        "I14",
        "a jump",
        "`verifying` must not follow `preparing`",
        |world| {
            let place = world.entry_index("status_changed", 2);
            world.edit_entries(|entries| entries[place].event["status"] = json!("verifying"));
        },
    ),
    corruption(
        "I14",
        "prepared again without a crash",
        "`preparing` must not follow `running`",
        |world| {
            let place = world.entry_index("status_changed", 2);
            insert_after(
                world,
                place,
                json!({"type": "status_changed", "status": "preparing"}),
            );
        },
    ),
    corruption(
        "I14",
        "an unknown word",
        "`sleeping` must not follow",
        |world| {
            let place = world.entry_index("status_changed", 2);
            insert_after(
                world,
                place,
                json!({"type": "status_changed", "status": "sleeping"}),
            );
        },
    ),
    corruption(
        "I14",
        "something follows the end",
        "`running` must not follow `failed`",
        |world| {
            let place = world.entry_index("status_changed", 2);
            world.edit_entries(|entries| {
                let failed = json!({"type": "status_changed", "status": "failed", "reason": {"kind": "model", "reason": "no"}});
                let before = entries[place].clone();
                entries.insert(place, AuditFixtureEntry { event: failed, ..before });
            });
        },
    ),
    corruption(
        "I14",
        "work after the end",
        "(`tests_run`) comes after the run has succeeded",
        |world| {
            let place = world.entry_index("tests_run", 2);
            let event = world.entries[place].event.clone();
            insert_after(world, world.entries.len() - 1, event);
        },
    ),
    corruption(
        "I14",
        "created twice",
        "the run was created before",
        |world| {
            let event = world.entries[0].event.clone();
            insert_after(world, 3, event);
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
        |world| {
            world.replace("ralph_task.md", "goodbye", "nothing");
        },
    ),
    corruption(
        "CON",
        "the file of a paused run",
        "`ralph resume` puts it back",
        |world| {
            world.replace("ralph_task.md", "max_iterations: 5", "max_iterations: 6");
            let place = world.entry_index("verify_started", 1);
            world.edit_entries(|entries| {
                entries.truncate(place);
                let reason = json!({"kind": "person"});
                entries[place - 1].event =
                    json!({"type": "status_changed", "status": "paused", "reason": reason});
            });
        },
    ),
    corruption(
        "CON",
        "the file is gone",
        "ralph_task.md cannot be read",
        |world| {
            stop(world);
            fs::remove_file(world.run_dir().join("ralph_task.md")).unwrap();
        },
    ),
    corruption(
        "INT",
        "an action without an end",
        "action 0 of iteration 1 has no outcome",
        |world| {
            remove(world, "action_finished", 1);
        },
    ),
    corruption(
        "INT",
        "a command is repeated in silence",
        "action 0 of iteration 2 has no outcome",
        |world| {
            remove(world, "action_finished", 3);
        },
    ),
    corruption(
        "INT",
        "an action ends twice",
        "action 0 of iteration 1 ended a second time",
        |world| {
            let place = world.entry_index("action_finished", 1);
            let begun = world.entries[world.entry_index("action_started", 1)]
                .event
                .clone();
            let ended = world.entries[place].event.clone();
            insert_after(world, place, ended);
            insert_after(world, place, begun);
        },
    ),
    corruption(
        "INT",
        "an effect without an intent",
        "action 0 of iteration 1 ended without",
        |world| {
            remove(world, "action_started", 1);
        },
    ),
    corruption(
        "INT",
        "a call without an answer",
        "attempt 1 of iteration 1 has no outcome",
        |world| {
            remove(world, "model_replied", 1);
        },
    ),
    corruption(
        "INT",
        "an answer nobody asked for",
        "attempt 1 of iteration 1 was not asked",
        |world| {
            remove(world, "model_asked", 1);
        },
    ),
];

#[test]
fn changed_contracts_and_open_intents() {
    assert_detected(CHANGED_CONTRACTS_AND_OPEN_INTENTS);
}
