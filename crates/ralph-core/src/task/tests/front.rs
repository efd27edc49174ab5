//! The front matter: accepted forms, types, ranges, grammars.

use std::fmt::Write as _;
use std::time::Duration;

use snapbox::IntoData as _;

use super::{errors, parse, with_body, with_front};
use crate::budget::BudgetLimits;
use crate::lint::check;
use crate::money::Usd;
use crate::plan::EngineKind;
use crate::task::{OnActionError, RunMode, SandboxKind, TaskFile};
use crate::templates;

#[test]
fn line_ends_and_byte_order_mark_do_not_matter() {
    let plain = parse(templates::TASK);
    let crlf = templates::TASK.replace('\n', "\r\n");
    let blanks =
        templates::TASK
            .replacen("---\n", "--- \t\n", 1)
            .replacen("\n---\n", "\n---   \n", 1);
    let all = format!("\u{feff}{}", blanks.replace('\n', "\r\n"));
    for other in [crlf.clone(), format!("\u{feff}{crlf}"), blanks, all] {
        let task = parse(&other);
        assert_eq!(task.contract, plain.contract);
        assert_eq!(task.milestones, plain.milestones);
        assert_eq!(task.title, plain.title);
        let boxes = |task: &TaskFile| -> Vec<(String, u32)> {
            let boxes = task.checkboxes.iter();
            boxes.map(|b| (b.text.clone(), b.line)).collect()
        };
        assert_eq!(boxes(&task), boxes(&plain));
        assert_eq!(
            check(other.as_bytes()).findings,
            check(templates::TASK.as_bytes()).findings
        );
    }
    assert_eq!(parse(&crlf), plain);
}

#[test]
fn files_without_usable_front_matter() {
    let large = format!("---\nx: {}\n---\n", "y".repeat(16 * 1024));
    let mut table = String::new();
    for text in [
        "",
        " \n\n",
        "---",
        "---\n",
        "---\ntask_id: t\n",
        "# Task\n---\na: b\n---\n",
        "\n---\ntask_id: t\n---\n",
        "----\ntask_id: t\n---\n",
        "---\n- a\n---\n",
        "---\njust text\n---\n",
        "---\n---\n",
        "---\n# nothing but a comment\n---\n",
        &large,
    ] {
        let shown: String = text.replace('\n', " ⏎ ").chars().take(40).collect();
        writeln!(table, "{shown}\n{}", errors(text)).unwrap();
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r#"

[empty-task] the task file is empty — create one with `ralph init`
  ⏎  ⏎ 
[empty-task] the task file is empty — create one with `ralph init`
---
[unclosed-front-matter] line 1: the front matter that starts here has no closing `---` — add a line `---` below the last setting
--- ⏎ 
[unclosed-front-matter] line 1: the front matter that starts here has no closing `---` — add a line `---` below the last setting
--- ⏎ task_id: t ⏎ 
[unclosed-front-matter] line 1: the front matter that starts here has no closing `---` — add a line `---` below the last setting
# Task ⏎ --- ⏎ a: b ⏎ --- ⏎ 
[missing-front-matter] line 1: the first line is not `---` — start the file with a line `---`, then the settings, then another line `---`
 ⏎ --- ⏎ task_id: t ⏎ --- ⏎ 
[missing-front-matter] line 1: the first line is not `---` — start the file with a line `---`, then the settings, then another line `---`
---- ⏎ task_id: t ⏎ --- ⏎ 
[missing-front-matter] line 1: the first line is not `---` — start the file with a line `---`, then the settings, then another line `---`
--- ⏎ - a ⏎ --- ⏎ 
[front-matter-not-a-map:1] line 2: the front matter is not a list of settings — write each setting as `key: value` on its own line
--- ⏎ just text ⏎ --- ⏎ 
[front-matter-not-a-map:1] line 2: the front matter is not a list of settings — write each setting as `key: value` on its own line
--- ⏎ --- ⏎ 
[missing-task-id] line 2: `task_id` is missing — add a line such as `task_id: "task-001"` to the front matter
--- ⏎ # nothing but a comment ⏎ --- ⏎ 
[missing-task-id] line 3: `task_id` is missing — add a line such as `task_id: "task-001"` to the front matter
--- ⏎ x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy
[front-matter-too-large] line 1: front matter is 16.1 KiB, limit 16 KiB — move long texts into the body

"#]]
    );
}

#[test]
fn a_rule_in_the_body_is_not_front_matter() {
    let task = parse(&with_body(
        "a\n\n---\n\n- [ ] b\n\n---\ntask_id: other\n---\n",
    ));
    assert_eq!(task.contract.task_id.as_str(), "t");
    assert_eq!(task.checkboxes.len(), 1);
}

