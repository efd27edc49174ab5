//! Runs of a newer ralph: every command identifies them and leaves them unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ralph_core::id::Digest;
use serde_json::{Value, json};

use crate::project::{Project, actions, control, finish};

/// Bytes, modification time and mode of every file and directory.
type DirectorySnapshot = BTreeMap<String, (Vec<u8>, SystemTime, u32)>;

fn snapshot_directory(dir: &Path) -> DirectorySnapshot {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        let mut bytes = Vec::new();
        if about.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            bytes = fs::read(&path).unwrap();
        }
        let name = path.display().to_string();
        found.insert(name, (bytes, about.modified().unwrap(), about.mode()));
    }
    found
}

/// The state in which a newer ralph left a journal.
#[derive(Debug, Clone, Copy)]
enum NewerJournal {
    /// Every record has the newer format.
    Whole,
    /// It took over a run of this version.
    TakenOver,
    /// It died while writing its first record.
    Torn,
    /// It wrote an unknown event in the current format.
    Event,
}

/// Rewrites a journal as a newer ralph would have written it.
fn rewrite(run: &Path, left: NewerJournal) {
    let path = run.join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap();
    let number = text.lines().count() + 1;
    let next = |v: u64, event: &Value| {
        json!({"v": v, "seq": number, "prev": Digest::compute(last.as_bytes()), "at": "2027-03-01T10:00:00Z",
            "active_ms": 1_000_000, "epoch": 9, "event": event})
    };
    let opened =
        json!({"type": "run_opened", "epoch": 9, "pid": 1, "ralph": "9.1.0", "host": "moon"});
    let text = match left {
        NewerJournal::Whole => {
            let text = text.replace("{\"v\":1,", "{\"v\":2,");
            let text = text.replace("\"type\":\"boxes_ticked\"", "\"type\":\"boxes_painted\"");
            format!("{text}{}\n", next(2, &opened))
        }
        NewerJournal::TakenOver => format!("{text}{}\n", next(2, &opened)),
        NewerJournal::Torn => format!("{text}{{\"v\":2,\"seq\":{number},\"pre"),
        NewerJournal::Event => format!(
            "{text}{}\n",
            next(1, &json!({"type": "dreamt", "of": "sheep"}))
        ),
    };
    fs::write(path, text).unwrap();
    // No command may recreate it.
    fs::remove_file(run.join("lock")).unwrap();
}

/// Returns a project with a paused run, and a finished one of a newer version.
fn two_runs() -> (Project, String, String) {
    // Without a key `ralph profile` rejects the profile before it searches for the run.
    let project = Project::new()
        .env("OPENAI_API_KEY", "not-a-key")
        .script(&[actions(&[control("pause", "where?")])]);
    project.run().expect(11);
    let paused = project.run_dir();
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    let finished = project.run_dir();
    assert_ne!(paused, finished);
    let id = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (paused, finished) = (id(&paused), id(&finished));
    (project, paused, finished)
}

const COMMANDS: &[&[&str]] = &[
    &["show", "RUN"],
    &["show", "RUN", "--json"],
    &["logs", "RUN"],
    &["logs", "RUN", "--errors"],
    &["logs", "RUN", "-f"],
    &["attach", "RUN"],
    &["attach", "RUN", "--json"],
    &["resume", "RUN"],
    &["resume", "RUN", "--json"],
    &["audit", "RUN"],
    &["audit", "RUN", "--json"],
    &["replay", "RUN"],
    &["export", "RUN", "exported"],
    &["pause", "RUN"],
    &["rotate", "RUN"],
    &["stop", "RUN"],
    &["note", "RUN", "a note"],
    &[
        "guardrail",
        "RUN",
        "--name",
        "n",
        "--trigger",
        "t",
        "--instruction",
        "i",
    ],
    &["message", "RUN", "hello"],
    &["answer", "RUN", "yes"],
    &["mode", "RUN", "guided"],
    &["resume", "RUN", "--detach"],
    &["allow", "RUN", "a.example"],
    &["diagnose", "RUN"],
    &["diagnose", "RUN", "--apply"],
    &["debug", "RUN", "activity"],
    &["profile", "RUN", "strong-doctor"],
    &["task", "RUN"],
    &["run", "--new", "--model", "replay:RUN"],
];

