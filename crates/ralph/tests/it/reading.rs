//! Inspecting runs: lists, details, log and story.

use std::fs;

use ralph_core::run::{FailReason, PauseReason, RunStatus};
use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::support::{TestRalph, status, succeeded, working};

const ONE: &str = "260301-100000-0001";
const TWO: &str = "260301-100000-0002";

#[test]
fn a_run_is_found_by_id_prefix_task_or_last() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", succeeded());
    ralph.create_run(TWO, "one", working());
    ralph.create_run("260302-100000-0003", "three", working());
    for (query, id) in [
        (ONE, ONE),
        ("260301-100000-0002", TWO),
        ("260302", "260302-100000-0003"),
        ("one", TWO),
        ("three", "260302-100000-0003"),
        ("last", "260302-100000-0003"),
    ] {
        assert_eq!(
            ralph.json(&["show", query, "--json"])["id"],
            json!(id),
            "{query}"
        );
    }
}

#[test]
fn show_has_exactly_these_fields() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", succeeded());
    let expected = json!({
        "id": ONE,
        "task_id": "one",
        "status": "succeeded",
        "reason": null,
        "engine": "actions",
        "sandbox": "local",
        "iteration": 1,
        "loop_score": null,
        "cost_usd": 0.25,
        "tokens": {"input": 1200, "output": 34},
        "branch": "ralph/one/say-hello",
        "head": "b".repeat(40),
        "pr": {"number": 3, "url": "file:///pulls/3", "state": "open"},
        "started_at": "2026-03-01T10:00:00Z",
        "updated_at": "2026-03-01T10:00:00Z",
    });
    assert_eq!(ralph.json(&["runs", "--json"]), json!([expected]));
    let details = json!({
        "title": "Say hello",
        "repo": "/project",
        "task_file": "/project/ralph_task.md",
        "base_branch": "main",
        "model": "scripted:replies.jsonl",
        "profile": null,
        "agent": null,
        "mode": "autonomous",
        // Its contract is not stored.
        "boxes": null,
        "budgets": {
            "iterations": {"limit": 10, "used": 1},
            "wall_time_seconds": {"limit": null, "used": 0},
            "cost_usd": {"limit": null, "used": 0.25},
            "tokens": {"limit": null, "used": 1234},
        },
        "verified": {"commit": "b".repeat(40), "green": true},
        "warnings": 0,
        "notices": 0,
    });
    let mut all = expected.as_object().unwrap().clone();
    all.extend(details.as_object().unwrap().clone());
    assert_eq!(ralph.json(&["show", "one", "--json"]), Value::Object(all));
}

#[test]
fn a_status_includes_its_reason() {
    let ralph = TestRalph::new();
    let paused = RunStatus::Paused(PauseReason::Model {
        question: "which one?".into(),
    });
    let failed = RunStatus::Failed(FailReason::Model {
        reason: "no way".into(),
    });
    for (task, events, word, reason) in [
        (
            "a",
            vec![status(paused)],
            "paused",
            json!("the model asks: which one?"),
        ),
        (
            "b",
            vec![status(failed)],
            "failed",
            json!("the model gave up: no way"),
        ),
        (
            "c",
            vec![status(RunStatus::Stopped)],
            "stopped",
            json!(null),
        ),
        (
            "d",
            working(),
            "interrupted",
            json!(
                "the process that worked on it is gone — `ralph resume 260301-100000-000d` continues it"
            ),
        ),
    ] {
        ralph.create_run(&format!("260301-100000-000{task}"), task, events);
        let shown = ralph.json(&["show", task, "--json"]);
        assert_eq!(
            (&shown["status"], &shown["reason"]),
            (&json!(word), &reason)
        );
    }
    let journal = ralph.held_run("260301-100000-000e", "e", working());
    let shown = ralph.json(&["show", "e", "--json"]);
    assert_eq!(
        (&shown["status"], &shown["reason"]),
        (&json!("running"), &json!(null))
    );
    drop(journal);
}

