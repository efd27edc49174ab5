//! Concurrent starts of runs, and the order of runs.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::project::{Project, ProjectOutput, finish};
use crate::support::{TestRalph, status};

const AT_ONCE: usize = 10;
const ROUNDS: usize = 2;

/// Starts processes concurrently, and waits for all of them.
fn all_at_once(commands: impl Iterator<Item = std::process::Command>) -> Vec<ProjectOutput> {
    let children: Vec<Child> = commands
        .map(|mut command| {
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    children
        .into_iter()
        .map(|child| ProjectOutput::from_output(&child.wait_with_output().unwrap()))
        .collect()
}

fn summaries(project: &Project) -> Vec<Value> {
    let listed = project.ralph(&["runs", "--json"]).expect(0);
    serde_json::from_str(&listed.stdout).unwrap()
}

fn distinct(summaries: &[Value], key: impl Fn(&Value) -> String) -> BTreeSet<String> {
    summaries.iter().map(key).collect()
}

#[test]
fn runs_of_one_task_that_start_at_once_do_not_collide() {
    for _ in 0..ROUNDS {
        let project = Project::new().script(&[finish()]);
        let model = project.model();
        let start = || project.command(&["run", "--new", "--model", &model]);
        for ended in all_at_once((0..AT_ONCE).map(|_| start())) {
            ended.expect(0);
        }
        let runs = summaries(&project);
        assert_eq!(runs.len(), AT_ONCE);
        assert!(runs.iter().all(|run| run["status"] == "succeeded"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let branches = distinct(&runs, |run| text(&run["branch"]));
        let expected = (1..=AT_ONCE).map(|number| match number {
            1 => "ralph/task/make-two-files".to_owned(),
            _ => format!("ralph/task/make-two-files-v{number}"),
        });
        assert_eq!(branches, expected.collect());
        assert_eq!(
            distinct(&runs, |run| text(&run["pr"]["url"])).len(),
            AT_ONCE
        );
        for run in &runs {
            let id = run["id"].as_str().unwrap();
            let journal = project.home().join("runs").join(id).join("journal.jsonl");
            let journal = fs::read_to_string(journal).unwrap();
            // All of them save their files under one ref.
            assert!(journal.contains("\"state_saved\""), "{journal}");
            project.ralph(&["audit", id]).expect(0);
        }
    }
}

#[test]
fn of_a_task_that_is_started_many_times_at_once_one_run_starts() {
    for _ in 0..ROUNDS {
        let mut slow = finish();
        slow["delay_ms"] = 5_000.into();
        let project = Project::new().script(&[slow]);
        let model = project.model();
        let start = || project.command(&["run", "--model", &model]);
        let ended = all_at_once((0..AT_ONCE).map(|_| start()));
        let (started, refused): (Vec<&ProjectOutput>, Vec<&ProjectOutput>) =
            ended.iter().partition(|ended| ended.code == 0);
        assert_eq!(started.len(), 1, "{ended:?}");
        for refused in refused {
            assert_eq!(refused.code, 1, "{refused:?}");
            assert!(
                refused.stderr.contains("of this task is under way"),
                "{refused:?}"
            );
        }
        assert_eq!(summaries(&project).len(), 1);
        // Nothing is left of the others.
        let names = fs::read_dir(project.home().join("runs")).unwrap();
        assert_eq!(names.count(), 1);
        project.audit();
    }
}

#[test]
fn runs_of_many_repositories_that_start_at_once_share_a_state_directory() {
    let home = tempfile::tempdir().unwrap();
    let projects: Vec<Project> = (0..AT_ONCE)
        .map(|number| {
            Project::new()
                .set("task_id", &format!("task-{number}"))
                .env("RALPH_HOME", home.path().to_str().unwrap())
                .script(&[finish()])
        })
        .collect();
    let starts = projects
        .iter()
        .map(|project| project.command(&["run", "--model", &project.model()]));
    for ended in all_at_once(starts) {
        ended.expect(0);
    }
    let runs = summaries(&projects[0]);
    let tasks = distinct(&runs, |run| run["task_id"].as_str().unwrap().to_owned());
    assert_eq!((runs.len(), tasks.len()), (AT_ONCE, AT_ONCE));
    for (number, project) in projects.iter().enumerate() {
        project
            .ralph(&["audit", &format!("task-{number}")])
            .expect(0);
    }
    let left: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_last_run_is_the_one_that_was_created_last_even_if_the_clock_went_back() {
    use ralph_core::run::RunStatus;
    let ralph = TestRalph::new();
    let done = || vec![status(RunStatus::Succeeded)];
    // The clock was years ahead, then right, then behind, then right again.
    let created = [
        "991231-235959-0001",
        "261118-100000-0002",
        "200101-000000-0003",
        "261118-100100-0004",
    ];
    for id in created {
        ralph.create_run(id, "task", done());
        assert_eq!(ralph.json(&["show", "last", "--json"])["id"], id);
        assert_eq!(ralph.json(&["show", "task", "--json"])["id"], id);
    }
    let listed = ralph.json(&["runs", "--json"]);
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    let newest_first: Vec<&str> = created.into_iter().rev().collect();
    assert_eq!(listed, newest_first);
}
