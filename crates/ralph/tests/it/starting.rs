//! From an empty directory to a valid task file.

use std::fs;

use serde_json::json;
use snapbox::{assert_data_eq, str};

use crate::support::TestRalph;

#[test]
fn init_writes_a_task_file_once() {
    let ralph = TestRalph::new();
    let first = ralph.run(&["init", "--full"]);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert_data_eq!(
        first.stdout,
        str![[r"
wrote ralph_task.md

next:
  1. describe the task and how to check it: edit ralph_task.md
  2. check the task file: ralph lint
  3. start the run: ralph run

also read if they exist:
  config/models.yaml  model profiles; `ralph init --models` writes it
  ralph.toml          settings of the project
  .env                credentials; environment variables take precedence

"]]
    );
    let task = ralph.project().join("ralph_task.md");
    assert_eq!(
        fs::read_to_string(&task).unwrap(),
        ralph_core::templates::TASK
    );

    fs::write(&task, "mine").unwrap();
    let second = ralph.run(&["init"]);
    assert_eq!(
        (second.code, second.stderr.as_str()),
        (
            1,
            "ralph: will not overwrite `ralph_task.md` — it exists — overwrite it with `--force`, \
             or remove it\n"
        )
    );
    assert_eq!(fs::read_to_string(&task).unwrap(), "mine");

    assert_eq!(ralph.run(&["init", "--full", "--force"]).code, 0);
    assert_eq!(
        fs::read_to_string(&task).unwrap(),
        ralph_core::templates::TASK
    );
}

#[test]
fn init_writes_the_profiles_next_to_an_existing_task_file() {
    let ralph = TestRalph::new();
    let task = ralph.project().join("ralph_task.md");
    fs::write(&task, "mine").unwrap();
    let output = ralph.run(&["init", "--models"]);
    assert_eq!(output.code, 0);
    assert!(
        output
            .stdout
            .starts_with("wrote config/models.yaml\nkept ralph_task.md\n"),
        "{output:?}"
    );
    assert_eq!(fs::read_to_string(&task).unwrap(), "mine");
    let models = fs::read_to_string(ralph.project().join("config/models.yaml")).unwrap();
    assert_eq!(models, ralph_core::templates::MODELS);
}

#[test]
fn what_init_writes_can_be_linted_and_a_missing_key_is_found() {
    let ralph = TestRalph::new();
    assert_eq!(ralph.run(&["init", "--full"]).code, 0);
    let output = ralph.run(&["lint"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let report = ralph.json(&["lint", "--json"]);
    assert_eq!(report["ok"], json!(true));

    let task = ralph.project().join("ralph_task.md");
    let text = fs::read_to_string(&task).unwrap();
    let text = text.replace("max_iterations: 30\n", "");
    fs::write(&task, text).unwrap();
    let output = ralph.run(&["lint"]);
    assert_eq!((output.code, output.stderr.as_str()), (1, ""), "{output:?}");
    for lines in [
        "ralph_task.md:52: error[missing-max-iterations] `max_iterations` is missing\n    \
         fix: add the line `max_iterations: 30` to the front matter\n",
        "ralph_task.md: 1 error, 13 warnings\n",
    ] {
        assert!(output.stdout.contains(lines), "{}", output.stdout);
    }
    let output = ralph.run(&["lint", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &report["ok"]), (1, &json!(false)));
    let keys: Vec<&String> = report["findings"][0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["code", "severity", "line", "column", "message", "fix"]
    );
}

#[test]
fn a_missing_task_file_is_a_finding_for_scripts() {
    let ralph = TestRalph::new();
    let output = ralph.run(&["lint", "no.md", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, output.stderr.as_str()), (1, ""));
    assert_eq!(
        (&report["ok"], &report["findings"][0]["code"]),
        (&json!(false), &json!("missing-task-file"))
    );
}

#[test]
fn completions_complete_in_every_shell() {
    let ralph = TestRalph::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = ralph.run(&["completions", shell]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains("rotate"), "{shell}");
    }
}
