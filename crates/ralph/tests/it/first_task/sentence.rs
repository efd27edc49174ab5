//! `ralph run -p`: a run from one sentence.

use std::fs;

use serde_json::json;

use super::project;
use crate::project::{actions, claiming, commit, write};

#[test]
fn a_sentence_is_enough_for_a_run() {
    let project = project();
    project.write_script(&[claiming(
        &["T1"],
        &[write("a.txt", "one\n"), commit("Add the file")],
    )]);
    let sentence = "Add the file that the tests miss.";
    let dry = project.run_with(&["-p", sentence, "--dry-run"]).expect(0);
    let task_file = dry.stdout.lines().next().unwrap();
    let task_file = task_file.strip_prefix("task file   ").unwrap();
    assert!(
        task_file.starts_with(project.home().to_str().unwrap()),
        "{task_file}"
    );
    let text = fs::read_to_string(task_file).unwrap();
    assert!(text.contains("test_command: \"sh test.sh\""), "{text}");
    assert!(!text.contains("base_branch"), "{text}");

    let output = project.run_with(&["-p", sentence]).expect(0);
    assert!(output.stdout.contains(task_file), "{}", output.stdout);
    assert!(output.stdout.contains("tests       `sh test.sh` (test.sh)"));
    assert_eq!(project.delivered(), ["a.txt"]);
    assert_eq!(
        project.show()["branch"],
        "ralph/add-the-file-that-the-tests/miss"
    );
    project.audit();
    // Nothing was written to the user's working directory.
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    // The same file can be run again.
    let again = project.run_with(&["--repo", ".", task_file]).expect(0);
    assert!(again.stdout.contains("succeeded"), "{}", again.stdout);
}

#[test]
fn the_same_sentence_finds_its_unfinished_run() {
    let project = project();
    project.write_script(&[
        actions(&[json!({"type": "pause", "reason": "wait"})]),
        claiming(&["T1"], &[write("a.txt", "one\n"), commit("The file")]),
    ]);
    project.run_with(&["-p", "Add the file"]).expect(11);
    let refused = project.run_with(&["-p", "Add the file"]).expect(1);
    assert!(
        refused.stderr.contains("of this task is paused"),
        "{}",
        refused.stderr
    );
    project
        .run_with(&["-p", " Add  the\nfile", "--resume"])
        .expect(0);
    assert_eq!(project.show()["status"], "succeeded");
}

#[test]
fn json_output_of_a_sentence_is_only_json() {
    let project = project();
    project.write_script(&[claiming(
        &["T1"],
        &[write("a.txt", "one\n"), commit("Add the file")],
    )]);
    let output = project
        .run_with(&["-p", "Add the file", "--json"])
        .expect(0);
    for line in output.stdout.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok(),
            "{line}"
        );
    }
    let file = project.journal()[0]["plan"]["task_file"].clone();
    assert!(
        file.as_str().unwrap().contains("/tasks/add-the-file-"),
        "{file}"
    );
}

#[test]
fn a_sentence_that_cannot_be_run_is_refused_in_one_line() {
    let project = project();
    let long = "x".repeat(1001);
    let here = "describe the result in one sentence; more belongs in a task file, which `ralph init` writes";
    for (sentence, why) in [
        ("", "it is empty"),
        (" \n ", "it is empty"),
        (&long, "it has 1001 characters, limit 1000"),
        (
            "a\u{1b}[31mb",
            "it contains the control character '\\u{1b}'",
        ),
    ] {
        for command in ["init", "run"] {
            let output = project.ralph(&[command, "-p", sentence]).expect(2);
            assert_eq!(
                output.stderr,
                format!("ralph: cannot make a task from this sentence — {why} — {here}\n")
            );
        }
    }
    let key = "zai-0123456789abcdef";
    let mut secret = project.command(&["init", "-p", &format!("Call it with {key}")]);
    let output = secret.env("ZAI_API_KEY", key).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_ne!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.starts_with("ralph: ") && !stderr.contains(key),
        "{stderr}"
    );
    assert!(!project.task().exists());
    let both = project.ralph(&["run", "-p", "Do it", "task.md"]).expect(2);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
}

#[test]
fn a_sentence_needs_a_worker_a_test_command_and_a_repository() {
    let project = project();
    let worker = project.ralph(&["run", "-p", "Do it"]).expect(1);
    assert_eq!(
        worker.stderr,
        "ralph: nothing can work on this task — neither the credential of an agent nor the key of a \
         model was found — store a credential with `ralph store-token`, or set `ZAI_API_KEY` or \
         `OPENAI_API_KEY`\n"
    );
    project.git(&["rm", "--quiet", "test.sh"]);
    let tests = project.run_with(&["-p", "Do it"]).expect(2);
    let repository = project.repo().canonicalize().unwrap();
    assert_eq!(
        tests.stderr,
        format!(
            "ralph: no test command was found in `{}` — a run succeeds only if a command proves it — \
             write a task with `ralph init -p \"…\"`, fill in its `test_command`, then start `ralph run`\n",
            repository.display()
        )
    );
    let nowhere = project
        .run_with(&["-p", "Do it", "--repo", "../home"])
        .expect(2);
    assert!(
        nowhere.stderr.contains("there is no git repository"),
        "{}",
        nowhere.stderr
    );
    assert!(!project.home().join("tasks").exists());
}
