//! Stale sandboxes on a Docker Engine.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ralph_core::event::{Event, SandboxEvent, SandboxPurpose};
use ralph_core::ports::SandboxId;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_engine::journal::Journal;
use ralph_test::{BASE_IMAGE, skip_without_docker};
use serde_json::{Value, json};

use super::private_engine::CareEngine;
use crate::support::{RalphOutput, TestRalph, status, succeeded, working};

const ENDED: &str = "260301-100000-0001";
const WAITING: &str = "260301-100000-0002";
const HELD: &str = "260301-100000-0003";
const GONE: &str = "260301-100000-0004";

/// A Docker Engine with all kinds of sandboxes, and the runs of some of them.
struct PruneScenario {
    engine: CareEngine,
    ralph: TestRalph,
    /// The owner label of a process that has ended.
    dead_owner: String,
    /// The sandbox of a killed selftest.
    selftest: String,
    _held: Journal,
}

impl PruneScenario {
    fn new() -> Self {
        let engine = CareEngine::start();
        let ralph = TestRalph::new();
        let settings = format!("[sandbox]\nimage = \"{BASE_IMAGE}\"\n");
        fs::write(ralph.project().join("ralph.toml"), settings).unwrap();
        let (selftest, dead_owner) = killed_selftest(&engine, &ralph);
        ralph.create_run(ENDED, "ended", succeeded());
        let paused = status(RunStatus::Paused(PauseReason::Person));
        let mut waiting = working();
        waiting.extend([work("docker-000000000002"), paused]);
        ralph.create_run(WAITING, "waiting", waiting);
        let held = ralph.held_run(HELD, "held", working());
        let ground = Self {
            engine,
            ralph,
            dead_owner,
            selftest,
            _held: held,
        };
        ground.engine.start_foreign();
        ground.create_sandboxes();
        ground
    }

    fn create_sandboxes(&self) {
        let root = self.ralph.state().root().to_owned();
        let other = self.ralph.project();
        let missing = Path::new("/nonexistent/ralph");
        for (number, run, state) in [
            (1, ENDED, root.as_path()),
            (2, WAITING, &root),
            (3, HELD, &root),
            (4, GONE, &root),
            (5, GONE, other),
            (6, GONE, missing),
            // Created but not recorded when its process was killed.
            (7, WAITING, &root),
        ] {
            self.create_sandbox(number, run, state, &self.dead_owner);
        }
        // From another machine on the same Docker Engine, with a directory of the same name.
        let elsewhere = self.dead_owner.replace(r#""machine":""#, r#""machine":"x"#);
        assert_ne!(elsewhere, self.dead_owner);
        self.create_sandbox(8, GONE, &root, &elsewhere);
        self.create_sandbox(9, GONE, missing, &elsewhere);
    }

    /// Creates a sandbox as another process would have left it: a volume and a running container.
    fn create_sandbox(&self, number: u32, run: &str, state: &Path, owner: &str) {
        let object = format!("ralph-{number:012}");
        let labels = [
            format!("ralph.sandbox=docker-{number:012}"),
            format!("ralph.state={}", state.display()),
            format!("ralph.owner={owner}"),
            "ralph.env={}".to_owned(),
            format!("ralph.label.run={run}"),
        ];
        let labels: Vec<&str> = labels.iter().flat_map(|l| ["--label", l]).collect();
        let volume = [&["volume", "create"], &labels[..], &[&object]].concat();
        self.engine.docker(&volume);
        let mount = format!("{object}:/workspace");
        let run = ["run", "--detach", "--init", "--network", "none", "--name"];
        let rest = ["--volume", &mount, BASE_IMAGE, "sleep", "3600"];
        let container = [&run[..], &[&object], &labels, &rest].concat();
        self.engine.docker(&container);
    }

    /// Creates the guest volumes of another build.
    fn create_guest_volume(&self, name: &str) {
        let label = format!("ralph.guest={name}");
        for volume in [name, &format!("{name}-filled")] {
            self.engine
                .docker(&["volume", "create", "--label", &label, volume]);
        }
    }

    fn prune(&self, more: &[&str]) -> RalphOutput {
        let args = [&["prune-sandboxes"], more].concat();
        let mut command = self.ralph.command(&args);
        let output = command.env("DOCKER_HOST", self.engine.host()).output();
        RalphOutput::from(output.unwrap())
    }

    fn prune_json(&self, more: &[&str]) -> Value {
        let output = self.prune(&[more, &["--json"]].concat());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }
}

fn work(id: &str) -> Event {
    Event::Sandbox(SandboxEvent::SandboxCreated {
        sandbox: SandboxId(id.into()),
        purpose: SandboxPurpose::Work,
    })
}

/// Kills a running selftest, and returns its sandbox and owner label.
fn killed_selftest(engine: &CareEngine, ralph: &TestRalph) -> (String, String) {
    let mut child = ralph
        .command(&["selftest", "--offline"])
        .env("DOCKER_HOST", engine.host())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let volume = loop {
        let elapsed = began.elapsed();
        assert!(
            elapsed < Duration::from_mins(5),
            "no container of the selftest after {elapsed:?}"
        );
        let filter = "label=ralph.label.purpose=selftest";
        let running = engine.docker(&["ps", "--format", "{{.Names}}", "--filter", filter]);
        if !running.is_empty() {
            break running;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let format = r#"{{index .Labels "ralph.owner"}}"#;
    let owner = engine.docker(&["volume", "inspect", "--format", format, &volume]);
    (volume.replace("ralph-", "docker-"), owner)
}

/// Returns ids and reasons, sorted.
fn reported(report: &Value, list: &str) -> Vec<(String, String)> {
    let entries = report[list].as_array().unwrap().iter();
    let mut reasons: Vec<(String, String)> = entries
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap().to_owned();
            (text("id"), text("why"))
        })
        .collect();
    reasons.sort();
    reasons
}

fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = pairs
        .into_iter()
        .map(|(id, why)| (id.to_owned(), why.to_owned()))
        .collect();
    pairs.sort();
    pairs
}

