//! Which processes are killed, and which are not.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ralph_core::ports::{Exec, ExecStatus, SandboxId, SandboxProvider as _, WriteMode};
use rustix::process::{Pid, Signal, kill_process};

use super::fixture::{LocalTestEnv, TEST_TIMEOUT, provider_at, repo, run, sh};
use super::own_process::runs_in_own_process;

const SHORT: Duration = Duration::from_secs(2);

/// Returns a command line that leaves a process behind with an empty environment, in another
/// session, in another directory, without a parent and without a pipe. It writes into `beat`.
fn runaway(beat: &Path) -> String {
    let beat = beat.display();
    format!(
        r#"env -i "$(command -v setsid)" "$(command -v sh)" -c 'cd /; PATH=/usr/bin:/bin; trap "" TERM HUP
            (while :; do echo . >> {beat}; sleep 0.02; done) </dev/null >/dev/null 2>&1 & echo $! > {beat}.pid' &
        while ! [ -f {beat} ] || ! [ -s {beat}.pid ]; do sleep 0.01; done"#
    )
}

fn heartbeat_count(beat: &Path) -> u64 {
    fs::metadata(beat).unwrap().len()
}

async fn has_stopped(beat: &Path) -> bool {
    let before = heartbeat_count(beat);
    tokio::time::sleep(Duration::from_millis(300)).await;
    heartbeat_count(beat) == before
}

#[tokio::test]
async fn a_runaway_is_ended_at_the_timeout() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let beat = env.outside("beat");
    let line = format!("{}; sleep 60", runaway(&beat));
    let (outcome, _) = run(&*sandbox, Exec::shell(line, SHORT)).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    assert!(has_stopped(&beat).await);
}

#[tokio::test]
async fn a_runaway_belongs_to_its_own_command() {
    let env = LocalTestEnv::new();
    let (one, other) = (env.sandbox().await, env.sandbox().await);
    let (one_beat, other_beat) = (env.outside("one"), env.outside("other"));
    let long = format!(
        "{}; while ! [ -f stop ]; do sleep 0.05; done",
        runaway(&one_beat)
    );
    let short = async {
        while !one_beat.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        sh(&*other, &runaway(&other_beat)).await;
        let seen = (has_stopped(&other_beat).await, has_stopped(&one_beat).await);
        one.write(&repo("stop"), b"", WriteMode::Replace)
            .await
            .unwrap();
        seen
    };
    let (_, seen) = tokio::join!(sh(&*one, &long), short);
    assert_eq!(seen, (true, false), "(ended, still runs)");
    assert!(has_stopped(&one_beat).await);
}

#[tokio::test]
async fn a_daemon_of_this_process_itself_is_left_alone() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let beat = env.outside("beat");
    let host = Command::new("sh")
        .args(["-c", &runaway(&beat)])
        .status()
        .unwrap();
    assert!(host.success());
    sh(&*sandbox, "(setsid sleep 60 &); true").await;
    assert!(!has_stopped(&beat).await);
    let pid = fs::read_to_string(env.outside("beat.pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_crowd_that_restarts_itself_is_ended() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let beat = env.outside("beat");
    let line = format!(
        r#"again='trap "" TERM; while :; do setsid sh -c "echo . >> {beat}; sleep 0.05"; done'
        i=0; while [ $i -lt 40 ]; do setsid sh -c "$again" & i=$((i+1)); done; wait"#,
        beat = beat.display()
    );
    let (outcome, _) = run(&*sandbox, Exec::shell(line, SHORT)).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    assert!(has_stopped(&beat).await);
}

/// The sandbox directory of the process that is killed.
const LEFT_BEHIND: &str = "RALPH_TEST_LEFT_BEHIND";

#[tokio::test]
async fn processes_of_a_killed_ralph_are_ended() {
    let test = "sandbox_local::processes::processes_of_a_killed_ralph_are_ended";
    if let Some(directory) = std::env::var_os(LEFT_BEHIND) {
        let directory = Path::new(&directory);
        let sandbox = provider_at(directory.join("sandboxes"))
            .create(&ralph_core::ports::SandboxSpec::default())
            .await
            .unwrap();
        let beat = directory.join("beat");
        let line = format!(
            "{}; touch {}.ready; sleep 60",
            runaway(&beat),
            beat.display()
        );
        let killing = async {
            while !beat.with_extension("ready").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
        };
        tokio::join!(sh(&*sandbox, &line), killing);
        unreachable!("this process has killed itself");
    }
    if !runs_in_own_process(test) {
        return;
    }
    let env = LocalTestEnv::new();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(LEFT_BEHIND, env.outside(""))
        .output()
        .unwrap()
        .status;
    assert!(!status.success());
    let beat = env.outside("beat");
    assert!(!has_stopped(&beat).await);
    let ids: Vec<SandboxId> = env
        .provider
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|info| info.id)
        .collect();
    assert_eq!(ids.len(), 1);
    let sandbox = env.provider.attach(&ids[0]).await.unwrap().unwrap();
    assert!(has_stopped(&beat).await);
    assert_eq!(sh(&*sandbox, "echo usable").await, "usable\n");
}

#[tokio::test]
async fn removing_ends_running_commands() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let beat = env.outside("beat");
    let line = format!("{}; sleep 60", runaway(&beat));
    let removing = async {
        while !beat.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        sandbox.remove().await.unwrap();
    };
    let ((outcome, _), ()) =
        tokio::join!(run(&*sandbox, Exec::shell(line, TEST_TIMEOUT)), removing);
    assert_eq!(outcome.ended, ExecStatus::Signalled(9));
    assert!(has_stopped(&beat).await);
    assert!(!env.root().join(&sandbox.id().0).exists());
}

#[tokio::test]
async fn orphans_are_reaped_while_a_command_runs() {
    if !runs_in_own_process("sandbox_local::processes::orphans_are_reaped_while_a_command_runs") {
        return;
    }
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let line = "i=0; while [ $i -lt 50 ]; do (sh -c true &); i=$((i+1)); done; sleep 6
        ps -o stat= --ppid $PPID | grep -c Z; true";
    assert_eq!(sh(&*sandbox, line).await, "0\n");
}
