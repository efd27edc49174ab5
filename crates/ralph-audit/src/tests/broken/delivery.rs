//! Incorrect commits, pull requests and successes.

use std::fs;

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, remove, stop};
use crate::tests::fixture::{AuditFixture, BRANCH, RUN, commit_on_branch, git, set_branch};

const DOUBLED_COMMITS_AND_PULL_REQUESTS: &[CorruptionCase] = &[
    corruption(
        "I3",
        "a trailer twice",
        "/1/1` is on the branch twice",
        |world| {
            rewind(world);
            let tip = commit_on_branch(&world.repo(), &trailers(RUN, 1));
            deliver(world, &tip);
        },
    ),
    corruption("I3", "another run's trailer", "of another run", |world| {
        rewind(world);
        let tip = commit_on_branch(&world.repo(), &trailers("260101-000000-0001", 2));
        deliver(world, &tip);
    }),
    corruption(
        "I3",
        "a forged action",
        "/9/1`, which the journal does not know",
        |world| {
            let tip = commit_on_branch(&world.repo(), &trailers(RUN, 9));
            deliver(world, &tip);
        },
    ),
    corruption("I3", "a lost commit", "of iteration 2, action 1", |world| {
        rewind(world);
        let tip = commit_on_branch(&world.repo(), "by hand");
        deliver(world, &tip);
    }),
    corruption("I4", "a second pull request", "2.json", |world| {
        world.open_pull(2, &world.commits[1].clone());
    }),
    corruption(
        "I4",
        "another number",
        "is about another pull request",
        |world| {
            world.event_mut("pull_request_updated", 1)["pull"]["number"] = json!(7);
            world.edit_entries(|_| {});
        },
    ),
    corruption("I4", "another commit told", "says commit", |world| {
        let base = world.base.clone();
        world.event_mut("pull_request_updated", 3)["pull"]["head"] = json!(base);
        world.edit_entries(|_| {});
    }),
    corruption(
        "I4",
        "the record is gone",
        "pull request 1 of record",
        |world| {
            stop(world);
            fs::remove_file(world.pull_path(1)).unwrap();
        },
    ),
    corruption(
        "I4",
        "the record is behind",
        "1.json stands at commit",
        |world| {
            stop(world);
            world.open_pull(1, &world.commits[0].clone());
        },
    ),
];

#[test]
fn doubled_commits_and_pull_requests() {
    assert_detected(DOUBLED_COMMITS_AND_PULL_REQUESTS);
}

fn trailers(run: &str, iteration: u64) -> String {
    format!("more\n\nRalph-Run: {run}\nRalph-Action: {run}/{iteration}/1")
}

/// Removes the last commit from the branch.
fn rewind(world: &AuditFixture) {
    set_branch(&world.repo(), Some(&world.commits[0]));
}

/// Records a commit of `repo.git` as the delivered one everywhere.
fn deliver(world: &mut AuditFixture, tip: &str) {
    let old = world.commits[1].clone();
    let origin = world.origin();
    git(
        &world.repo(),
        &["push", "-q", "-f", origin.to_str().unwrap(), BRANCH],
    );
    world.open_pull(1, tip);
    world.edit_entries(|entries| {
        for entry in entries.iter_mut() {
            if entry.kind() != "action_finished" {
                let text = entry.event.to_string().replace(&old, tip);
                entry.event = serde_json::from_str(&text).unwrap();
            }
        }
    });
}

const FALSE_GREENS: &[CorruptionCase] = &[
    corruption(
        "I12",
        "no verification",
        "comes without a verification",
        |world| {
            remove(world, "verify_finished", 1);
        },
    ),
    corruption("I12", "a red one", "is not green", |world| {
        set_verdict(world, "green", json!(false));
    }),
    corruption(
        "I12",
        "another commit",
        "the last push stands at",
        |world| {
            let first = json!(world.commits[0]);
            set_verdict(world, "head", first);
        },
    ),
    corruption("I12", "another contract", "verified contract 00", |world| {
        set_verdict(world, "contract", json!("00"));
    }),
    corruption(
        "I12",
        "a flaky commit that was green once",
        "was not green twice in a row",
        |world| {
            let flaky = json!([{"kind": "flaky", "text": "red before"}]);
            set_verdict(world, "findings", flaky);
        },
    ),
    corruption("I12", "no checks", "ran no checks", |world| {
        set_verdict(world, "checks", json!([]));
    }),
    corruption(
        "I12",
        "a check ran out of memory",
        "check `M1.1` ended with \"out_of_memory\"",
        |world| {
            world.event_mut("verify_finished", 1)["checks"][1]["ended"] = json!("out_of_memory");
            world.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "a check failed",
        "check `test_command` ended with {\"exited\":1}",
        |world| {
            world.event_mut("verify_finished", 1)["checks"][0]["ended"] = json!({"exited": 1});
            world.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "tests that the runner reports as failed",
        "check `test_command` reports 2 failed",
        |world| {
            world.event_mut("verify_finished", 1)["checks"][0]["tests"]["failed"] = json!(2);
            world.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "no tests",
        "check `test_command` ran no test",
        |world| {
            world.event_mut("verify_finished", 1)["checks"][0]["tests"]["passed"] = json!(0);
            world.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "the branch in repo.git moved",
        "the branch in repo.git stands at",
        |world| {
            commit_on_branch(&world.repo(), "by hand");
        },
    ),
    corruption(
        "I12",
        "the delivered branch moved",
        "origin.git` stands at",
        |world| {
            commit_on_branch(&world.origin(), "by hand");
        },
    ),
    corruption(
        "I12",
        "a named box is open",
        "box `M1.2` of the task was not ticked",
        |world| {
            world.event_mut("boxes_ticked", 2)["ticked"] = json!(["M1.1", "C3", "C4"]);
            world.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "a box is open",
        "2 of 3 boxes were ticked",
        |world| {
            world.event_mut("boxes_ticked", 2)["ticked"] = json!(["M1.1", "M1.2"]);
            world.edit_entries(|_| {});
        },
    ),
];

#[test]
fn false_greens() {
    assert_detected(FALSE_GREENS);
}

fn set_verdict(world: &mut AuditFixture, key: &str, value: Value) {
    world.event_mut("verify_finished", 1)[key] = value;
    world.edit_entries(|_| {});
}
