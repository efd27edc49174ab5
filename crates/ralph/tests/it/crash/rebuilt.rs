//! Repositories that have lost parts on disk although they were synced.

use std::fs;
use std::path::Path;

use super::resume_checks::{assert_same_result, find, for_each, kill_after};
use crate::crash_stage::{BRANCH, CrashStage};
use crate::support::RalphOutput;

type DamageFn = fn(&Path);

/// Kinds of damage to the run's repository.
const DAMAGES: [(&str, DamageFn); 6] = [
    ("all of it", |repo| fs::remove_dir_all(repo).unwrap()),
    ("HEAD", |repo| fs::write(repo.join("HEAD"), "").unwrap()),
    ("its objects", |repo| {
        fs::remove_dir_all(repo.join("objects")).unwrap();
    }),
    ("the newest pack", |repo| {
        let packs = fs::read_dir(repo.join("objects/pack")).unwrap();
        let packs = packs.map(|entry| entry.unwrap().path());
        let newest = packs
            .filter(|path| path.extension().is_some_and(|end| end == "pack"))
            .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        fs::remove_file(newest.unwrap()).unwrap();
    }),
    ("the content of its branch", |repo| {
        fs::write(repo.join("refs/heads").join(BRANCH), "").unwrap();
    }),
    ("its branch", |repo| {
        fs::remove_file(repo.join("refs/heads").join(BRANCH)).unwrap();
    }),
];

/// Nothing was pushed yet, so the commits exist only in the sandbox.
#[test]
fn from_the_sandbox() {
    for_each(&DAMAGES, |(what, damage)| {
        let stage = CrashStage::new();
        kill_after(&stage, find("commits_imported", "", "", 1));
        damage(&stage.dir().repo());
        let output = stage.run(&["resume", "last"]);
        assert_eq!(output.code, 0, "{what}: {output:?}");
        assert_same_result(&stage, what);
    });
}

/// Without the sandbox they come from the user's repository.
#[test]
fn from_the_users_repository() {
    let stage = CrashStage::new();
    kill_after(&stage, find("pushed", "", "", 1));
    let head = stage.dir().state().unwrap().head;
    fs::remove_dir_all(stage.sandbox()).unwrap();
    fs::remove_dir_all(stage.dir().repo().join("objects")).unwrap();
    stage.run(&["resume", "last"]);
    let events = stage.events();
    let notice = events
        .iter()
        .find(|event| event["type"] == "notice")
        .unwrap();
    let words = format!("it was rebuilt up to commit {}", head.short());
    let message = notice["message"].as_str().unwrap();
    assert!(message.contains(&words), "{message}");
    assert!(stage.dir().recovered().join("repo-2.git").exists());
}

/// A git that does not respond is no evidence of a damaged repository.
#[test]
fn without_a_git_nothing_is_moved_aside() {
    let stage = CrashStage::new();
    kill_after(&stage, find("commits_imported", "", "", 1));
    let mut resume = stage.command(&["resume", "last"]);
    let output = RalphOutput::from(resume.env("PATH", "/nowhere").output().unwrap());
    assert_ne!(output.code, 0, "{output:?}");
    assert!(!stage.dir().recovered().join("repo-2.git").exists());
    assert!(stage.dir().repo().join("objects").exists());
    let output = stage.run(&["resume", "last"]);
    assert_eq!(output.code, 0, "{output:?}");
}

/// Lost commits pause the run: it never silently restarts from the base.
#[test]
fn from_nowhere() {
    let stage = CrashStage::new();
    kill_after(&stage, find("commits_imported", "", "", 1));
    let head = stage.dir().state().unwrap().head;
    fs::remove_dir_all(stage.sandbox()).unwrap();
    fs::remove_dir_all(stage.dir().repo()).unwrap();
    let output = stage.run(&["resume", "last"]);
    assert_eq!(output.code, 11, "{output:?}");
    let words = format!("commit {} of the run is lost", head.short());
    assert!(output.stdout.contains(&words), "{output:?}");
    let shown = stage.shown().unwrap();
    assert_eq!(shown["status"], "paused");
}

/// The power failed during the push: the branch names a commit that does not exist.
#[test]
fn a_branch_without_objects_in_the_users_repository() {
    let stage = CrashStage::new();
    kill_after(&stage, find("push_started", "", "", 1));
    let head = stage.dir().state().unwrap().head;
    let [_, project] = stage.roots();
    let branch = project.join(".git/refs/heads").join(BRANCH);
    fs::create_dir_all(branch.parent().unwrap()).unwrap();
    fs::write(&branch, format!("{head}\n")).unwrap();
    let output = stage.run(&["resume", "last"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_same_result(&stage, "a branch without objects");
}