#[test]
fn the_list_has_the_newest_first_and_hides_no_damage() {
    let ralph = TestRalph::new();
    assert_eq!(
        ralph.run(&["runs"]).stdout,
        "no runs yet; `ralph run` starts one\n"
    );
    assert_eq!(ralph.json(&["runs", "--json"]), json!([]));
    ralph.create_run(ONE, "one", succeeded());
    ralph.create_run(TWO, "two", working());
    ralph.create_run("260302-100000-0003", "three", working());
    let journal = ralph.dir("260302-100000-0003").journal();
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("\"seq\":3", "\"seq\":9", 1)).unwrap();
    let output = ralph.run(&["runs"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_data_eq!(
        output.stdout,
        str![[r"
RUN                 TASK   STATUS       ITER  LOOP  COST   ACTIVE    PR
260302-100000-0003  three  damaged      0     -     $0.00  -         -
260301-100000-0002  two    interrupted  1     -     $0.25  [..]d ago  -
260301-100000-0001  one    succeeded    1     -     $0.25  [..]d ago  #3 file:///pulls/3

"]]
    );
    let list = ralph.json(&["runs", "--json"]);
    let words: Vec<&str> = (0..3)
        .map(|n| list[n]["status"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["damaged", "interrupted", "succeeded"]);
}

#[test]
fn show_prints_a_readable_block() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", succeeded());
    ralph.create_run(TWO, "two", working());
    for (task, expected) in [
        (
            "one",
            str![[r"
Say hello (one)
  run      260301-100000-0001
  task     /project/ralph_task.md · 2 checkboxes
  repo     /project · main at aaaaaaaaaa
  branch   ralph/one/say-hello · pull request
  sandbox  local · no isolation: commands run as you
  model    scripted:replies.jsonl · actions
  tests    make test
  budgets  10 iterations

  status   succeeded
  used     1 iteration · 0ms · 1,234 tokens · $0.25
  active   [..]d ago
  boxes    2 of 2 checked off: M1.1, M1.2
  head     bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
  mode     autonomous
  verified bbbbbbbbbb is green in a clean room
  pr       #3 (open) file:///pulls/3
  files    /state/runs/260301-100000-0001

  budgets: iterations 1/10 (10%)

"]],
        ),
        (
            "two",
            str![[r"
Say hello (two)
  run      260301-100000-0002
  task     /project/ralph_task.md · 2 checkboxes
  repo     /project · main at aaaaaaaaaa
  branch   ralph/two/say-hello · pull request
  sandbox  local · no isolation: commands run as you
  model    scripted:replies.jsonl · actions
  tests    make test
  budgets  10 iterations

  status   interrupted
  reason   the process that worked on it is gone — `ralph resume 260301-100000-0002` continues it
  used     1 iteration · 0ms · 1,234 tokens · $0.25
  active   [..]d ago
  boxes    0 of 2 checked off
  head     aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  mode     autonomous
  files    /state/runs/260301-100000-0002

  budgets: iterations 1/10 (10%)

"]],
        ),
    ] {
        let output = ralph.run(&["show", task]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        let files = ralph.state().root().display().to_string();
        assert_data_eq!(output.stdout.replace(&files, "/state"), expected);
    }
}

#[test]
fn replay_shows_the_run_again() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", succeeded());
    let output = ralph.run(&["replay", "one"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_data_eq!(
        output.stdout,
        str![[r"
Say hello (one)
  run      260301-100000-0001
  task     /project/ralph_task.md · 2 checkboxes
  repo     /project · main at aaaaaaaaaa
  branch   ralph/one/say-hello · pull request
  sandbox  local · no isolation: commands run as you
  model    scripted:replies.jsonl · actions
  tests    make test
  budgets  10 iterations
  … preparing
  … running

── iteration 1 ──
  the model answered: 1,200 tokens in, 34 out, $0.25 (5ms)
  boxes 2/2: M1.1, M1.2
  imported 1 commit, now at bbbbbbbbbb
  pull request #3 opened (open) file:///pulls/3
  … verifying
  ✓ bbbbbbbbbb is green in a clean room

✓ succeeded — Say hello
  pull request #3 (open) file:///pulls/3
  commit bbbbbbbbbb is verified in a clean room
  2 of 2 boxes checked off
  1 iteration · 0ms · 1,234 tokens · $0.25

"]]
    );
}

#[test]
fn logs_print_one_of_two_files() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", working());
    assert_eq!(ralph.run(&["logs", "one"]).stdout, "");
    let dir = ralph.dir(ONE);
    fs::write(
        dir.file("activity.log"),
        "did this\ndid \u{1b}[31mthat\u{1b}[0m\nhalf a li",
    )
    .unwrap();
    fs::write(dir.file("errors.log"), b"went wrong \xff\n").unwrap();
    assert_eq!(
        ralph.run(&["logs", "one"]).stdout,
        "did this\ndid that\nhalf a li"
    );
    assert_eq!(
        ralph.run(&["logs", "one", "--errors"]).stdout,
        "went wrong �\n"
    );
}

#[test]
fn a_long_log_comes_whole_and_a_reader_may_leave() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", working());
    let line = format!("{}\n", "x".repeat(999));
    let log = ralph.dir(ONE).file("activity.log");
    fs::write(&log, line.repeat(300) + &"y".repeat(200_000)).unwrap();
    let output = ralph.run(&["logs", "one"]);
    assert_eq!(output.stdout, fs::read_to_string(&log).unwrap());

    let mut child = ralph
        .command(&["logs", "one"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}
