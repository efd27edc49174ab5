//! Incorrect commits, pull requests and successes.

use std::fs;

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, remove, stop};
use crate::tests::fixture::{AuditFixture, BRANCH, RUN, commit_on_branch, git, set_branch};

const DUPLICATE_COMMITS_AND_PULL_REQUESTS: &[CorruptionCase] = &[
    corruption(
        "I3",
        "a trailer twice",
        "/1/1` is on the branch twice",
        |fixture| {
            rewind(fixture);
            let tip = commit_on_branch(&fixture.repo(), &trailers(RUN, 1));
            deliver(fixture, &tip);
        },
    ),
    corruption("I3", "another run's trailer", "of another run", |fixture| {
        rewind(fixture);
        let tip = commit_on_branch(&fixture.repo(), &trailers("260101-000000-0001", 2));
        deliver(fixture, &tip);
    }),
    corruption(
        "I3",
        "a forged action",
        "/9/1`, which is not in the journal",
        |fixture| {
            let tip = commit_on_branch(&fixture.repo(), &trailers(RUN, 9));
            deliver(fixture, &tip);
        },
    ),
    corruption(
        "I3",
        "a lost commit",
        "of iteration 2, action 1",
        |fixture| {
            rewind(fixture);
            let tip = commit_on_branch(&fixture.repo(), "by hand");
            deliver(fixture, &tip);
        },
    ),
    corruption("I4", "a second pull request", "2.json", |fixture| {
        fixture.open_pull(2, &fixture.commits[1].clone());
    }),
    corruption(
        "I4",
        "another number",
        "names another pull request",
        |fixture| {
            fixture.event_mut("pull_request_updated", 1)["pull"]["number"] = json!(7);
            fixture.edit_entries(|_| {});
        },
    ),
    corruption("I4", "another commit recorded", "names commit", |fixture| {
        let base = fixture.base.clone();
        fixture.event_mut("pull_request_updated", 3)["pull"]["head"] = json!(base);
        fixture.edit_entries(|_| {});
    }),
    corruption(
        "I4",
        "the record is gone",
        "pull request 1 of record",
        |fixture| {
            stop(fixture);
            fs::remove_file(fixture.pull_path(1)).unwrap();
        },
    ),
    corruption(
        "I4",
        "the record is behind",
        "1.json is at commit",
        |fixture| {
            stop(fixture);
            fixture.open_pull(1, &fixture.commits[0].clone());
        },
    ),
];

#[test]
fn duplicate_commits_and_pull_requests() {
    assert_detected(DUPLICATE_COMMITS_AND_PULL_REQUESTS);
}

fn trailers(run: &str, iteration: u64) -> String {
    format!("more\n\nRalph-Run: {run}\nRalph-Action: {run}/{iteration}/1")
}

/// Removes the last commit from the branch.
fn rewind(fixture: &AuditFixture) {
    set_branch(&fixture.repo(), Some(&fixture.commits[0]));
}

/// Records a commit of `repo.git` as the delivered one everywhere.
fn deliver(fixture: &mut AuditFixture, tip: &str) {
    let old = fixture.commits[1].clone();
    let origin = fixture.origin();
    git(
        &fixture.repo(),
        &["push", "-q", "-f", origin.to_str().unwrap(), BRANCH],
    );
    fixture.open_pull(1, tip);
    fixture.edit_entries(|entries| {
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
        "has no verification before it",
        |fixture| {
            remove(fixture, "verify_finished", 1);
        },
    ),
    corruption("I12", "a red verification", "is not green", |fixture| {
        set_verdict(fixture, "green", json!(false));
    }),
    corruption("I12", "another commit", "the last push is at", |fixture| {
        let first = json!(fixture.commits[0]);
        set_verdict(fixture, "head", first);
    }),
    corruption(
        "I12",
        "another contract",
        "verified contract 00",
        |fixture| {
            set_verdict(fixture, "contract", json!("00"));
        },
    ),
    corruption(
        "I12",
        "a flaky commit that was green once",
        "was not green twice in a row",
        |fixture| {
            let flaky = json!([{"kind": "flaky", "text": "red before"}]);
            set_verdict(fixture, "findings", flaky);
        },
    ),
    corruption("I12", "no checks", "ran no checks", |fixture| {
        set_verdict(fixture, "checks", json!([]));
    }),
    corruption(
        "I12",
        "a check ran out of memory",
        "check `M1.1` ended with \"out_of_memory\"",
        |fixture| {
            fixture.event_mut("verify_finished", 1)["checks"][1]["ended"] = json!("out_of_memory");
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "a check failed",
        "check `test_command` ended with {\"exited\":1}",
        |fixture| {
            fixture.event_mut("verify_finished", 1)["checks"][0]["ended"] = json!({"exited": 1});
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "tests that the runner reports as failed",
        "check `test_command` reports failed tests: 2",
        |fixture| {
            fixture.event_mut("verify_finished", 1)["checks"][0]["tests"]["failed"] = json!(2);
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "no tests",
        "check `test_command` ran no tests",
        |fixture| {
            fixture.event_mut("verify_finished", 1)["checks"][0]["tests"]["passed"] = json!(0);
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "the branch in repo.git moved",
        "the branch in repo.git is at",
        |fixture| {
            commit_on_branch(&fixture.repo(), "by hand");
        },
    ),
    corruption(
        "I12",
        "the delivered branch moved",
        "origin.git` is at",
        |fixture| {
            commit_on_branch(&fixture.origin(), "by hand");
        },
    ),
    corruption(
        "I12",
        "a named box is open",
        "box `M1.2` of the task was not ticked",
        |fixture| {
            fixture.event_mut("boxes_ticked", 2)["ticked"] = json!(["M1.1", "C3", "C4"]);
            fixture.edit_entries(|_| {});
        },
    ),
    corruption(
        "I12",
        "a box is open",
        "2 of 3 boxes were ticked",
        |fixture| {
            fixture.event_mut("boxes_ticked", 2)["ticked"] = json!(["M1.1", "M1.2"]);
            fixture.edit_entries(|_| {});
        },
    ),
];

#[test]
fn false_greens() {
    assert_detected(FALSE_GREENS);
}

fn set_verdict(fixture: &mut AuditFixture, key: &str, value: Value) {
    fixture.event_mut("verify_finished", 1)[key] = value;
    fixture.edit_entries(|_| {});
}
