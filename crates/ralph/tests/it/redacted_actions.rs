//! A model's actions are performed byte for byte or rejected: redaction only applies to output.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::project::{Project, actions, claiming, commit, finish, patch, run, work, write};

/// Assembled at run time, so that secret scanners ignore it.
fn secret() -> String {
    format!("zai{}", ".Canary7Key".repeat(3))
}

fn reasons(project: &Project, iteration: u64) -> Vec<String> {
    project
        .events("action_finished")
        .iter()
        .filter(|event| event["iteration"] == iteration)
        .filter_map(|event| Some(event["why"].as_str()?.to_owned()))
        .collect()
}

/// Returns a file of the delivered branch.
fn delivered(project: &Project, file: &str) -> String {
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    project.git(&["show", &format!("{branch}:{file}")])
}

#[test]
fn an_ordinary_env_file_changes_nothing_that_is_performed() {
    let compose = "services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_PASSWORD: postgres\n";
    let diff = "--- a/compose.yml\n+++ b/compose.yml\n@@ -3 +3 @@\n-    image: postgres:16\n+    image: postgres:17\n";
    let mut all = vec![
        write("compose.yml", compose),
        patch("compose.yml", diff),
        run("echo postgres://postgres:postgres@db/postgres > url.txt"),
        commit("Use postgres, with the password postgres"),
    ];
    all.extend(work());
    let project = Project::new().script(&[claiming(&["M1.1", "M1.2"], &all)]);
    fs::write(
        project.repo().join(".env"),
        "POSTGRES_PASSWORD=postgres\nADMIN_TOKEN=dev\n",
    )
    .unwrap();
    project.run().expect(0);
    assert_eq!(
        delivered(&project, "compose.yml"),
        compose.replace("16", "17").trim_end()
    );
    assert_eq!(
        delivered(&project, "url.txt"),
        "postgres://postgres:postgres@db/postgres"
    );
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let log = project.git(&["log", "--format=%B", &format!("main..{branch}")]);
    assert!(
        log.contains("Use postgres, with the password postgres"),
        "{log}"
    );
    assert!(!log.contains("REDACTED"), "{log}");
    let warning = "`ADMIN_TOKEN` and `POSTGRES_PASSWORD` are not redacted: their values are too short \
                   or too common to search for";
    let notices = project.event_values("notice", "message");
    let warnings = notices.iter().filter(|notice| *notice == warning);
    assert_eq!(warnings.count(), 1, "{notices:?}");
    project.audit();
}

#[test]
fn the_plan_and_preflight_warn_about_a_value_that_is_too_common() {
    let project = Project::new()
        .env("POSTGRES_PASSWORD", "postgres")
        .script(&[finish()]);
    let warning = "`POSTGRES_PASSWORD` is not redacted: its value is too common to search for";
    let plan = project.run_with(&["--dry-run"]).expect(0).combined();
    assert_eq!(plan.matches(warning).count(), 1, "{plan}");
    let preflight = project.ralph(&["preflight"]).combined();
    assert_eq!(preflight.matches(warning).count(), 1, "{preflight}");
}

#[test]
fn an_action_with_a_known_secret_is_refused_and_the_model_reads_why() {
    let key = secret();
    let project = Project::new()
        .env("ZAI_API_KEY", &key)
        .set("on_action_error", "continue")
        .script(&[
            actions(&[
                write("leak.txt", &format!("key = {key}\n")),
                patch("base.txt", &format!("@@ -1 +1,2 @@\n base\n+{key}\n")),
                run(&format!("touch ran; echo {key}")),
                run("echo fine > fine.txt"),
                commit(&format!("Say {key}")),
                write("config.txt", "key = [REDACTED:ZAI_API_KEY]\n"),
            ]),
            actions(&[run(
                "test ! -e leak.txt && test ! -e ran && test ! -e config.txt && git diff --quiet",
            )]),
            finish(),
        ]);
    project.run().expect(0);
    assert_eq!(
        project.results(1),
        [
            "refused", "refused", "refused", "ran 0", "refused", "refused"
        ]
    );
    let reasons = reasons(&project, 1);
    assert_eq!(
        reasons[..4],
        ["content", "patch", "command", "message"]
            .map(|part| format!("the {part} contains the value of `ZAI_API_KEY`"))
    );
    assert!(
        reasons[4].contains("leave the original line as it is"),
        "{reasons:?}"
    );
    assert_eq!(project.results(2), ["ran 0"]);
    let prompt = project.prompt(2);
    assert!(
        prompt.contains("refused: the content contains the value of `ZAI_API_KEY`"),
        "{prompt}"
    );
    project.audit();
}

