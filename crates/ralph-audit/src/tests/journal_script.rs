//! The records of a run that succeeds after two iterations and two crashes, and the files it leaves.

use serde_json::{Value, json};

use super::fixture::{AuditFixture, AuditFixtureEntry, BRANCH, CLEAN_ROOM, RUN, WORK_SANDBOX};
use crate::digest::sha256;

pub(super) const ACTIVITY: &str = "\
2026-03-01T08:00:01Z iteration=0 prepared
2026-03-01T08:00:02Z iteration=1 wrote greet.sh
2026-03-01T08:00:03Z iteration=1 ok
2026-03-01T08:00:04Z iteration=2 ran sh test.sh
";
pub(super) const GUARDRAILS: &str = "# Guardrails\n- keep diffs small\n- run the tests\n";

/// Returns the seven files of an iteration.
pub(super) fn artifacts(number: u64) -> [(&'static str, String); 7] {
    [
        ("prompt.md", format!("iteration {number}\n")),
        (
            "response.json",
            json!({"attempts": [{"text": "{}"}]}).to_string(),
        ),
        ("actions.jsonl", "{}\n{}\n".into()),
        ("git_diff.patch", String::new()),
        ("test_output.txt", "ok\n".into()),
        ("metrics.json", json!({"iteration": number}).to_string()),
        ("pr_state.json", json!({"number": 1}).to_string()),
    ]
}

/// Collects events and adds the epoch and time of each.
#[derive(Default)]
struct JournalScript {
    entries: Vec<AuditFixtureEntry>,
    epoch: u64,
    active_ms: u64,
}

impl JournalScript {
    fn push(&mut self, event: Value) {
        if event["type"] == "run_opened" {
            self.epoch += 1;
        }
        self.active_ms += 10;
        self.entries.push(AuditFixtureEntry {
            epoch: self.epoch,
            active_ms: self.active_ms,
            event,
        });
    }

    fn open(&mut self) {
        let epoch = self.epoch + 1;
        self.push(json!({"type": "run_opened", "epoch": epoch, "pid": 4711}));
        self.status("preparing");
    }

    fn status(&mut self, status: &str) {
        self.push(json!({"type": "status_changed", "status": status}));
    }

    fn ask(&mut self, iteration: u64, attempt: u64) {
        self.push(
            json!({"type": "model_asked", "iteration": iteration, "attempt": attempt,
            "prompt": sha256(b"prompt"), "prompt_bytes": 6}),
        );
    }

    fn reply(&mut self, iteration: u64, attempt: u64) {
        self.push(
            json!({"type": "model_replied", "iteration": iteration, "attempt": attempt,
            "response": sha256(b"reply"), "usage": {"input_tokens": 900, "output_tokens": 100},
            "cost_usd": 0.25, "duration_ms": 5, "source": "line 1"}),
        );
        self.push(
            json!({"type": "reply_accepted", "iteration": iteration, "summary": "a step",
            "actions": 2, "repaired": false}),
        );
    }

    fn start(&mut self, iteration: u64, index: u64, action: &str) {
        self.push(
            json!({"type": "action_started", "iteration": iteration, "index": index,
            "action": action, "label": action}),
        );
    }

    fn finish(&mut self, iteration: u64, index: u64, action: &str, result: &Value) {
        let mut event = json!({"type": "action_finished", "iteration": iteration, "index": index,
            "action": action, "label": action, "duration_ms": 3});
        event
            .as_object_mut()
            .unwrap()
            .extend(result.as_object().unwrap().clone());
        self.push(event);
    }

    /// Ends an iteration: its commit, its boxes, the push, the pull request, its record.
    fn deliver(&mut self, iteration: u64, commit: &str, boxes: &[&str]) {
        self.start(iteration, 1, "commit");
        let result = json!({"result": "done", "detail": format!("commit {commit}, 1 file")});
        self.finish(iteration, 1, "commit", &result);
        self.push(
            json!({"type": "claim_checked", "iteration": iteration, "checkbox": boxes[0],
            "verified": true, "why": "", "checks": [check("M1.1")]}),
        );
        self.push(json!({"type": "boxes_ticked", "ticked": boxes}));
        self.push(
            json!({"type": "tests_run", "iteration": iteration, "check": check("test_command")}),
        );
        self.push(json!({"type": "commits_imported", "head": commit, "commits": 1}));
        self.push(json!({"type": "push_started", "branch": BRANCH, "head": commit}));
        self.push(json!({"type": "pushed", "branch": BRANCH, "head": commit}));
        let pull = json!({"number": 1, "url": "file:///1", "state": "draft", "head": commit});
        self.push(json!({"type": "pull_request_updated", "pull": pull, "opened": iteration == 1}));
        let files: serde_json::Map<String, Value> = artifacts(iteration)
            .into_iter()
            .map(|(name, text)| (name.to_owned(), sha256(text.as_bytes()).into()))
            .collect();
        self.push(
            json!({"type": "iteration_finished", "iteration": iteration, "summary": "a step",
            "outcome": "completed", "metrics": metrics(iteration, commit), "files": files,
            "logs": logs(iteration)}),
        );
    }
}

pub(super) fn check(name: &str) -> Value {
    json!({"name": name, "command": "sh test.sh", "ended": {"exited": 0}, "duration_ms": 4,
        "tests": {"passed": 2, "failed": 0, "skipped": 0}})
}

fn metrics(iteration: u64, head: &str) -> Value {
    json!({"iteration": iteration, "duration_ms": 90, "model_ms": 5, "command_ms": 4, "model_calls": 1,
        "usage": {"input_tokens": 900, "output_tokens": 100}, "cost_usd": 0.25, "repaired": false,
        "actions": 2, "actions_ok": 2, "prompt_bytes": 6,
        "diff": {"files": 1, "added": 1, "removed": 0}, "test_exit_code": 0, "tests": null,
        "boxes_ticked": 1, "boxes_total": 3, "loop_score": null, "head": head})
}

/// Returns the recorded state of the logs at the end of an iteration.
fn logs(iteration: u64) -> Value {
    let prefix = |text: &str, lines: usize| {
        let kept: String = text.split_inclusive('\n').take(lines).collect();
        json!({"bytes": kept.len(), "sha256": sha256(kept.as_bytes())})
    };
    let lines = if iteration == 1 { 3 } else { 4 };
    let guardrails = if iteration == 1 { 2 } else { 3 };
    json!({"activity.log": prefix(ACTIVITY, lines), "errors.log": prefix("", 0),
        "guardrails.md": prefix(GUARDRAILS, guardrails)})
}

fn plan(fixture: &AuditFixture) -> Value {
    json!({"run": RUN, "task_id": "task-001", "title": "Greet", "task_file": "/tmp/ralph_task.md",
        "contract": AuditFixture::contract(), "repo": fixture.origin(), "base_branch": "main",
        "base": fixture.base, "branch": BRANCH, "engine": "actions", "sandbox": "local",
        "isolation": "none", "model": "scripted:replies.jsonl", "scm": "local",
        "delivery": "pull_request", "test_command": "sh test.sh", "checkboxes": 3,
        "limits": {"max_iterations": 5, "max_wall_time": {"secs": 3600, "nanos": 0},
            "max_cost": 2.5, "max_tokens": 10000}})
}

/// Returns all records of the run.
pub(super) fn successful_run(fixture: &AuditFixture) -> Vec<AuditFixtureEntry> {
    let [first, second] = &fixture.commits;
    let ran =
        json!({"result": "ran", "ended": {"exited": 1}, "stdout_bytes": 3, "stderr_bytes": 0});
    let done = json!({"result": "done", "detail": "wrote 3 lines"});
    let mut script = JournalScript::default();
    script.push(json!({"type": "run_created", "plan": plan(fixture)}));
    script.open();
    script.push(json!({"type": "sandbox_created", "sandbox": WORK_SANDBOX, "purpose": "work"}));
    script.push(json!({"type": "workspace_ready", "branch": BRANCH, "head": fixture.base}));
    script.status("running");
    script.push(json!({"type": "iteration_started", "iteration": 1, "head": fixture.base}));
    script.ask(1, 1);
    script.reply(1, 1);
    script.start(1, 0, "write_file");
    script.finish(1, 0, "write_file", &done);
    script.deliver(1, first, &["M1.1"]);
    script.push(json!({"type": "iteration_started", "iteration": 2, "head": first}));
    script.ask(2, 1);
    // The process dies while the model responds, and again while a command runs.
    script.open();
    script.status("running");
    script.ask(2, 2);
    script.reply(2, 2);
    script.start(2, 0, "run");
    script.open();
    script.status("running");
    script.finish(2, 0, "run", &json!({"result": "interrupted"}));
    script.start(2, 0, "run");
    script.finish(2, 0, "run", &ran);
    script.deliver(2, second, &["M1.1", "M1.2", "C3"]);
    script.status("verifying");
    script.push(json!({"type": "verify_started", "head": second}));
    script.push(json!({"type": "sandbox_created", "sandbox": CLEAN_ROOM, "purpose": "clean_room"}));
    script.push(json!({"type": "sandbox_removed", "sandbox": CLEAN_ROOM}));
    script.push(
        json!({"type": "verify_finished", "head": second, "contract": AuditFixture::contract(),
        "green": true, "checks": [check("test_command"), check("M1.1")], "reasons": []}),
    );
    let pull = json!({"number": 1, "url": "file:///1", "state": "open", "head": second});
    script.push(json!({"type": "pull_request_updated", "pull": pull, "opened": false}));
    script.status("succeeded");
    script.entries
}