#[test]
fn rejects_control_characters() {
    let mut table = String::new();
    for text in [
        "---\ntask_id: t\n---\nab\0c\n\x1b[0m",
        "---\ntask_id: t\n---\nold\rmac\n",
        "---\ntask_id: t\n---\n\u{85}\n",
        "---\ntask_id: t\ntest_command: \"a\\0b\"\nmode: \"\\e\"\n---\n",
        "---\ntask_id: t\n\"\\x07\": x\n---\n",
    ] {
        writeln!(table, "{}", errors(text)).unwrap();
    }
    let findings = TaskFile::parse(b"---\nok: \xff\n---\n").unwrap_err();
    table += &super::line(&findings[0]);
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r"
[control-character:3] line 4: the file contains the control character U+0000, the first of 2 — remove it; line breaks and tabs are the only control characters allowed
[control-character:4] line 4: the file contains the control character U+000D — remove it; line breaks and tabs are the only control characters allowed
[control-character:1] line 4: the file contains the control character U+0085 — remove it; line breaks and tabs are the only control characters allowed
[control-character:15] line 3: a string contains the control character U+0000 — remove the escape; `\n` and `\t` are the only control characters allowed
[unknown-value:7] line 4: `mode` is `�`, expected `autonomous`, `guided`, `debug` — use one of these values
[control-character:1] line 3: a string contains the control character U+0007 — remove the escape; `\n` and `\t` are the only control characters allowed
[unknown-key:1] line 3: unknown key `�` — remove it, or describe it in the body
[not-utf8] line 2: the task file is not UTF-8 text — save the file as UTF-8
"]]
        .raw()
    );
}

#[test]
fn everything_can_be_set() {
    let contract = parse(&with_front(
        "task_id: t.1\nmax_cost_usd_estimate: 2.50\nmax_tokens_total: 5000\nmax_iterations: 7\nmax_wall_time_minutes: 90\n\
         commit_state: true\non_action_error: continue\nallow_workflow_changes: true\nengine: agent\nmode: debug\n\
         sandbox_provider: docker-sandbox\nsandbox_resources: {vcpu: 2}\npr: {enabled: false, ready_on_success: false}\n\
         test_command: true\nbase_branch: 1.0\nrepo_url: ../app\nmodel_profile_default: ~\ntarget_branch_slug: s",
    ))
    .contract;
    assert_eq!(
        contract.limits(),
        BudgetLimits {
            max_iterations: Some(7),
            max_wall_time: Some(Duration::from_mins(90)),
            max_cost: Usd::from_dollars(2.5),
            max_tokens: Some(5000),
        }
    );
    assert!(contract.commit_state && contract.allow_workflow_changes);
    assert_eq!(
        (contract.on_action_error, contract.engine, contract.mode),
        (OnActionError::Continue, EngineKind::Agent, RunMode::Debug)
    );
    assert_eq!(contract.sandbox_provider, Some(SandboxKind::DockerSandbox));
    assert_eq!(contract.sandbox_resources.unwrap().vcpu, Some(2));
    assert!(!contract.pr.enabled && contract.pr.draft && !contract.pr.ready_on_success);
    assert_eq!(contract.test_command.as_deref(), Some("true"));
    assert_eq!(contract.base_branch.as_ref().unwrap().as_str(), "1.0");
    assert_eq!(contract.model_profile_default, None);
    assert_eq!(contract.gutter_limit(), 3);
    assert_eq!(contract.branch(Some("Title")), "ralph/t.1/s");
}

#[test]
fn the_branch_name_is_built_from_prefix_and_slug() {
    for (front, title, expected) in [
        ("task_id: t", Some("Fix it!"), "ralph/t/fix-it"),
        ("task_id: t", None, "ralph/t/work"),
        ("task_id: t\ntarget_branch_slug: s", Some("x"), "ralph/t/s"),
        ("task_id: t\ntarget_branch_prefix: p-", Some("x"), "p-x"),
        (
            "task_id: t\ntarget_branch_prefix: a/\ntarget_branch_slug: b/c",
            None,
            "a/b/c",
        ),
    ] {
        assert_eq!(parse(&with_front(front)).contract.branch(title), expected);
    }
}

