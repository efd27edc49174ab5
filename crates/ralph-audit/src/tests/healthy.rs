//! Runs that kept their promises, at every point in time.

use std::fs;

use serde_json::{Value, json};

use super::fixture::{
    AuditFixture, AuditFixtureEntry, BRANCH, RUN, failed_checks, git, set_branch,
};
use crate::{AuditStatus, audit};

#[test]
fn a_run_that_succeeded_is_green() {
    let audit = AuditFixture::succeeded().audit();
    assert!(audit.is_green());
    snapbox::assert_data_eq!(
        audit.render(),
        snapbox::str![[r"
PASS I1  no lost iteration
PASS I2  append-only
PASS I3  no duplicate commit
PASS I4  one pull request
PASS I5  no secret in the files
PASS I6  budgets are respected
PASS I7  no orphans
PASS I12 no false green
PASS I13 single writer
PASS I14 legal states
PASS CON the contract is the pinned one
PASS INT every intent has an outcome
N/A  GUT circling is measured and answered
         no iteration was measured
N/A  FIL the files are as recorded
         its files were not recorded
PASS DEL delivered commits are complete
run 260301-080000-00af: 13 passed, 0 failed, 2 not applicable

"]]
    );
}

#[test]
fn a_crash_after_any_record_passes_the_audit() {
    const EFFECTS: [&str; 6] = [
        "sandbox_created",
        "workspace_ready",
        "commits_imported",
        "pushed",
        "pull_request_updated",
        "iteration_finished",
    ];
    let fixture = AuditFixture::succeeded();
    for recorded in 1..fixture.entries.len() {
        // The last effect may have happened without its record.
        let ahead = usize::from(EFFECTS.contains(&fixture.entries[recorded].kind()));
        for performed in recorded..=recorded + ahead {
            fixture.write_journal(recorded);
            fixture.write_run_dir(performed);
            let audit = fixture.audit();
            assert!(
                audit.is_green(),
                "{recorded}/{performed}:\n{}",
                audit.render()
            );
        }
    }
}

#[test]
fn the_fixture_uses_the_runners_event_names() {
    let fixture = AuditFixture::succeeded();
    for line in fixture.read("journal.jsonl").lines() {
        let record: ralph_core::event::JournalRecord =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let again = serde_json::to_value(&record.event).unwrap();
        let raw: Value = serde_json::from_str(line).unwrap();
        assert_eq!(again["type"], raw["event"]["type"]);
    }
}

#[test]
fn user_changes_to_a_delivered_branch_are_notes() {
    let fixture = AuditFixture::succeeded();
    set_branch(&fixture.origin(), None);
    let note = format!(
        "note: `{}` no longer has branch `{BRANCH}`",
        fixture.origin().display()
    );
    assert_eq!(green_note(&fixture), note);
    fs::remove_dir_all(fixture.origin()).unwrap();
    let note = format!("note: `{}` no longer exists", fixture.origin().display());
    assert_eq!(green_note(&fixture), note);
}

fn green_note(fixture: &AuditFixture) -> String {
    let audit = fixture.audit();
    assert_eq!(failed_checks(&audit), Vec::<&str>::new());
    let check = audit.checks.iter().find(|check| check.id == "I12").unwrap();
    check.findings.join("\n")
}

#[test]
fn a_run_on_a_source_host_needs_no_local_records() {
    let mut fixture = AuditFixture::succeeded();
    let plan = &mut fixture.event_mut("run_created", 1)["plan"];
    plan["scm"] = json!("github");
    plan["repo"] = json!("https://github.com/octo/greet");
    let opened = fixture.entry_index("pull_request_updated", 1);
    fixture.edit_entries(|entries| {
        let mut started = entries[opened].clone();
        started.event = json!({"type": "pull_request_started", "branch": "b", "head": "x"});
        entries.insert(opened, started);
    });
    fs::remove_file(fixture.pull_path(1)).unwrap();
    let audit = fixture.audit();
    assert_eq!(failed_checks(&audit), Vec::<&str>::new());
    assert_eq!(audit.checks[3].status, AuditStatus::NotApplicable);
}

#[test]
fn the_user_may_raise_a_budget() {
    let mut fixture = AuditFixture::succeeded();
    let raised = super::fixture::TASK.replace("max_iterations: 5", "max_iterations: 9");
    let contract = crate::task::contract_digest(&raised);
    fixture.write("ralph_task.md", &raised);
    fixture.event_mut("run_created", 1)["plan"]["limits"]["max_iterations"] = json!(1);
    fixture.event_mut("verify_finished", 1)["contract"] = json!(contract);
    let index = fixture.entry_index("iteration_started", 2);
    fixture.edit_entries(|entries| {
        let mut change = entries[index].clone();
        change.epoch = entries[index - 1].epoch;
        change.event = json!({"type": "contract_changed", "contract": contract, "changes": []});
        entries.insert(index, change);
    });
    assert_eq!(failed_checks(&fixture.audit()), Vec::<&str>::new());
}

#[test]
fn a_run_that_failed_on_a_budget_may_go_on_with_a_higher_one() {
    let mut fixture = continued();
    assert_eq!(
        failed_checks(&fixture.audit()),
        Vec::<&str>::new(),
        "{}",
        fixture.audit().render()
    );
    // Without the new limits, both the start and the iteration are forbidden.
    let index = fixture.entry_index("limits_changed", 1);
    fixture.edit_entries(|entries| drop(entries.remove(index)));
    assert_eq!(failed_checks(&fixture.audit()), ["I6", "I14"]);
    // A run that failed for another reason stays failed.
    let mut fixture = continued();
    fixture.event_mut("status_changed", 3)["reason"] = json!({"kind": "model", "reason": "no"});
    fixture.edit_entries(|_| {});
    assert_eq!(failed_checks(&fixture.audit()), ["I14"]);
}

/// Returns a run that failed after its first iteration and continued with a second one.
fn continued() -> AuditFixture {
    let mut fixture = AuditFixture::succeeded();
    fixture.event_mut("run_created", 1)["plan"]["limits"]["max_iterations"] = json!(1);
    let index = fixture.entry_index("iteration_started", 2);
    fixture.edit_entries(|entries| {
        let limits = json!({"max_iterations": 5, "max_wall_time": null, "max_cost": null,
            "max_tokens": null});
        let before = entries[index - 1].clone();
        let pushed = |event: Value| AuditFixtureEntry {
            event,
            ..before.clone()
        };
        let added = [
            json!({"type": "status_changed", "status": "failed",
                "reason": {"kind": "budget", "budget": "iterations"}}),
            json!({"type": "command_received", "id": "1", "command": {"limits": limits},
                "refused": null}),
            json!({"type": "limits_changed", "limits": limits}),
            json!({"type": "command_done", "id": "1", "done": true, "detail": "ok"}),
        ];
        for (offset, event) in added.into_iter().enumerate() {
            entries.insert(index + offset, pushed(event));
        }
        let epoch = before.epoch + 1;
        let reopened = [
            json!({"type": "run_opened", "epoch": epoch, "pid": 4712}),
            json!({"type": "status_changed", "status": "preparing"}),
            json!({"type": "status_changed", "status": "running"}),
        ];
        for (offset, event) in reopened.into_iter().enumerate() {
            let entry = AuditFixtureEntry {
                epoch,
                ..pushed(event)
            };
            entries.insert(index + 4 + offset, entry);
        }
        // Later openings have higher epochs.
        for entry in &mut entries[index + 7..] {
            entry.epoch += 1;
            if entry.event["type"] == "run_opened" {
                entry.event["epoch"] = json!(entry.epoch);
            }
        }
    });
    fixture
}

#[test]
fn an_amended_commit_and_a_refused_one_are_not_lost() {
    let mut fixture = AuditFixture::succeeded();
    let detail = format!("commit {}", "d".repeat(40));
    fixture.event_mut("action_finished", 4)["detail"] = json!(detail);
    fixture.edit_entries(|_| {});
    assert_eq!(failed_checks(&fixture.audit()), Vec::<&str>::new());

    let mut lost = fixture.entries[fixture.entry_index("action_started", 3)].clone();
    let mut fixture = AuditFixture::succeeded();
    let index = fixture.entry_index("action_started", 3);
    fixture.edit_entries(|entries| {
        let mut insert = |event: Value| {
            lost.event = event;
            entries.insert(index, lost.clone());
        };
        insert(json!({"type": "import_refused", "why": "a secret"}));
        insert(
            json!({"type": "action_finished", "iteration": 2, "index": 7, "action": "commit",
            "label": "commit", "result": "done", "detail": detail, "duration_ms": 1}),
        );
        insert(
            json!({"type": "action_started", "iteration": 2, "index": 7, "action": "commit",
            "label": "commit"}),
        );
    });
    assert_eq!(
        failed_checks(&fixture.audit()),
        Vec::<&str>::new(),
        "{}",
        fixture.audit().render()
    );
}

#[test]
fn a_directory_without_a_run_is_not_green() {
    let dir = tempfile::tempdir().unwrap();
    let audit = audit(&dir.path().join("nothing"), dir.path(), "/nowhere", &[]);
    assert_eq!(audit.run, "nothing");
    assert_eq!(failed_checks(&audit), ["I2", "I5", "CON"]);
}

#[test]
fn a_missing_git_is_reported() {
    let fixture = AuditFixture::succeeded();
    let audit = audit(&fixture.run_dir(), &fixture.state_dir(), "/nowhere", &[]);
    assert_eq!(failed_checks(&audit), ["I3", "I12", "DEL"]);
    let finding = &audit.checks[2].findings[0];
    assert!(
        finding.starts_with("repo.git cannot be read: cannot run git:"),
        "{finding}"
    );
}

#[test]
fn replaced_objects_are_ignored() {
    let fixture = AuditFixture::succeeded();
    let message = format!("step 2\n\nRalph-Run: {RUN}");
    let tree = format!("{}^{{tree}}", fixture.base);
    let other = git(
        &fixture.repo(),
        &["commit-tree", "-p", &fixture.base, "-m", &message, &tree],
    );
    git(&fixture.repo(), &["replace", &fixture.commits[1], &other]);
    assert_eq!(failed_checks(&fixture.audit()), Vec::<&str>::new());
}

/// A copy names only the first omitted files, of the newest iterations.
#[test]
fn iterations_that_a_copy_omits_without_naming_them_are_no_loss() {
    for (count, expected) in [
        (json!(9), AuditStatus::Pass),
        (Value::Null, AuditStatus::Fail),
    ] {
        let mut fixture = AuditFixture::succeeded();
        fixture.edit_entries(|entries| {
            let mut adopted = entries[entries.len() - 1].clone();
            adopted.event = json!({"type": "run_adopted", "adoption": {
                "source": "state_ref",
                "missing": ["iterations/2/prompt.md"],
                "missing_count": count,
            }});
            entries.push(adopted);
        });
        let iterations = fixture.run_dir().join("iterations");
        fs::remove_dir_all(iterations.join("1")).unwrap();
        fs::remove_file(iterations.join("2/prompt.md")).unwrap();
        let audit = fixture.audit();
        let check = audit.checks.iter().find(|check| check.id == "I1").unwrap();
        assert_eq!(check.status, expected, "{:?}", check.findings);
    }
}
