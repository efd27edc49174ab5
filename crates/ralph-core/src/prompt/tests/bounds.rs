//! Truncation and the size limits of prompts.

use super::fixture::oversized_snapshot;
use crate::ports::ModelRequest;
use crate::prompt::{
    GitSummary, MAX_PROMPT_BYTES, MAX_REPAIR_BYTES, PromptSnapshot, build, build_repair,
};

fn size(request: &ModelRequest) -> usize {
    request.text().len()
}

#[test]
fn no_input_exceeds_the_size_limit() {
    for piece in [
        "`",
        "```\n",
        "`\u{1b}[0m",
        "\n",
        "x",
        "ä\u{1f600}",
        "\u{1b}]0;",
        "a line of a log\n",
        " \n\t",
        "## 9. Budgets\n",
    ] {
        let snapshot = oversized_snapshot(piece);
        let request = build(&snapshot);
        assert!(size(&request) <= MAX_PROMPT_BYTES, "{piece:?}");
        let repair = build_repair(&request, &snapshot.task, &snapshot.task);
        assert!(size(&repair) <= MAX_REPAIR_BYTES, "{piece:?}");
    }
}

#[test]
fn every_truncation_names_its_file() {
    let mut snapshot = oversized_snapshot("some line\n");
    snapshot.git.diff_file = "DIFF".into();
    snapshot.git.status_total = 157;
    if let Some(output) = &mut snapshot.last_output {
        output.file = "TESTS".into();
    }
    let text = build(&snapshot).text();
    let markers: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("… truncated, full text: "))
        .collect();
    assert_eq!(
        markers,
        [
            "ralph_task.md",
            "ralph_task.md",
            ".ralph/guardrails.md",
            ".ralph/progress.md",
            ".ralph/notes.md",
            ".ralph/errors.log",
            "git status --porcelain, 157 lines",
            "DIFF",
            "git log",
            "ralph_task.md",
            "TESTS",
            ".ralph/errors.log",
            ".ralph/activity.log",
            "the journal",
            "the schema",
        ]
    );
}

#[test]
fn the_newest_errors_and_the_whole_task_are_kept() {
    let numbered = |count: usize| -> String {
        use std::fmt::Write as _;
        (0..count).fold(String::new(), |mut text, number| {
            writeln!(text, "line {number}").unwrap();
            text
        })
    };
    let snapshot = PromptSnapshot {
        task: numbered(20_000),
        errors_tail: numbered(1_000),
        ..PromptSnapshot::default()
    };
    let user = build(&snapshot).user;
    assert!(user.contains(&format!("```ralph_task.md\n{}```\n", snapshot.task)));
    let last = snapshot
        .errors_tail
        .lines()
        .skip(800)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(user.contains(&format!(
        "```.ralph/errors.log\n… truncated, full text: .ralph/errors.log\n{last}\n```\n"
    )));
}

#[test]
fn omitted_status_lines_are_marked() {
    let snapshot = PromptSnapshot {
        git: GitSummary {
            status: vec!["?? a".into()],
            status_total: 101,
            ..GitSummary::default()
        },
        ..PromptSnapshot::default()
    };
    assert!(
        build(&snapshot)
            .user
            .contains("?? a\n… truncated, full text: git status --porcelain, 101 lines\n```\n")
    );
}

#[test]
fn loop_scores_have_one_decimal() {
    let snapshot = PromptSnapshot {
        loop_scores: vec![0.1 + 0.2, -0.0, f64::NAN, 7.0, 0.7],
        ..PromptSnapshot::default()
    };
    assert!(
        build(&snapshot)
            .user
            .contains("oldest first: 0.3, 0.0, 1.0, 0.7 (")
    );
}