/// Returns the line that reports a removed sandbox.
fn line(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let run = match text("run") {
        run if run.is_empty() => run,
        run => format!(" of run {run}"),
    };
    format!("removed {}{run} — {}", text("id"), text("why"))
}

/// Returns the volumes of the sandboxes with these numbers, and the foreign one.
fn volumes(numbers: &[u32]) -> Vec<String> {
    let names = numbers.iter().map(|number| format!("ralph-{number:012}"));
    let foreign = "ralph-0123456789ab-lookalike".to_owned();
    names.chain([foreign]).collect()
}

const STALE: [(&str, &str); 2] = [
    ("docker-000000000001", "its run has ended"),
    ("docker-000000000007", "its run continues without it"),
];

const ORPHANED: [(&str, &str); 2] = [
    (
        "docker-000000000004",
        "the directory of its run is gone, and it may contain the last copy of the work",
    ),
    (
        "docker-000000000006",
        "its state directory is gone, and it may contain the last copy of a run's work",
    ),
];

const KEPT: [(&str, &str); 5] = [
    ("docker-000000000002", "its run can be resumed"),
    ("docker-000000000003", "a process works on its run"),
    (
        "docker-000000000005",
        "it belongs to another state directory",
    ),
    (
        "docker-000000000008",
        "the process that created it may still use it",
    ),
    (
        "docker-000000000009",
        "the process that created it may still use it",
    ),
];

#[test]
fn stale_sandboxes_are_reported_and_then_removed() {
    if skip_without_docker() {
        return;
    }
    let ground = PruneScenario::new();
    let program = "ralph-guest-0000000000000000";
    ground.create_guest_volume(program);
    let all = (ground.engine.containers(), ground.engine.volumes());

    let dry = ground.prune_json(&["--dry-run"]);
    let nobodys = "it belongs to no run, and no process uses it";
    let stale = pairs(
        [(ground.selftest.as_str(), nobodys)]
            .into_iter()
            .chain(STALE),
    );
    assert_eq!(reported(&dry, "removed"), stale);
    assert_eq!(reported(&dry, "kept"), pairs(KEPT));
    assert_eq!(reported(&dry, "orphaned"), pairs(ORPHANED));
    assert_eq!(
        (&dry["dry_run"], &dry["failed"]),
        (&json!(true), &json!([]))
    );
    assert_eq!((ground.engine.containers(), ground.engine.volumes()), all);

    let output = ground.prune(&["--type", "docker"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let removed = dry["removed"].as_array().unwrap();
    let expected: Vec<String> = removed.iter().map(line).collect();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[..expected.len()], expected);
    assert_eq!(ground.engine.volumes(), volumes(&[2, 3, 4, 5, 6, 8, 9]));
    assert_eq!(ground.engine.containers().len(), 8);
    // Another ralph process may be about to use it.
    let programs = ["volume", "ls", "--quiet", "--filter", "label=ralph.guest"];
    assert!(ground.engine.docker(&programs).contains(program));

    let orphans = ground.prune_json(&["--orphaned"]);
    let gone = [
        ("docker-000000000004", "its run no longer exists"),
        (
            "docker-000000000006",
            "its state directory no longer exists",
        ),
    ];
    assert_eq!(reported(&orphans, "removed"), pairs(gone));
    assert_eq!(ground.engine.volumes(), volumes(&[2, 3, 5, 8, 9]));

    let again = ground.prune(&[]);
    let expected = (0, "ralph: no stale sandboxes found\n");
    assert_eq!((again.code, again.stdout.as_str()), expected);
    let old = ground.prune_json(&["--max-age", "1d"]);
    let why = "its run has not been resumed for too long";
    let waiting = pairs([("docker-000000000002", why)]);
    assert_eq!(reported(&old, "removed"), waiting);
    assert_eq!(ground.engine.volumes(), volumes(&[3, 5, 8, 9]));
}
