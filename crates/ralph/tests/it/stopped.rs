//! Suspending the program (`SIGSTOP`, Ctrl-Z) uses up no budget and no timeout.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ralph_core::parse_value;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use crate::project::{LiveRun, Project, actions, finish};

/// Waits for the file `go` in the repository.
const WAIT: &str = "until [ -e go ]; do sleep 0.1; done; rm go";

fn records(project: &Project) -> Vec<Value> {
    let text = fs::read_to_string(project.run_dir().join("journal.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asserts that the journal reports a suspension of about this length, and does not count it.
#[track_caller]
fn assert_not_counted(project: &Project, whole: Duration, stop: Duration) {
    let records = records(project);
    let active = records.last().unwrap()["active_ms"].as_u64().unwrap();
    // The thread that samples the clock may have been slightly late.
    let most = whole.saturating_sub(stop) + Duration::from_secs(1);
    assert!(
        Duration::from_millis(active) <= most,
        "{active} ms of {whole:?}, of which {stop:?} were a stop"
    );
    let seconds = project
        .event_values("notice", "message")
        .into_iter()
        .find_map(|message| {
            let message = message.as_str()?.to_owned();
            let rest = message.strip_prefix("ralph was stopped for ")?;
            assert!(rest.ends_with(" s; this does not count as wall time"));
            parse_value::<u64>(rest.split(' ').next()?)
        });
    let seconds = seconds.expect("a notice about the stop");
    assert!(seconds + 1 >= stop.as_secs(), "{seconds} s of {stop:?}");
    assert!(seconds <= whole.as_secs(), "{seconds} s of {whole:?}");
}

#[test]
fn a_stop_ends_no_command_by_its_timeout() {
    let command = json!({"type": "run", "command": WAIT, "timeout_s": 10});
    let project = Project::new().script(&[actions(&[command]), finish()]);
    let begun = Instant::now();
    let live = project.start();
    live.wait_for_event("action_started", 1);
    live.signal(Signal::STOP);
    let stop = Duration::from_secs(13);
    sleep(stop);
    live.signal(Signal::CONT);
    // The command still runs when the program continues, after its timeout would have expired.
    sleep(Duration::from_millis(500));
    fs::write(project.sandbox().join("go"), "").unwrap();
    let ended = live.wait().expect(0);
    assert_eq!(project.results(1), ["ran 0"], "{}", ended.combined());
    assert!(
        ended.stdout.contains("ralph was stopped for"),
        "{}",
        ended.stdout
    );
    assert_not_counted(&project, begun.elapsed(), stop);
    project.audit();
}

#[test]
fn a_stop_longer_than_the_wall_time_uses_up_no_wall_time() {
    let mut slow = finish();
    slow["delay_ms"] = 2_000.into();
    let project = Project::new()
        .set("max_wall_time_minutes", "1")
        .script(&[slow]);
    let begun = Instant::now();
    // Like Ctrl-Z in a shell: all processes of the job.
    let child = project
        .command(&["run", "--model", &project.model()])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let group = Pid::from_child(&child);
    let live = LiveRun::new(&project, child);
    live.wait_for_event("model_asked", 1);
    kill_process_group(group, Signal::STOP).unwrap();
    let stop = Duration::from_secs(62);
    sleep(stop);
    kill_process_group(group, Signal::CONT).unwrap();
    live.wait().expect(0);
    assert_not_counted(&project, begun.elapsed(), stop);
    assert_eq!(project.show()["status"], "succeeded");
    project.audit();
}

#[test]
fn a_stopped_program_is_named_to_waiting_commands() {
    let project = Project::new().script(&[actions(&[crate::project::run(WAIT)]), finish()]);
    let live = project.start();
    live.wait_for_event("action_started", 1);
    let pid = live.pid();
    kill_process(pid, Signal::STOP).unwrap();
    let refused = project.ralph(&["resume", "last"]).expect(1);
    let number = pid.as_raw_pid();
    let why = format!(
        "it is not paused; process {number} works on it and is stopped; continue it with `kill -CONT {number}`"
    );
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    let silent = project.ralph(&["pause", "last"]).expect(1);
    let why = format!("process {number} works on it and is stopped");
    assert!(silent.stderr.contains(&why), "{}", silent.stderr);
    kill_process(pid, Signal::CONT).unwrap();
    // The pending command is processed.
    fs::write(project.sandbox().join("go"), "").unwrap();
    live.wait_for_status("paused");
    project.ralph(&["resume", "last"]).expect(0);
    live.wait().expect(0);
    project.audit();
}
