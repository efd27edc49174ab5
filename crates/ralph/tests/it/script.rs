//! A small project, its task, and the replies of a model for it.

use serde_json::{Value, json};

pub(crate) const TASK: &str = r#"---
task_id: "greet"
base_branch: "main"
target_branch_prefix: "ralph/greet/"
target_branch_slug: "names"
sandbox_provider: "local"
max_iterations: 8
max_wall_time_minutes: 5
max_tokens_total: 100000
test_command: "sh test.sh"
verification: {baseline: false}
---

# Task: Greet people by name

## Success criteria (checkboxes)

### Milestone M1 — Names
- [ ] M1.1 Somebody is greeted by name
  - verify: `test "$(sh greet.sh Ann)" = "hello Ann"`
- [ ] M1.2 Three names are known
  - verify: `test "$(cat names.txt | wc -l)" -eq 3`

### Milestone M2 — Words
- [ ] M2.1 The notes tell about it
  - verify: `grep -q names NOTES.md`
"#;

pub(crate) const GREET: &str = "#!/bin/sh\n# Greets whoever is named.\necho \"hello\"\n";

pub(crate) const TEST: &str = r#"#!/bin/sh
failed=0
check() { if [ "$2" = "$3" ]; then echo "ok - $1"; else echo "not ok - $1"; failed=1; fi; }
check greeting "$(sh greet.sh Ann)" "hello Ann"
check names "$(cat names.txt 2>/dev/null | wc -l | tr -d ' ')" 3
exit $failed
"#;

const PATCH: &str = r#"--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,3 @@
 #!/bin/sh
 # Greets whoever is named.
-echo "hello"
+echo "hello $1"
"#;

/// Returns a line of a script with these actions, and claims of boxes such as `M1.1` and of
/// milestones such as `M1`.
pub(crate) fn reply(summary: &str, actions: &Value, claims: &[&str]) -> Value {
    let (boxes, milestones): (Vec<&str>, Vec<&str>) =
        claims.iter().partition(|id| id.contains('.'));
    json!({
        "reply": {
            "summary": summary,
            "actions": actions,
            "claims": {"checkboxes_checked": boxes, "milestones_completed": milestones},
        },
        "usage": {"input_tokens": 100, "output_tokens": 10},
    })
}

fn write(path: &str, content: &str) -> Value {
    json!({"type": "write", "path": path, "content": content})
}

fn append(path: &str, content: &str) -> Value {
    json!({"type": "write", "path": path, "content": content, "append": true})
}

fn run(command: &str) -> Value {
    json!({"type": "run", "command": command})
}

fn patch() -> Value {
    json!({"type": "patch", "path": "greet.sh", "patch": PATCH})
}

fn commit(message: &str) -> Value {
    json!({"type": "commit", "message": message})
}

fn stop() -> Value {
    json!({"type": "stop_success", "reason": "all boxes"})
}

/// Returns the shortest script that succeeds.
pub(crate) fn short_script() -> Value {
    let actions = json!([
        patch(),
        write("names.txt", "Ann\nBob\nCem\n"),
        write("NOTES.md", "The names are in a file.\n"),
        commit("Greet by name"),
        stop(),
    ]);
    reply("Do it all", &actions, &["M1.1", "M1.2", "M2.1", "M1", "M2"])
}

/// Returns an iteration that writes, runs and commits something and then gives up.
pub(crate) fn gives_up() -> Value {
    let actions = json!([
        patch(),
        write("names.txt", "Ann\n"),
        append("names.txt", "Bob\n"),
        run("mkdir -p made/deep; echo built > made/deep/file; mv made moved; ln -s moved link"),
        commit("Greet by name"),
        {"type": "stop_failure", "reason": "it is too hard"},
    ]);
    reply("Give up", &actions, &[])
}

/// Returns two iterations that both commit, with a command and a check in between.
pub(crate) fn two_commits() -> Vec<Value> {
    let greet = json!([
        patch(),
        write("names.txt", "Ann\n"),
        append("names.txt", "Bob\n"),
        run("sh greet.sh Ann; echo built > build.txt"),
        commit("Greet by name"),
    ]);
    let names = json!([
        append("names.txt", "Cem\n"),
        write("NOTES.md", "The names are in a file.\n"),
        commit("Know three names"),
        stop(),
    ]);
    vec![
        reply("Greet by name", &greet, &["M1.1"]),
        reply("Complete it", &names, &["M1.2", "M1", "M2.1", "M2"]),
    ]
}

/// Returns six iterations with every kind of action, and with mistakes: an unreadable reply, red
/// tests, false claims, an early success, a patch that does not apply, a commit of one of two
/// files.
pub(crate) fn long_script() -> Vec<Value> {
    let look = json!([
        write(".ralph/progress.md", "The tests are red.\n"),
        run("sh test.sh"),
    ]);
    let greet = json!([
        patch(),
        write("names.txt", "Ann\n"),
        append("names.txt", "Bob\n"),
        run("sh greet.sh Ann"),
        commit("Greet by name"),
    ]);
    let again = json!([patch(), write("never.txt", "never\n")]);
    let names = json!([
        append("names.txt", "Cem\n"),
        write("draft.txt", "Not yet.\n"),
        append(".ralph/guardrails.md", "- One name per line.\n"),
        run("sh test.sh"),
        {"type": "commit", "message": "Know three names", "paths": ["names.txt"]},
    ]);
    let notes = json!([
        write("NOTES.md", "The names are in a file.\n"),
        commit("Begin the notes"),
        append("NOTES.md", "One name per line.\n"),
        commit("Finish the notes"),
        stop(),
    ]);
    vec![
        json!({"reply": "I will look at the tests first."}),
        reply("Look at the tests", &look, &[]),
        reply("Greet by name", &greet, &["M1.1", "M1.2", "M1"]),
        reply("All done", &json!([stop()]), &["M9.9"]),
        reply("The patch again", &again, &[]),
        reply("Complete the names", &names, &["M1.2", "M1"]),
        reply("Write the notes", &notes, &["M2.1", "M2"]),
    ]
}