#[test]
fn a_redacted_line_is_not_written_over_the_original() {
    let original = "a: 1\nurl: https://app:p4ssw0rd@db.example/\n";
    let project = Project::new().set("on_action_error", "continue");
    project.commit("config.yml", original);
    let shown = "a: 2\nurl: https://[REDACTED]@db.example/\n";
    let project = project.script(&[
        actions(&[
            run("cat config.yml"),
            write("config.yml", shown),
            write("logger.py", "print('[REDACTED]')\n"),
            commit("Add a logger"),
        ]),
        finish(),
    ]);
    project.run().expect(0);
    assert!(
        project
            .artifact(1, "test_output.txt")
            .contains("https://[REDACTED]@db.example/")
    );
    assert_eq!(project.results(1), ["ran 0", "refused", "done", "done"]);
    assert_eq!(
        reasons(&project, 1),
        [
            "line 2 of `config.yml` is the redacted form of an existing line; `[REDACTED]` \
          stands for text that is not shown, so leave that line out of the change"
        ]
    );
    assert_eq!(delivered(&project, "config.yml"), original.trim_end());
    assert_eq!(delivered(&project, "logger.py"), "print('[REDACTED]')");
}

/// A reply whose stored copy differs from the original.
fn reply_with_secret(key: &str) -> Value {
    actions(&[
        write("first.txt", "one\n"),
        run("sleep 30"),
        write("url.txt", "https://app:p4ssw0rd@db.example/\n"),
        write("leak.txt", &format!("{key}\n")),
    ])
}

#[test]
fn a_resumed_run_does_not_perform_a_redacted_reply() {
    let key = secret();
    let project = Project::new()
        .env("ZAI_API_KEY", &key)
        .script(&[reply_with_secret(&key), finish()]);
    let live = project.start();
    live.wait_until("the command runs", |journal| {
        journal
            .iter()
            .any(|event| event["type"] == "action_started" && event["label"] == "sleep 30")
    });
    live.signal(Signal::KILL);
    drop(live);
    assert!(
        project
            .run_dir()
            .join("iterations/1.open/response.json")
            .exists()
    );
    project.ralph(&["resume", "last"]).expect(0);
    for event in project.events("action_started") {
        let label = event["label"].as_str().unwrap();
        assert!(!["url.txt", "leak.txt"].contains(&label), "{event}");
    }
    assert!(project.file("errors.log").contains("can no longer be read"));
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let patch = project.git(&["log", "--patch", &format!("main..{branch}")]);
    assert!(!patch.contains("REDACTED"), "{patch}");
    project.audit();
}

#[test]
fn a_reply_that_was_redacted_is_not_replayed() {
    let url = "https://app:p4ssw0rd@db.example/";
    let project = Project::new().script(&[
        actions(&[run("true")]),
        actions(&[write("url.txt", url), commit("Add an address")]),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(delivered(&project, "url.txt"), url);
    let run_dir = project.run_dir();
    let model = format!("replay:{}", run_dir.file_name().unwrap().display());
    let replayed = project.ralph(&["run", "--new", "--model", &model]);
    assert_eq!(replayed.code, 11, "{}", replayed.combined());
    assert_eq!(project.results(1), ["ran 0"]);
    let reason = project.show()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("reply 2 of the recorded run was redacted when it was stored"),
        "{reason}"
    );
}

#[test]
fn a_task_or_a_plan_with_a_known_secret_is_not_started() {
    let key = "s3nt1nel-value-9";
    let project = Project::new()
        .env("API_KEY", key)
        .set("test_command", &format!("grep -q {key} base.txt"))
        .script(&[finish()]);
    let refused = project.run().expect(12);
    assert_eq!(
        refused.stderr,
        "ralph: the task file is rejected — it contains the value of `API_KEY` — remove the value; the \
         text of a task reaches the sandbox, the prompts and the saved state\n"
    );
    let project = Project::new().env("API_KEY", key).script(&[finish()]);
    let script = project.path(&format!("{key}.jsonl"));
    fs::rename(project.path("replies.jsonl"), &script).unwrap();
    let model = format!("scripted:{}", script.display());
    let refused = project.ralph(&["run", "--model", &model]).expect(2);
    assert_eq!(
        refused.stderr,
        "ralph: cannot start the run — `model` of its plan contains the value of `API_KEY` — \
         choose another value: the journal stores no secret, so the run could not be resumed\n"
    );
}

#[test]
fn an_edit_of_the_task_with_a_known_secret_is_rejected() {
    let key = "s3nt1nel-value-9";
    let project = Project::new()
        .env("API_KEY", key)
        .script(&[actions(&[run("sleep 3")]), finish()]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let contract = project.run_dir().join("ralph_task.md");
    let text = fs::read_to_string(&contract).unwrap();
    let changed = format!("{text}\nThe key is {key}.\n");
    fs::write(&contract, &changed).unwrap();
    fs::write(project.task(), &changed).unwrap();
    let refused = project.ralph(&["task", "last"]).expect(2);
    assert!(
        refused
            .stderr
            .contains("the text contains the value of `API_KEY`"),
        "{}",
        refused.stderr
    );
    live.wait().expect(0);
    assert_eq!(project.event_values("contract_changed", "changes").len(), 0);
    let aside = fs::read_to_string(project.run_dir().join("ralph_task.rejected.md")).unwrap();
    assert!(aside.contains("The key is [REDACTED:API_KEY]."), "{aside}");
    assert!(!fs::read_to_string(&contract).unwrap().contains(key));
}
