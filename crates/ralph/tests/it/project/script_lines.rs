//! The lines of a scripted model.

use serde_json::{Value, json};

/// A line of a script: a reply with these actions and no claims.
pub(crate) fn actions(actions: &[Value]) -> Value {
    json!({"reply": {"summary": "work", "actions": actions},
           "usage": {"input_tokens": 10, "output_tokens": 10}})
}

/// A line of a script: a reply with actions that claims boxes.
pub(crate) fn claiming(boxes: &[&str], with: &[Value]) -> Value {
    let mut line = actions(with);
    line["reply"]["claims"] = json!({"checkboxes_checked": boxes});
    line
}

pub(crate) fn run(command: &str) -> Value {
    json!({"type": "run", "command": command, "timeout_s": 60})
}

pub(crate) fn write(path: &str, content: &str) -> Value {
    json!({"type": "write", "path": path, "content": content})
}

pub(crate) fn append(path: &str, content: &str) -> Value {
    json!({"type": "write", "path": path, "content": content, "append": true})
}

pub(crate) fn patch(path: &str, diff: &str) -> Value {
    json!({"type": "patch", "path": path, "patch": diff})
}

pub(crate) fn commit(message: &str) -> Value {
    json!({"type": "commit", "message": message})
}

pub(crate) fn commit_paths(message: &str, paths: &[&str]) -> Value {
    json!({"type": "commit", "message": message, "paths": paths})
}

/// An action that ends an iteration: `rotate`, `pause`, `stop_success` or `stop_failure`.
pub(crate) fn control(kind: &str, reason: &str) -> Value {
    json!({"type": kind, "reason": reason})
}

/// The actions that complete the whole task.
pub(crate) fn work() -> Vec<Value> {
    vec![
        write("a.txt", "one\n"),
        write("b.txt", "two\n"),
        commit("Make two files"),
    ]
}

/// A line of a script that completes the whole task and claims it.
pub(crate) fn finish() -> Value {
    claiming(&["M1.1", "M1.2"], &work())
}
