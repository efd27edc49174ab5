//! Processes left behind by a run, as reported by `ralph audit`.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ralph_core::event::RunEvent;
use ralph_core::id::RunId;
use ralph_core::run::RunStatus;
use ralph_core::secret::Redactor;
use ralph_engine::journal::Journal;
use ralph_engine::store::StateDir;
use ralph_guest::{available, best_effort};
use rustix::process::{Pid, Signal};

use crate::project::{Project, actions, run};
use crate::support::fixed_clock;

/// A system process that is killed with the test.
struct LeftProcess(u32);

impl Drop for LeftProcess {
    fn drop(&mut self) {
        if let Some(pid) = available(i32::try_from(self.0)).and_then(Pid::from_raw) {
            best_effort(rustix::process::kill_process(pid, Signal::KILL));
        }
    }
}

/// Starts a run whose command leaves a process behind that ralph can no longer kill: ralph itself
/// is killed. Returns the process, which wrote its pid into a file of the project.
fn leave_process(project: &Project, command: &str) -> LeftProcess {
    let file = project.path("pid");
    let command = command.replace("PID", &file.display().to_string());
    project.write_script(&[actions(&[run(&command)])]);
    let live = project.start();
    let start = Instant::now();
    let pid = loop {
        // The file is there a moment after the start.
        let text = available(fs::read_to_string(&file)).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            break pid;
        }
        assert!(
            start.elapsed() < Duration::from_mins(5),
            "the command does not start"
        );
        std::thread::sleep(Duration::from_millis(20));
    };
    live.signal(Signal::KILL);
    live.wait();
    LeftProcess(pid)
}

/// Ends the run without killing its processes.
fn end_run(project: &Project) {
    let state = StateDir::open(project.home()).unwrap();
    let run = project.run_dir();
    let id = RunId::parse(run.file_name().unwrap().to_str().unwrap()).unwrap();
    let clock = fixed_clock();
    let mut journal = Journal::open(&state.run(&id), clock, Redactor::default()).unwrap();
    let status = RunStatus::Stopped;
    journal.append(RunEvent::StatusChanged { status }).unwrap();
}

/// An unrelated process of some other sandbox.
struct ForeignProcess(Child);

impl ForeignProcess {
    fn start() -> Self {
        let mut sleep = Command::new("sleep");
        let sleep = sleep.arg("60").env("RALPH_SANDBOX", "0123456789ab");
        Self(sleep.spawn().unwrap())
    }
}

impl Drop for ForeignProcess {
    fn drop(&mut self) {
        best_effort(self.0.kill());
        best_effort(self.0.wait());
    }
}

#[test]
fn a_process_that_was_left_is_named_until_it_ends() {
    for command in [
        "echo $$ > PID; exec sleep 60",
        "setsid sh -c 'echo $$ > PID; exec sleep 60'",
        // The environment is empty, but the mark remains.
        "env -i /bin/sh -c 'echo $$ > PID; exec /bin/sleep 60'",
    ] {
        let project = Project::new();
        let left = leave_process(&project, command);
        let foreign = ForeignProcess::start();
        // Not killed by the audit: resuming kills the process.
        project.audit();
        end_run(&project);
        let ended = project.ralph(&["audit", "last"]).expect(1);
        let sandbox = project.events("sandbox_created")[0]["sandbox"].clone();
        let named = format!(
            "process {} of sandbox `{}` is still running",
            left.0,
            sandbox.as_str().unwrap()
        );
        assert!(ended.stdout.contains(&named), "{command}: {}", ended.stdout);
        let failed = ended.stdout.lines().filter(|line| line.starts_with("FAIL"));
        assert_eq!(failed.count(), 1, "{command}: {}", ended.stdout);
        let other = format!("process {} ", foreign.0.id());
        assert!(!ended.stdout.contains(&other), "{}", ended.stdout);
        let pid = left.0;
        drop(left);
        let start = Instant::now();
        while fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| !bytes.is_empty()) {
            assert!(
                start.elapsed() < Duration::from_mins(5),
                "the process does not end"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        project.audit();
    }
}

#[test]
fn stopping_an_interrupted_run_ends_its_processes() {
    let project = Project::new();
    let left = leave_process(&project, "setsid sh -c 'echo $$ > PID; exec sleep 60'");
    project.ralph(&["stop", "last"]).expect(0);
    project.audit();
    let environ = fs::read(format!("/proc/{}/environ", left.0));
    assert!(
        // A process that has ended but was not waited for has an empty environment.
        environ.map_or(true, |variables| variables.is_empty()),
        "the process is still there"
    );
}
