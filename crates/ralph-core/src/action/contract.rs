//! The description of the reply format for the model. It is part of every prompt, so it is short
//! and constant.

use std::sync::LazyLock;

use serde_json::Value;

/// Returns the reply format as a JSON schema, for providers with structured output.
///
/// It is stricter than the parser: every field is required, because some providers demand that.
pub fn json_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        // A test parses the embedded file, so this cannot fail.
        serde_json::from_str(include_str!("reply.schema.json")).unwrap_or(Value::Null)
    });
    &SCHEMA
}

/// The reply format as it appears in prompts.
pub const SCHEMA_TEXT: &str = r#"Answer with exactly one JSON object and nothing else: no prose, no code fence, no comments.

{
  "summary": "short summary for humans",
  "actions": [
    {"type": "run", "command": "npm test", "cwd": ".", "timeout_s": 900},
    {"type": "patch", "path": "src/foo.ts", "patch": "--- a/src/foo.ts\n+++ b/src/foo.ts\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"},
    {"type": "write", "path": "src/new.ts", "content": "export const answer = 42;\n"},
    {"type": "write", "path": ".ralph/guardrails.md", "append": true, "content": "- run the linter before the tests\n"},
    {"type": "commit", "message": "Fix health endpoint", "paths": ["src/foo.ts", "src/new.ts"]},
    {"type": "rotate", "reason": "need a fresh pass"}
  ],
  "claims": {"checkboxes_checked": ["M1.1"], "milestones_completed": []}
}

Actions, executed in order:
- run: "command" for a shell; optional "cwd" (default "."), "timeout_s" (whole seconds, 1 to 86400, default 600).
- patch: "path" and "patch", a unified diff of that one file; /dev/null as the old name creates a file, and `new file mode 100755` above it makes it executable.
- write: "path" and "content"; optional "append" (default false: the content replaces the file).
- commit: "message"; optional "paths" (default: all changes).
- rotate: "reason". Ends this iteration; the next one starts fresh.
- pause: "reason". Asks the user to decide.
- stop_success: "reason". Says the task is done; accepted only when the runner's own checks pass.
- stop_failure: "reason". Gives up; the run ends as failed.

Rules:
- The first rotate, pause, stop_success or stop_failure ends the iteration; put it last, actions after it are skipped.
- A single mistake (an unknown type or field, a wrong type, a missing field) rejects the whole reply.
- Background processes are stopped when their command ends.
- You see no results in this iteration. They appear in the next prompt; never invent them.
- When an action fails, those after it may be skipped; keep later actions independent.
- Claims are verified by the runner, which ticks the checkboxes itself. Never edit ralph_task.md.
- Claim checkboxes by id. The list below the task has the ids of checkboxes that lack one in ralph_task.md.
- Paths are relative to the repository, with "/"; no "..", no absolute paths, nothing in .git.
- Workflow files (.github/workflows, .github/actions, action.yml) are refused unless the task allows them.
- In .ralph you may write progress.md and append to guardrails.md; everything else there belongs to the runner.
- Limits: 50 actions; 1 MiB per content or patch; 64 KiB per command or message; 2 MiB for the whole reply.
- In JSON strings write \\ for a backslash, \" for a quote and \n for a line break.
"#;