/// Lines that are rejected after a valid `task_id`.
const REFUSED_LINES: &[&str] = &[
    "max_iterations: 0",
    "max_iterations: -1",
    "max_iterations: 1000001",
    "max_iterations: 99999999999999999999999",
    "max_iterations: 2.5",
    "max_iterations: 1e3",
    "max_iterations: .nan",
    "max_iterations: \"30\"",
    "max_iterations: many",
    "max_iterations: [30]",
    "max_wall_time_minutes: 0",
    "max_tokens_total: 0",
    "max_consecutive_gutter: 0",
    "max_cost_usd_estimate: -1",
    "max_cost_usd_estimate: 0",
    "max_cost_usd_estimate: .nan",
    "max_cost_usd_estimate: .inf",
    "max_cost_usd_estimate: nan",
    "max_cost_usd_estimate: 1e400",
    "max_cost_usd_estimate: 1e9",
    "max_cost_usd_estimate: \"10\"",
    "max_cost_usd_estimate: $10",
    "commit_state: yes",
    "commit_state: \"true\"",
    "engine: agnet",
    "mode: wild",
    "sandbox_provider: podman",
    "sandbox_image: \"a b\"",
    "sandbox_image: \"\"",
    "sandbox_resources: 4",
    "sandbox_resources: {vcpu: 0, memory: 4}",
    "model_profile_default: -x",
    "test_command: [npm, test]",
    "test_command: {run: x}",
    "verify_commands: npm test",
    "verify_commands: [a: b]",
    "base_branch: a..b",
    "target_branch_prefix: \"a b/\"",
    "target_branch_prefix: /a",
    "target_branch_slug: x.lock",
    "pr: {draft: 1, lables: [a]}",
    "pr: {labels: [\"\"]}",
    "pr:\n  labels:\n    - |-\n      a\n      b",
    "draft: true",
    "vcpu: 2",
    "ci: true",
    "ci: {required: maybe, rounds: 3}",
    "ci: {max_rounds: 0, interval: 500ms, timeout: 25h, grace: soon}",
    "ci: {interval: 30}",
    "max_rounds: 3",
    "reviews: {respond: yes, reply: true}",
    "overlap: {action: stop}",
];

#[test]
fn rejected_values_are_reported_with_their_location() {
    let mut table = String::new();
    for line in REFUSED_LINES {
        let found = errors(&with_front(&format!("task_id: t\n{line}")));
        writeln!(table, "{line}\n{found}\n").unwrap();
    }
    snapbox::assert_data_eq!(table, snapbox::file!["snapshots/refused_values.txt"]);
}

#[test]
fn invalid_task_ids_are_rejected() {
    let long = "x".repeat(200);
    let mut table = String::new();
    for id in [
        "../../x", "a b", &long, "HEAD", "con", "\"\"", "[a]", "a/b", "-a", "a.lock",
    ] {
        let found = errors(&with_front(&format!("task_id: {id}")));
        writeln!(table, "{found}").unwrap();
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r"
[invalid-task-id:10] line 2: `task_id` contains `/`; letters, digits, `-`, `_` and `.` are allowed — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` contains a space; letters, digits, `-`, `_` and `.` are allowed — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` has 200 characters, at most 64 are allowed — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` is a reserved name — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` is a reserved name — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` is empty — choose a short name such as `task-001`
[wrong-type:10] line 2: `task_id` is a list, expected a string — write it on one line, in quotes
[invalid-task-id:10] line 2: `task_id` contains `/`; letters, digits, `-`, `_` and `.` are allowed — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` would not be a valid part of a branch name — choose a short name such as `task-001`
[invalid-task-id:10] line 2: `task_id` would not be a valid part of a branch name — choose a short name such as `task-001`

"]]
    );
}

#[test]
fn a_password_in_the_address_is_not_repeated() {
    for url in [
        "https://user:hunter2@host/x",
        "https://hunter2@host/x",
        "ssh://u:hunter2@h/x",
    ] {
        let text = errors(&with_front(&format!("task_id: t\nrepo_url: \"{url}\"")));
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.starts_with("[invalid-repo-url:11] line 3: `repo_url` contains a user name"));
    }
}

#[test]
fn all_findings_are_reported_together() {
    let text = with_front(
        "task_id: a b\nmax_iteration: 3\nmax_wall_time_minutes: \"2h\"\nfoo: 1\npr:\n  darft: true\n  draft: maybe\nengine: x\nrepo_url: ext::sh",
    );
    snapbox::assert_data_eq!(
        errors(&text),
        snapbox::str![[r#"
[invalid-task-id:10] line 2: `task_id` contains a space; letters, digits, `-`, `_` and `.` are allowed — choose a short name such as `task-001`
[unknown-key:1] line 3: unknown key `max_iteration` — did you mean `max_iterations`?
[wrong-type:24] line 4: `max_wall_time_minutes` is the string "2h", expected a whole number — write it in digits, without quotes
[unknown-key:1] line 5: unknown key `foo` — remove it, or describe it in the body
[unknown-key:3] line 7: unknown key `pr.darft` — did you mean `draft`?
[wrong-type:10] line 8: `pr.draft` is `maybe`, expected `true` or `false` — write `true` or `false`, without quotes
[unknown-value:9] line 9: `engine` is `x`, expected `actions`, `agent` — use one of these values
[invalid-repo-url:11] line 10: `repo_url` is neither an `https://` or `ssh` address, nor `owner/name`, nor a path — write `https://host/owner/name`, `owner/name` or a path
"#]]
    );
}
