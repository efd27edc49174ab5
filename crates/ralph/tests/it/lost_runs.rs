//! Runs whose directory is lost: their sandboxes survive, and the runs are rebuilt from the sandbox or
//! from the snapshot in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::Value;

use crate::project::{Project, actions, claiming, commit, control, finish, run, write};

/// Commits one file, leaves another one uncommitted and then waits for its death.
fn killed_in_the_second_iteration(project: &Project) -> String {
    project.write_script(&[
        claiming(&["M1.1"], &[write("a.txt", "one\n"), commit("Add one")]),
        actions(&[write("b.txt", "two\n"), run("touch ../scratch/x; sleep 55")]),
    ]);
    let mut live = project.start();
    live.wait_until("the second iteration runs its command", |journal| {
        let started = journal.iter().filter(|event| {
            event["type"] == "action_started" && event["iteration"] == 2 && event["index"] == 1
        });
        started.count() == 1
    });
    assert!(live.is_alive());
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    let name = project.run_dir();
    let name = name.file_name().unwrap();
    name.to_str().unwrap().to_owned()
}

fn run_path(project: &Project, run: &str) -> PathBuf {
    project.home().join("runs").join(run)
}

/// The rest of the task: commits the uncommitted file and claims both boxes again.
fn rest() -> Value {
    claiming(&["M1.1", "M1.2"], &[commit("Add two")])
}

fn other_run(project: &Project) {
    project.write_script(&[actions(&[control("stop_failure", "no")])]);
    project.run_with(&["--new"]).expect(10);
}

fn listed(project: &Project, run: &str) -> Value {
    let runs = project.ralph(&["runs", "--json"]).expect(0);
    let runs: Vec<Value> = serde_json::from_str(&runs.stdout).unwrap();
    let found = runs.into_iter().find(|entry| entry["id"] == run);
    found.unwrap_or(Value::Null)
}

fn audit(project: &Project, run: &str) {
    let ended = project.ralph(&["audit", run]);
    assert_eq!(ended.code, 0, "{}", ended.combined());
}

