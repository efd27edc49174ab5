//! The diagnostics log of the program: where it is, what it takes, and what it never contains.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use ralph_test::{FakeModelApi, FakeResponse};

use crate::models::{complete_reply, project_at};
use crate::project::{Project, finish};

fn log_text(project: &Project) -> String {
    fs::read_to_string(project.home().join("log/ralph.log")).unwrap()
}

#[test]
fn a_run_leaves_a_private_log_that_names_it() {
    let project = Project::new().script(&[finish()]);
    let ended = project.run();
    assert_eq!(ended.stderr, "");
    let mode = |name: &str| {
        let found = fs::metadata(project.home().join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!((mode("log"), mode("log/ralph.log")), (0o700, 0o600));
    let log = log_text(&project);
    let run_dir = project.run_dir();
    let run = run_dir.file_name().unwrap().display();
    let line = log.lines().last().unwrap();
    assert!(
        line.contains(&format!(
            " INFO  ralph::cli::drive run={run} this process has ended its work on the run"
        )),
        "{log}"
    );
    // Successful calls are logged on request only.
    assert!(!log.contains("DEBUG"), "{log}");
}

#[test]
fn an_error_that_repeats_secrets_is_logged_without_them() {
    let key = "sk-acme-canary-0123456789abcdef";
    let other = "zz-other-canary-secret-77";
    let body = format!(r#"{{"error":{{"message":"wrong key {key}, session {other}"}}}}"#);
    let api = FakeModelApi::start([FakeResponse::json(401, &body)]).unwrap();
    let project = project_at(&api.url())
        .env("ACME_API_KEY", key)
        .env("SESSION_SECRET", other)
        .env("RALPH_LOG", "trace");
    let ended = project.ralph(&["run", "-v"]).expect(11);
    let log = log_text(&project);
    assert!(
        log.contains("model request rejected model=acme/one host=127.0.0.1 attempt=1"),
        "{log}"
    );
    assert!(log.contains("status=401"), "{log}");
    assert!(log.contains("[REDACTED:SESSION_SECRET]"), "{log}");
    for text in [&log, &ended.stderr, &ended.stdout] {
        assert!(!text.contains("canary"), "{text}");
    }
    assert!(log.contains("git ended location=host arguments="), "{log}");
}

#[test]
fn verbose_prints_the_log_on_standard_error_only() {
    let project = Project::new().script(&[finish()]);
    let quiet = project.ralph(&["lint"]);
    for args in [["-v", "lint"], ["lint", "--verbose"], ["lint", "-vv"]] {
        let output = project.ralph(&args);
        assert_eq!((output.code, &output.stdout), (quiet.code, &quiet.stdout));
    }
    let output = project.ralph(&["show", "nothing", "-v"]).expect(1);
    assert_eq!(output.stdout, "");
    assert!(
        output
            .stderr
            .contains("DEBUG ralph::cli::dispatch the command failed error="),
        "{}",
        output.stderr
    );
    let model = project.model();
    let ended = project.ralph(&[
        "run",
        "--model",
        &model,
        "--sandbox",
        "local",
        "--json",
        "-v",
    ]);
    assert!(
        ended.stderr.contains(" DEBUG ralph_engine::git"),
        "{}",
        ended.stderr
    );
    for line in ended.stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn the_filter_chooses_levels_and_reports_what_it_cannot_read() {
    let project = Project::new()
        .env("RALPH_LOG", "ralph_engine=debug,off,loud")
        .script(&[serde_json::json!({"reply": complete_reply()})]);
    let ended = project.run().expect(0);
    assert_eq!(
        ended.stderr,
        "ralph: warning: `loud` in RALPH_LOG is ignored: a level is off, error, warn, info, debug or trace\n"
    );
    let log = log_text(&project);
    let is_engine = |line: &str| line.contains(" ralph_engine::");
    assert!(!log.is_empty() && log.lines().all(is_engine), "{log}");
}

#[test]
fn an_unwritable_log_is_reported_once_and_the_run_works() {
    let project = Project::new().script(&[serde_json::json!({"reply": complete_reply()})]);
    fs::create_dir_all(project.home().join("log/ralph.log")).unwrap();
    let ended = project.env("RALPH_LOG", "debug").run().expect(0);
    let warnings = ended.stderr.matches("cannot write the diagnostics log");
    assert_eq!(warnings.count(), 1, "{}", ended.stderr);
}
