//! Tests for the text of a new task.

use super::*;
use crate::task::{SentenceError, TaskFile};

fn sentence(text: &str) -> TaskSentence {
    TaskSentence::parse(text).unwrap()
}

fn new_task(text: Option<&str>) -> NewTask {
    NewTask {
        setup_command: None,
        sentence: text.map(sentence),
        comment: None,
        base_branch: Some(BranchName::parse("main").unwrap()),
        test_commands: vec![
            TestCommand {
                command: "cargo test".into(),
                origin: "Cargo.toml".into(),
            },
            TestCommand {
                command: "make test".into(),
                origin: "the target `test` in Makefile".into(),
            },
        ],
        sandbox: Some(SandboxKind::Docker),
        worker: NewTaskWorker::Agent("claude".into()),
        spending: SpendingLimit::Cost,
    }
}

#[test]
fn a_sentence_becomes_title_goal_and_box() {
    let text = new_task(Some("Add a `--json` flag\n to `shop list`."))
        .to_text()
        .unwrap();
    snapbox::assert_data_eq!(
        &text,
        snapbox::str![[r#"
---
task_id: "add-a-json-flag-to-shop-list"
# the branch that the work starts from
base_branch: "main"

# where commands run: `docker` (containers) or `local` (on this machine, as you)
sandbox_provider: "docker"

# the worker: a coding agent (`agent`), or a model that ralph calls (`actions`)
engine: "agent"
agent: "claude"

# the run ends when one of these limits is reached
max_iterations: 30
max_wall_time_minutes: 120
max_cost_usd_estimate: 10

# must succeed in a fresh checkout, so it also installs what it needs; it also verifies
# every box without a `verify:` line
test_command: "cargo test"
# also found: make test (the target `test` in Makefile)
---

# Task: Add a `--json` flag to `shop list`

Goal: Add a `--json` flag to `shop list`.

If a test can show the result, write or extend one that fails without the change.

## Success criteria

<!-- One checkbox per result. A line `- verify: COMMAND`, indented below a box, verifies that box
alone; `test_command` verifies a box without one. -->

- [ ] T1 Add a `--json` flag to `shop list`.

"#]]
    );
    assert_eq!(lint::check(text.as_bytes()).findings, []);
}

#[test]
fn without_a_sentence_the_task_is_to_make_the_tests_pass() {
    let text = new_task(None).to_text().unwrap();
    let task = TaskFile::parse(text.as_bytes()).unwrap();
    assert_eq!(task.title.as_deref(), Some("Make the tests pass"));
    assert_eq!(task.contract.task_id.as_str(), "make-the-tests-pass");
    assert_eq!(task.checkboxes.len(), 1);
    assert_eq!(task.checkboxes[0].verify, ["cargo test"]);
    assert_eq!(lint::check(text.as_bytes()).findings, []);
}

#[test]
fn every_choice_gives_a_file_without_findings() {
    for worker in [
        NewTaskWorker::Agent("codex".into()),
        NewTaskWorker::Profile("default-cheap".into()),
        NewTaskWorker::Unnamed,
        NewTaskWorker::Missing,
    ] {
        for (spending, sandbox) in [
            (SpendingLimit::Cost, Some(SandboxKind::Local)),
            (SpendingLimit::Tokens, None),
        ] {
            let task = NewTask {
                comment: Some("for `/a\nb\u{1b}\u{202e}`".into()),
                base_branch: None,
                worker: worker.clone(),
                spending,
                sandbox,
                ..new_task(Some("Do it"))
            };
            let text = task.to_text().unwrap();
            assert_eq!(lint::check(text.as_bytes()).findings, [], "{text}");
        }
    }
}

#[test]
fn without_a_test_command_only_that_is_missing() {
    for text in [Some("Do it"), None] {
        let task = NewTask {
            test_commands: Vec::new(),
            ..new_task(text)
        };
        let text = task.to_text().unwrap();
        let report = lint::check(text.as_bytes());
        let codes: Vec<&str> = report.findings.iter().map(|it| it.code).collect();
        assert_eq!(codes, ["missing-test-command"], "{text}");
        let filled = text.replace("# test_command:", "test_command:");
        assert_eq!(lint::check(filled.as_bytes()).findings, []);
    }
}

#[test]
fn a_sentence_is_never_read_as_markdown_structure() {
    for text in [
        "verify: `rm -rf /`",
        "- [ ] a list",
        "1. [x] a number",
        "# a heading",
        "Milestone M1 — no",
        "--- front matter",
        "```sh code",
        "<!-- a comment",
        "<div> & \"quotes\" \\ 'n' `one",
        "M1.1 an id",
        "> - [ ] a quote",
        "日本語で答える",
        "last",
    ] {
        let written = new_task(Some(text)).to_text().expect(text);
        let task = TaskFile::parse(written.as_bytes()).unwrap();
        assert_eq!(task.checkboxes.len(), 1, "{written}");
        let box_text = &task.checkboxes[0].text;
        assert_eq!(box_text, text.strip_prefix("- ").unwrap_or(text));
        assert!(task.checkboxes[0].verify.is_empty());
        assert!(task.title.is_some());
    }
}

#[test]
fn long_sentences_have_a_short_title_and_id() {
    let long = "Move the parser ".to_owned() + &"and all of its tests ".repeat(20);
    let task = new_task(Some(&long));
    assert_eq!(
        task.title(),
        "Move the parser and all of its tests and all of its tests and all of…"
    );
    assert_eq!(task.task_id(), "move-the-parser-and-all-of-its");
    assert!(task.to_text().is_ok());
    assert_eq!(
        TaskSentence::parse(&"x".repeat(1001)),
        Err(SentenceError::TooLong { chars: 1001 })
    );
    assert_eq!(TaskSentence::parse(" \n\t"), Err(SentenceError::Empty));
    assert_eq!(
        TaskSentence::parse("a\u{1b}b"),
        Err(SentenceError::ControlCharacter {
            character: '\u{1b}'
        })
    );
}

#[test]
fn commands_are_quoted() {
    for command in [
        "cd 'a b' && cargo test",
        "python3 -m pytest -k \"a: b\" # c",
        "printf '\\\\n' | grep -q x",
        "cd '`x`' && make test",
    ] {
        let task = NewTask {
            test_commands: vec![TestCommand {
                command: command.into(),
                origin: "x".into(),
            }],
            ..new_task(None)
        };
        let text = task.to_text().unwrap();
        let task = TaskFile::parse(text.as_bytes()).unwrap();
        assert_eq!(task.contract.test_command.as_deref(), Some(command));
        assert_eq!(task.checkboxes[0].verify, [command]);
    }
}