fn show(project: &Project, run: &str) -> Value {
    let ended = project.ralph(&["show", run, "--json"]).expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Kills a run, deletes its directory and the snapshot, starts another run, and rebuilds the first one.
fn rescue_from_sandbox(project: &Project) {
    let lost = killed_in_the_second_iteration(project);
    fs::remove_dir_all(run_path(project, &lost)).unwrap();
    project.git(&["update-ref", "-d", "refs/ralph/task"]);
    other_run(project);
    let entry = listed(project, &lost);
    assert_eq!(entry["status"], "orphaned", "{entry}");
    let explained = project.ralph(&["show", &lost]).expect(0);
    let hint = format!("`ralph adopt {lost}` rebuilds it");
    assert!(explained.stdout.contains(&hint), "{explained:?}");

    project.write_script(&[rest()]);
    let model = project.model();
    let refused = project.ralph(&["adopt", &lost, "--model", &model]);
    assert_eq!(refused.code, 2, "{}", refused.combined());
    assert!(!run_path(project, &lost).exists());
    let adopted = project
        .ralph(&["adopt", &lost, "--model", &model, "--yes"])
        .expect(0);
    assert!(
        adopted.stdout.contains("[ ] M1.2 Two is there"),
        "{adopted:?}"
    );
    let state = show(project, &lost);
    assert_eq!(state["status"], "paused");
    assert!(
        state["origin"]
            .as_str()
            .unwrap()
            .starts_with("unverified origin")
    );
    assert_eq!(state["boxes"][0]["ticked"], false);
    assert_eq!(
        state["iteration"], 1,
        "the sandbox has one finished iteration"
    );
    audit(project, &lost);

    project.ralph(&["resume", &lost]).expect(0);
    let state = show(project, &lost);
    assert_eq!(state["status"], "succeeded");
    let branch = state["branch"].as_str().unwrap();
    let files = project.git(&["diff", "--name-only", &format!("main..refs/heads/{branch}")]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["a.txt", "b.txt"]);
    let commits = project.git(&["log", "--format=%s", &format!("main..refs/heads/{branch}")]);
    assert_eq!(commits.lines().collect::<Vec<_>>(), ["Add two", "Add one"]);
    let url = state["pr"]["url"].as_str().unwrap().to_owned();
    let pull = fs::read_to_string(url.trim_start_matches("file://")).unwrap();
    assert!(pull.contains("unverified origin"), "{pull}");
    audit(project, &lost);
}

#[test]
fn a_run_is_rebuilt_from_its_local_sandbox() {
    rescue_from_sandbox(&Project::new());
}

#[test]
fn a_run_is_rebuilt_from_its_container() {
    if skip_without_docker() {
        return;
    }
    let project = Project::new();
    let settings = format!("[sandbox]\nprovider = \"docker\"\nimage = \"{BASE_IMAGE}\"\n");
    project.configure("ralph.toml", &settings);
    rescue_from_sandbox(&project);
    project.remove_docker_objects();
}

/// With another state directory and only a clone of the repository, the snapshot is enough.
#[test]
fn a_run_is_rebuilt_from_a_clone() {
    let project = Project::new();
    let lost = killed_in_the_second_iteration(&project);
    let saved = project.git(&["show", "refs/ralph/task:snapshot.json"]);
    assert!(saved.contains(&lost), "{saved}");
    let (clone, home) = (project.path("clone"), project.path("other-home"));
    let source = project.repo().display().to_string();
    let target = clone.display().to_string();
    project.git(&["clone", "--quiet", &source, &target]);
    let fetch = ["fetch", "--quiet", "origin", "refs/ralph/*:refs/ralph/*"];
    project.git_in(&clone, &fetch);
    let ralph = |args: &[&str]| {
        let mut command = project.command(args);
        command.current_dir(&clone).env("RALPH_HOME", &home);
        crate::project::ProjectOutput::from_output(&command.output().unwrap())
    };
    let runs = ralph(&["runs"]).expect(0);
    assert!(runs.stdout.contains("orphaned"), "{runs:?}");
    project.write_script(&[finish()]);
    // The task file is not in the clone, and everyone with push access can write a snapshot.
    let refused = ralph(&["adopt", &lost, "--yes"]);
    assert_eq!(refused.code, 2, "{}", refused.combined());
    for shown in [
        "[ ] M1.2 Two is there",
        "sandbox: local, in which commands run as you",
    ] {
        assert!(refused.stdout.contains(shown), "{shown}: {refused:?}");
    }
    assert!(!home.join("runs").join(&lost).exists());
    let left = fs::read_dir(home.join("adopting")).unwrap().count();
    assert_eq!(left, 0);
    let other = ralph(&["adopt", &lost, "--yes", "--sandbox", "docker"]);
    assert_eq!(other.code, 2, "{}", other.combined());
    ralph(&["adopt", &lost, "--yes", "--sandbox", "local"]).expect(0);
    let resumed = ralph(&["resume", &lost]);
    assert_eq!(resumed.code, 0, "{}", resumed.combined());
    let shown = ralph(&["show", &lost, "--json"]).expect(0);
    let state: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(state["status"], "succeeded");
    let origin = state["origin"].as_str().unwrap();
    assert!(origin.contains("refs/ralph/task"), "{origin}");
    let branch = format!("main..refs/heads/{}", state["branch"].as_str().unwrap());
    let files = project.git_in(&clone, &["diff", "--name-only", &branch]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["a.txt", "b.txt"]);
    let audited = ralph(&["audit", &lost]);
    assert_eq!(audited.code, 0, "{}", audited.combined());
}

/// A forged contract is shown as different, forged ticks count for nothing, and the clean room decides.
#[test]
fn forged_files_in_the_sandbox_do_not_grant_success() {
    let project = Project::new();
    let lost = killed_in_the_second_iteration(&project);
    let sandbox = project.sandbox();
    fs::remove_dir_all(run_path(&project, &lost)).unwrap();
    project.git(&["update-ref", "-d", "refs/ralph/task"]);
    let task = fs::read_to_string(sandbox.join("ralph_task.md")).unwrap();
    let ticked = task.replace("- [ ]", "- [x]");
    let forged = ticked.replace("grep -q two b.txt", "grep -q nothing b.txt");
    fs::write(sandbox.join("b.txt"), "nothing\n").unwrap();
    let model = project.model();
    let adopt = || project.ralph(&["adopt", &lost, "--model", &model]);

    fs::write(sandbox.join("ralph_task.md"), forged).unwrap();
    let shown = adopt();
    assert_eq!(shown.code, 2, "{}", shown.combined());
    assert!(
        shown.stdout.contains("the agent could write it"),
        "{shown:?}"
    );
    assert!(
        shown.stdout.contains("verify: grep -q nothing b.txt"),
        "{shown:?}"
    );

    fs::write(sandbox.join("ralph_task.md"), ticked).unwrap();
    let shown = adopt();
    assert!(
        shown.stdout.contains("the same as the task file here"),
        "{shown:?}"
    );
    let claims_only = claiming(&["M1.1", "M1.2"], &[commit("More")]);
    project.write_script(&[claims_only, actions(&[control("stop_failure", "no")])]);
    let yes = ["adopt", &lost, "--model", &model, "--yes"];
    project.ralph(&yes).expect(0);
    project.ralph(&["resume", &lost]).expect(10);
    let state = show(&project, &lost);
    assert_eq!(state["status"], "failed");
    assert_eq!(state["boxes"][1]["ticked"], false);
    audit(&project, &lost);
}

/// The plan in a snapshot decides about nothing that the user's own settings do not decide as well.
#[test]
fn a_plan_that_the_user_would_not_get_is_not_adopted_without_an_answer() {
    let project = Project::new();
    let settings = "[sandbox]\nsetup_command = \"true\"\n";
    project.configure("ralph.toml", settings);
    let lost = killed_in_the_second_iteration(&project);
    fs::remove_dir_all(run_path(&project, &lost)).unwrap();
    project.configure("ralph.toml", "");
    let yes = ["adopt", &lost, "--yes"];
    let refused = project.ralph(&yes);
    assert_eq!(refused.code, 2, "{}", refused.combined());
    let why = "only its snapshot decides this, which others can write: set-up: [\"true\",[]]";
    assert!(refused.stderr.contains(why), "{refused:?}");
    assert!(!run_path(&project, &lost).exists());
    project.configure("ralph.toml", settings);
    project.ralph(&yes).expect(0);
    audit(&project, &lost);
}

#[test]
fn a_snapshot_without_a_journal_does_not_hide_the_sandbox() {
    let project = Project::new();
    let lost = killed_in_the_second_iteration(&project);
    fs::remove_dir_all(run_path(&project, &lost)).unwrap();
    let tree = project.git(&["ls-tree", "refs/ralph/task", "--", "ralph_task.md"]);
    let index = project.path("index");
    let git = |args: &[&str]| git_with_index(&project, &index, args);
    let blob = tree.split_whitespace().nth(2).unwrap();
    let entry = format!("100644,{blob},ralph_task.md");
    git(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-m", &format!("State of run {lost}")]);
    git(&["update-ref", "refs/ralph/task", &commit]);
    let model = project.model();
    let adopted = project.ralph(&["adopt", &lost, "--model", &model, "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.combined());
    let origin = show(&project, &lost)["origin"].clone();
    assert!(
        origin.as_str().unwrap().starts_with("unverified"),
        "{origin}"
    );
}

/// A snapshot whose journal was changed is refused, and nothing is left behind.
#[test]
fn a_changed_snapshot_is_refused() {
    let project = Project::new();
    let lost = killed_in_the_second_iteration(&project);
    fs::remove_dir_all(run_path(&project, &lost)).unwrap();
    let journal = project.git(&["show", "refs/ralph/task:journal.jsonl"]);
    let shorter: Vec<&str> = journal.lines().collect();
    let shorter = shorter[..shorter.len() - 1].join("\n") + "\n";
    replace_journal(&project, &shorter, &lost);
    let refused = project.ralph(&["adopt", &lost, "--yes"]);
    assert_eq!(refused.code, 1, "{}", refused.combined());
    assert!(
        refused.stderr.contains("does not end with record"),
        "{refused:?}"
    );
    assert!(!run_path(&project, &lost).exists());
    replace_journal(
        &project,
        &journal.replace("\"Add one\"", "\"Add two\""),
        &lost,
    );
    let refused = project.ralph(&["adopt", &lost, "--yes"]);
    assert_eq!(refused.code, 1, "{}", refused.combined());
    assert!(!run_path(&project, &lost).exists());
    assert!(
        project
            .ralph(&["adopt", "nothing"])
            .stderr
            .contains("no orphaned run")
    );
}

fn replace_journal(project: &Project, text: &str, run: &str) {
    let index = project.path("index");
    let file = project.path("journal.jsonl");
    fs::write(&file, text).unwrap();
    let git = |args: &[&str]| git_with_index(project, &index, args);
    git(&["read-tree", "refs/ralph/task"]);
    let blob = git(&["hash-object", "-w", &file.display().to_string()]);
    let entry = format!("100644,{blob},journal.jsonl");
    git(&["update-index", "--add", "--cacheinfo", &entry]);
    let tree = git(&["write-tree"]);
    let subject = format!("State of run {run}");
    let commit = git(&["commit-tree", &tree, "-m", &subject]);
    git(&["update-ref", "refs/ralph/task", &commit]);
}

fn git_with_index(project: &Project, index: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(args)
        .current_dir(project.repo())
        .env("GIT_INDEX_FILE", index)
        .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "t")))
        .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "t@localhost")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// `git.state_ref = false` keeps the files of a run out of the repository.
#[test]
fn the_snapshot_can_be_switched_off() {
    let project = Project::new().script(&[finish()]);
    project.configure("ralph.toml", "[git]\nstate_ref = false\n");
    project.run().expect(0);
    assert_eq!(project.git(&["for-each-ref", "refs/ralph"]), "");
    assert!(project.events("state_saved").is_empty());
    let shown = project.ralph(&["config", "get", "git.state_ref"]).expect(0);
    assert_eq!(shown.stdout.trim(), "false");
}
