//! Tests for every path rule.

use super::*;

const GIT: &str = "is inside git's own directory; use commit actions";
const PINNED: &str =
    "the contract is pinned: ticks come from verified claims, and only the user may edit it";
const RUNNER: &str = "belongs to the runner; you may only write `.ralph/progress.md` and append to `.ralph/guardrails.md`";

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

/// Returns the refusals of writing, appending, patching and committing.
fn refusals(text: &str) -> [Option<String>; 4] {
    let path = path(text);
    [
        refuse_write(&path, WriteMode::Replace),
        refuse_write(&path, WriteMode::Append),
        refuse_patch(&path),
        refuse_commit(&path),
    ]
}

#[test]
fn the_git_directory_is_refused_in_every_spelling() {
    for text in [
        ".git",
        ".git/hooks/x",
        ".git/config",
        ".git/info/attributes",
        ".GIT/hooks/x",
        ".Git/x",
        "git~1/config",
        "GIT~1/config",
        "git~2",
        "sub/.git/config",
        "a/b/.gIt",
        ".git./x",
        ".git /x",
        ".git. . ./x",
        ".git::$INDEX_ALLOCATION/x",
        ".g\u{200c}it/x",
        "\u{feff}.git/x",
        ".git\u{200d}/x",
        ".gi\u{202e}t\u{206f}/x",
        ".g\u{200c}it./x",
        "git\u{200c}~1",
        ".ralph/.git/x",
    ] {
        assert_eq!(
            refusals(text),
            [(); 4].map(|()| Some(format!("`{text}` {GIT}")))
        );
    }
}

#[test]
fn the_contract_is_pinned_at_the_root() {
    for text in [
        "ralph_task.md",
        "./ralph_task.md",
        "RALPH_TASK.md",
        "Ralph_Task.MD",
        "ralph_task.md.",
        "ralph_task.md ",
        "ralph_\u{200b}task.md",
        "ralph_task.md::$DATA",
    ] {
        assert_eq!(
            refusals(text),
            [(); 4].map(|()| Some(PINNED.to_owned())),
            "{text:?}"
        );
    }
}

#[test]
fn runner_files_are_refused() {
    for text in [
        ".ralph",
        ".ralph/activity.log",
        ".ralph/errors.log",
        ".ralph/iterations",
        ".ralph/iterations/3/metrics.json",
        ".ralph/notes.md",
        ".ralph/diagnostics.md",
        ".ralph/new.md",
        ".ralph/Progress.md",
        ".ralph/progress.md/x",
        ".ralph/progress.md.",
        ".ralph/guardrails.md ",
        ".RALPH/progress.md",
        ".Ralph/guardrails.md",
        ".ralph./progress.md",
        ".ralph /x",
        ".ra\u{200d}lph/progress.md",
    ] {
        assert_eq!(
            refusals(text),
            [(); 4].map(|()| Some(format!("`{}` {RUNNER}", path(text)))),
            "{text:?}"
        );
    }
}

#[test]
fn progress_is_writable_and_guardrails_are_append_only() {
    let committed = |text: &str| Some(format!("`{text}` {RUNNER}"));
    assert_eq!(refusals(PROGRESS), [None, None, None, committed(PROGRESS)]);
    let append_only =
        Some("`.ralph/guardrails.md` is append-only; use a write with \"append\": true".into());
    assert_eq!(
        refusals("./.ralph//guardrails.md"),
        [
            append_only.clone(),
            None,
            append_only,
            committed(GUARDRAILS)
        ]
    );
}

#[test]
fn other_paths_are_allowed() {
    for text in [
        "src/a.rs",
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".github/workflows/ci.yml",
        "git",
        "git~",
        "git~x",
        "x.git",
        "docs/git~1.md",
        "docs/ralph_task.md",
        "ralph_task.md/x",
        "ralph_task.markdown",
        "sub/.ralph/notes.md",
        ".ralphrc",
        "ralph/x",
        "ab:c",
        "sub/-x",
    ] {
        assert_eq!(refusals(text), [None, None, None, None], "{text:?}");
    }
}

#[test]
fn commits_reject_options_and_patterns() {
    for text in [":(top)*", ":!a", ":/", "--all", "-m", "-"] {
        assert_eq!(
            refuse_commit(&path(text)),
            Some(format!(
                "`{}` looks like an option or a pattern; list files and directories by name",
                path(text)
            ))
        );
    }
}

#[test]
fn recognises_workflow_files() {
    for text in [
        ".github/workflows/ci.yml",
        ".github/workflows",
        ".github/actions/x/action.yml",
        ".GitHub/Workflows/ci.yml",
        ".github/workflows./ci.yml",
        "action.yml",
        "action.yaml",
        "Action.YML",
    ] {
        assert!(is_workflow(&path(text)), "{text:?}");
    }
    for text in [
        ".github/CODEOWNERS",
        ".github",
        "docs/action.yml",
        "action.yml/x",
        "sub/.github/workflows/ci.yml",
        "workflows/ci.yml",
    ] {
        assert!(!is_workflow(&path(text)), "{text:?}");
    }
}
