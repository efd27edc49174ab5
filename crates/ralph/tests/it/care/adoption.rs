//! Sandboxes of killed processes.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::{Value, json};

use super::private_engine::CareEngine;
use crate::project::Project;

const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A run that was killed during a command.
struct KilledRun {
    run: String,
    sandbox: String,
}

/// Returns a project whose model starts an endless command, and then completes the task.
fn project(engine: &CareEngine) -> Project {
    let endless =
        r#"if [ -e "$HOME/there" ]; then echo again; else touch "$HOME/there"; sleep 300; fi"#;
    let rest = json!([
        {"type": "run", "command": endless},
        {"type": "write", "path": "a.txt", "content": "one\n"},
        {"type": "write", "path": "b.txt", "content": "two\n"},
        {"type": "commit", "message": "Both"},
        {"type": "stop_success", "reason": "both"},
    ]);
    let reply = json!({
        "reply": {
            "summary": "Make both",
            "actions": rest,
            "claims": {"checkboxes_checked": ["M1.1", "M1.2"], "milestones_completed": ["M1"]},
        },
        "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let project = Project::new()
        .env("DOCKER_HOST", engine.host())
        .script(&[reply]);
    let settings = format!("[sandbox]\nprovider = \"docker\"\nimage = \"{BASE_IMAGE}\"\n");
    fs::write(project.repo().join("ralph.toml"), settings).unwrap();
    project
}

fn runs(project: &Project) -> Vec<PathBuf> {
    let entries = fs::read_dir(project.home().join("runs"));
    let mut runs: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("journal.jsonl").exists())
        .collect();
    runs.sort();
    runs
}

fn events(run: &std::path::Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
        .filter(|event| event["type"] == kind)
        .collect()
}

/// Starts a run and returns while its command is running.
fn start(project: &Project, engine: &CareEngine) -> (Child, KilledRun) {
    let known = runs(project);
    let model = project.model();
    let mut child = project
        .command(&["run", "--new", "--model", &model])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < WAIT_TIMEOUT, "the command never ran");
        assert_eq!(child.try_wait().unwrap(), None, "the run ended");
        let run = runs(project).into_iter().find(|run| !known.contains(run));
        let created = run.iter().flat_map(|run| events(run, "sandbox_created"));
        let id = created.last().map(|event| event["sandbox"].clone());
        if let (Some(run), Some(Value::String(sandbox))) = (run, id) {
            let container = sandbox.replace("docker-", "ralph-");
            let top = ["top", container.as_str(), "-o", "pid,args"];
            if engine.docker(&top).contains("sleep 300") {
                let run = run.file_name().unwrap().to_str().unwrap().to_owned();
                return (child, KilledRun { run, sandbox });
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills three runs, deletes one of them, and resumes the others: each continues in its own
/// sandbox, that of the deleted run is kept as orphaned, and nothing else on the Docker Engine is touched.
#[test]
fn sandboxes_are_adopted_or_kept_as_orphaned() {
    if skip_without_docker() {
        return;
    }
    let engine = CareEngine::start();
    engine.start_foreign();
    let foreign = (engine.containers(), engine.volumes());
    let project = project(&engine);
    let (children, killed): (Vec<Child>, Vec<KilledRun>) =
        (0..3).map(|_| start(&project, &engine)).unzip();
    assert_eq!(engine.containers().len(), foreign.0.len() + 3);
    children.into_iter().for_each(kill);
    let [first, second, deleted] = killed.try_into().map_err(|_| "three").unwrap();
    fs::remove_dir_all(project.home().join("runs").join(&deleted.run)).unwrap();

    for killed in [&first, &second] {
        project.ralph(&["resume", &killed.run]).expect(0);
        let run = project.home().join("runs").join(&killed.run);
        let created = events(&run, "sandbox_created");
        let work = created.iter().filter(|event| event["purpose"] == "work");
        let work: Vec<&Value> = work.map(|event| &event["sandbox"]).collect();
        assert_eq!(work, [&json!(killed.sandbox)], "it was not adopted");
        let notices = events(&run, "notice");
        assert!(notices.is_empty(), "{notices:?}");
        project.ralph(&["audit", &killed.run]).expect(0);
    }
    assert_eq!(engine.containers().len(), foreign.0.len() + 1);
    let pruned = project.ralph(&["prune-sandboxes", "--type", "docker", "--orphaned"]);
    let line = format!(
        "removed {} of run {} — its run no longer exists",
        deleted.sandbox, deleted.run
    );
    assert!(pruned.expect(0).stdout.contains(&line));
    assert_eq!((engine.containers(), engine.volumes()), foreign);
}