#[test]
fn every_command_names_a_run_of_a_newer_ralph_and_leaves_it_alone() {
    let (project, paused, finished) = two_runs();
    let run = project.home().join("runs").join(&paused);
    let ours = fs::read(run.join("journal.jsonl")).unwrap();
    for left in [
        NewerJournal::Whole,
        NewerJournal::TakenOver,
        NewerJournal::Torn,
        NewerJournal::Event,
    ] {
        fs::write(run.join("journal.jsonl"), &ours).unwrap();
        fs::write(run.join("lock"), "").unwrap();
        rewrite(&run, left);
        let before = snapshot_directory(&run);
        let version = env!("CARGO_PKG_VERSION");
        let words = match left {
            NewerJournal::Whole | NewerJournal::TakenOver => format!(
                "run `{paused}` was written by ralph 9.1.0 (journal format 2), this is ralph {version} (format 1)"
            ),
            NewerJournal::Torn => format!(
                "run `{paused}` was written by a newer ralph (journal format 2), this is ralph {version} (format 1)"
            ),
            NewerJournal::Event => "has an unknown event `dreamt` at line".to_owned(),
        };
        for command in COMMANDS {
            let args: Vec<String> = command
                .iter()
                .map(|word| word.replace("RUN", &paused))
                .collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ended = project.ralph(&args).expect(1);
            let both = ended.combined();
            assert!(both.contains(&words), "{left:?} {command:?}: {both}");
            assert!(
                both.contains("upgrade ralph"),
                "{left:?} {command:?}: {both}"
            );
            assert!(!both.contains("damaged"), "{left:?} {command:?}: {both}");
            assert!(
                snapshot_directory(&run) == before,
                "{left:?} {command:?} changed the run"
            );
        }
        listed(&project, (&paused, &finished), &words);
        assert!(
            snapshot_directory(&run) == before,
            "{left:?}: listing changed the run"
        );
    }
}

/// Checks the output of `runs`, and that the other run is not affected.
fn listed(project: &Project, (newer, other): (&str, &str), words: &str) {
    let table = project.ralph(&["runs"]).expect(0).stdout;
    let row = table.lines().find(|line| line.starts_with(newer)).unwrap();
    assert!(
        row.contains("needs_upgrade") && row.contains("task"),
        "{table}"
    );
    let note = table
        .lines()
        .find(|line| line.starts_with("note: "))
        .unwrap();
    assert!(
        note.contains(words) && note.ends_with("upgrade ralph"),
        "{note}"
    );
    let json: Value =
        serde_json::from_str(&project.ralph(&["runs", "--json"]).expect(0).stdout).unwrap();
    let runs = json.as_array().unwrap();
    let found = runs.iter().find(|run| run["id"] == newer).unwrap();
    assert_eq!(found["status"], "needs_upgrade");
    assert_eq!(found["task_id"], "task");
    assert_eq!(found["branch"], "ralph/task/make-two-files");
    assert_eq!(found["updated_at"], Value::Null);
    assert!(found["reason"].as_str().unwrap().contains(words), "{found}");
    assert_eq!(
        runs.iter().find(|run| run["id"] == other).unwrap()["status"],
        "succeeded"
    );
    for command in ["show", "logs", "audit", "replay"] {
        project.ralph(&[command, other]).expect(0);
    }
    project
        .ralph(&["prune-sandboxes", "--type", "local", "--max-age", "0s"])
        .expect(0);
}

/// Converts the newest run to that of a version that recorded neither its version nor the files,
/// and had no seal.
fn make_older(run: &Path) {
    let path = run.join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut previous = Digest::compute(b"");
    let mut older = String::new();
    let mut number = 0;
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["event"]["type"] == "files_recorded" {
            continue;
        }
        number += 1;
        record["event"].as_object_mut().unwrap().remove("ralph");
        record["seq"] = json!(number);
        record["prev"] = json!(previous);
        let line = record.to_string();
        previous = Digest::compute(line.as_bytes());
        older.push_str(&line);
        older.push('\n');
    }
    fs::write(path, older).unwrap();
    fs::remove_file(run.join("journal.seal")).unwrap();
}

#[test]
fn a_run_of_an_older_ralph_is_audited_and_resumed() {
    let project = Project::new().script(&[actions(&[control("pause", "where?")]), finish()]);
    project.run().expect(11);
    make_older(&project.run_dir());
    let audited = project.ralph(&["audit", "last"]).expect(0).stdout;
    assert!(audited.contains("its files were not recorded"), "{audited}");
    project.ralph(&["resume", "last"]).expect(0);
    let audited = project.ralph(&["audit", "last"]).expect(0).stdout;
    assert!(audited.contains("PASS FIL"), "{audited}");
    make_older(&project.run_dir());
    project.audit();
}

#[test]
fn a_task_last_run_by_a_newer_ralph_is_restarted_only_on_request() {
    let project = Project::new().script(&[actions(&[control("pause", "where?")])]);
    project.run().expect(11);
    let run = project.run_dir();
    rewrite(&run, NewerJournal::TakenOver);
    let before = snapshot_directory(&run);
    for more in [&[][..], &["--resume"]] {
        let ended = project.run_with(more).expect(1);
        let words = "upgrade ralph, or start over with `ralph run --new`";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("was written by ralph 9.1.0"),
            "{}",
            ended.stderr
        );
    }
    project.run_with(&["--dry-run"]).expect(0);
    project.write_script(&[finish()]);
    project.run_with(&["--new"]).expect(0);
    // The branch of the other run is not reused.
    assert_eq!(project.show()["branch"], "ralph/task/make-two-files-v2");
    project.audit();
    assert!(
        snapshot_directory(&run) == before,
        "the newer run was changed"
    );
}
