//! Incorrect commits, pull requests and successes.

use std::fs;

use serde_json::{Value, json};

use super::case::{CorruptionCase, assert_detected, corruption, insert_after, remove, stop};
use crate::tests::fixture::{
    AuditFixture, BRANCH, RUN, commit_on_branch, failed_checks, git, set_branch,
};

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
        "required checks failed at the source host",
        "does not permit the success: the checks are failed",
        |fixture| wait_for_checks(fixture, Some("retry")),
    ),
    corruption(
        "I12",
        "the checks at the source host have no result",
        "but the run succeeded without a result",
        |fixture| wait_for_checks(fixture, None),
    ),
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

/// Inserts a wait for the checks of the delivered commit, and their result.
fn wait_for_checks(fixture: &mut AuditFixture, decision: Option<&str>) {
    let commit = fixture.commits[1].clone();
    let wait = json!({"type": "status_changed", "status": "waiting_ci",
        "reason": {"commit": commit, "round": 1, "until": "2026-03-01T09:00:00Z"}});
    let result = decision.map(|decision| {
        json!({"type": "ci_finished", "commit": commit, "round": 1, "outcome": "failed",
            "failed": ["build"], "counts": {"passed": 0, "failed": 1, "pending": 0},
            "decision": decision})
    });
    let back = json!({"type": "status_changed", "status": "verifying"});
    let verified = fixture.entry_index("verify_finished", 1);
    let events = [Some(wait), result, Some(back)].into_iter().flatten();
    for (at, event) in (verified..).zip(events) {
        insert_after(fixture, at, event);
    }
}

#[test]
fn a_wait_for_passed_checks_is_no_finding() {
    let mut fixture = AuditFixture::succeeded();
    wait_for_checks(&mut fixture, Some("success"));
    let audit = fixture.audit();
    assert!(audit.is_green(), "{}", audit.render());
}

#[test]
fn a_result_belongs_to_the_wait_before_it() {
    let mut fixture = AuditFixture::succeeded();
    wait_for_checks(&mut fixture, Some("success"));
    let result = fixture.entry_index("ci_finished", 1);
    fixture.edit_entries(|entries| {
        // The same wait again, without its result.
        let again = [entries[result - 1].clone(), entries[result + 1].clone()];
        entries.splice(result + 2..result + 2, again);
    });
    let audit = fixture.audit();
    let render = audit.render();
    assert_eq!(failed_checks(&audit), ["I12"], "{render}");
    let finding = "but the run succeeded without a result";
    assert!(render.contains(finding), "{render}");
}

/// A pull request at a host on the network is opened once, after its intent.
#[test]
fn a_remote_pull_request_needs_one_intent() {
    let started = json!({"type": "pull_request_started", "branch": BRANCH, "head": "x"});
    for (intents, finding) in [(0, Some("the pull request was not started")), (1, None)] {
        let mut fixture = AuditFixture::succeeded();
        fixture.event_mut("run_created", 1)["plan"]["scm"] = json!("github");
        fixture.edit_entries(|_| {});
        let at = fixture.entry_index("pushed", 1);
        for _ in 0..intents {
            insert_after(&mut fixture, at, started.clone());
        }
        let audit = fixture.audit();
        let intents = audit.checks.iter().find(|check| check.id == "INT").unwrap();
        let found = intents.findings.first().map(String::as_str);
        assert!(
            match finding {
                Some(finding) => found.is_some_and(|text| text.ends_with(finding)),
                None => found.is_none(),
            },
            "{}",
            audit.render()
        );
    }
}

fn set_verdict(fixture: &mut AuditFixture, key: &str, value: Value) {
    fixture.event_mut("verify_finished", 1)[key] = value;
    fixture.edit_entries(|_| {});
}
