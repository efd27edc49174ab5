//! Task and configuration files are regular files of their repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::Project;

fn fifo(path: &std::path::Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Runs a command that must end soon, and returns its exit code and output.
#[track_caller]
fn soon(project: &Project, args: &[&str]) -> (i32, String) {
    let mut child = project
        .command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn a_task_file_that_is_not_a_regular_file_is_rejected_immediately() {
    let project = Project::new();
    fs::remove_file(project.task()).unwrap();
    fifo(&project.task());
    for (args, code) in [
        (&["lint"][..], 1),
        (&["run"], 2),
        (&["run", "--dry-run"], 2),
        (&["preflight"], 1),
        (&["trust"], 2),
        (&["trust", "ralph_task.md"], 2),
        (&["trust", "--yes"], 2),
    ] {
        let (exit_code, text) = soon(&project, args);
        assert_eq!(exit_code, code, "{args:?}: {text}");
        let why = "it is a named pipe, not a regular file";
        assert!(text.contains(why), "{args:?}: {text}");
    }
    for (file, why) in [
        ("/dev/zero", "it is a device, not a regular file"),
        (".", "it is a directory, not a regular file"),
    ] {
        let (code, text) = soon(&project, &["lint", file]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn a_link_to_a_task_of_another_repository_is_refused_with_its_real_path() {
    let (project, other) = (Project::new(), Project::new());
    let real = other.task().canonicalize().unwrap();
    symlink(&real, project.repo().join("link.md")).unwrap();
    symlink(other.repo(), project.repo().join("tasks")).unwrap();
    for file in ["link.md", "tasks/ralph_task.md"] {
        let ended = project
            .ralph(&["run", file, "--model", &project.model()])
            .expect(2);
        let why = format!("it points to `{}`, outside of `", real.display());
        assert!(ended.stderr.contains(&why), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        project.ralph(&["lint", file]).expect(1);
        let ended = project.ralph(&["trust", file]).expect(2);
        assert!(ended.stderr.contains(&why), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    assert!(!project.home().join("runs").exists(), "a run was made");
    // Named explicitly, the other repository's task is the user's choice.
    let other_task = real.display().to_string();
    project.ralph(&["lint", &other_task]).expect(0);
}

#[test]
fn configuration_files_that_are_not_regular_files_are_rejected_immediately() {
    for name in ["ralph.toml", "config/models.yaml", ".env"] {
        let project = Project::new();
        let path = project.repo().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fifo(&path);
        let (code, text) = soon(&project, &["run"]);
        assert_ne!(code, 0, "{name}: {text}");
        assert!(
            text.contains("it is a named pipe, not a regular file"),
            "{name}: {text}"
        );
        fs::remove_file(&path).unwrap();
        let secret = project.path("outside");
        fs::write(&secret, "ZAI_API_KEY=from-outside\n").unwrap();
        symlink(&secret, &path).unwrap();
        let (code, text) = soon(&project, &["run"]);
        assert_ne!(code, 0, "{name}: {text}");
        assert!(text.contains("it points to `"), "{name}: {text}");
    }
    let project = Project::new();
    fs::create_dir_all(project.repo().join("config/agents.toml")).unwrap();
    let (code, text) = soon(&project, &["run", "--agent", "command"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("it is a directory, not a regular file"),
        "{text}"
    );
    let project = Project::new();
    let script = project.path("replies.jsonl");
    fifo(&script);
    let (code, text) = soon(&project, &["run", "--model", &project.model()]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("not a regular file"), "{text}");
}

#[test]
fn trust_rejects_a_missing_file_or_one_that_is_not_a_task() {
    let project = Project::new();
    project.commit("README.txt", "no task\n");
    for (file, why) in [
        ("nothing.md", "cannot read the task file `"),
        ("README.txt", "cannot use the task file `"),
    ] {
        let ended = project.ralph(&["trust", file]).expect(2);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}
