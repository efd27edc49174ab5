//! A server that is killed again and again at random moments while five runs work.
//!
//! `scripts/server-kills` kills it more often.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ralph_guest::best_effort;
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::fixture::RunningServer;
use super::random::Random;
use crate::crash_stage::{CrashStage, RunFacts};
use crate::script::{self, TASK};
use crate::support::count_from_env;

/// The number of runs that work at the same time.
const RUNS: usize = 5;
/// The longest life of a server before it is killed, in milliseconds.
const MAX_LIFE_MS: u64 = 3_000;
/// The longest delay of a model's reply, in milliseconds.
const MAX_DELAY_MS: u64 = 300;
/// Longer than five runs take on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(10);

#[test]
fn the_runs_of_a_killed_server_end_as_if_it_had_never_been_killed() {
    let kills = count_from_env("RALPH_SERVER_KILLS", 5);
    let mut random = Random::from_env("RALPH_SERVER_KILLS_SEED");
    let expected = Batch::new(&mut random).undisturbed();
    let mut killed = 0;
    while killed < kills {
        let batch = Batch::new(&mut random);
        killed += batch.kill_server(kills - killed, &mut random);
        batch.finish(&expected);
        println!(
            "{killed} of {kills} kills: {RUNS} runs ended as expected, {} pauses were resumed",
            batch.resumed.load(Ordering::Relaxed)
        );
    }
}

/// Five runs of five tasks in one repository, with a state directory of their own.
struct Batch {
    stage: CrashStage,
    api: ApiClient,
    /// How often a run was resumed that was paused after several crashes in a row.
    resumed: AtomicUsize,
}

impl Batch {
    fn new(random: &mut Random) -> Self {
        let stage = CrashStage::new();
        let [home, project] = stage.roots();
        for number in 0..RUNS {
            let mut replies = script::long_script();
            for reply in &mut replies {
                reply["delay_ms"] = json!(random.below(MAX_DELAY_MS));
            }
            let lines: Vec<String> = replies.iter().map(|line| format!("{line}\n")).collect();
            fs::write(project.join(script_name(number)), lines.concat()).unwrap();
            let task = TASK.replace("greet\"", &format!("greet-{number}\""));
            let task = task.replace("ralph/greet/", &format!("ralph/greet-{number}/"));
            fs::write(project.join(task_name(number)), task).unwrap();
        }
        Self {
            api: ApiClient::new(&home),
            stage,
            resumed: AtomicUsize::new(0),
        }
    }

    /// Works on the runs without a kill and returns their results.
    fn undisturbed(&self) -> Vec<RunFacts> {
        self.end();
        assert_eq!(self.resumed.load(Ordering::Relaxed), 0);
        self.facts()
    }

    /// Kills the server until all runs have ended, at most so many times. Returns the number of kills.
    #[expect(clippy::print_stdout, reason = "the script shows the progress")]
    fn kill_server(&self, most: usize, random: &mut Random) -> usize {
        for killed in 0..most {
            if self.unfinished() == 0 {
                return killed;
            }
            let life = Duration::from_millis(random.below(MAX_LIFE_MS));
            let mut server = self.spawn();
            let pid = server.id();
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| self.attend(pid, &is_over));
                thread::sleep(life);
                is_over.store(true, Ordering::Relaxed);
                let pid = rustix::process::Pid::from_child(&server);
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            });
            server.wait().unwrap();
            println!(
                "killed after {life:?} with {} unfinished runs",
                self.unfinished()
            );
        }
        most
    }

    /// Starts a server that is not waited for.
    fn spawn(&self) -> Child {
        let [home, _] = self.stage.roots();
        let log = File::create(home.join("server.stderr")).unwrap();
        let mut command = self.stage.command(&["serve", "--port", "0", "--json"]);
        command.env("RALPH_WORKERS", RUNS.to_string());
        let server = command.stdout(Stdio::null()).stderr(log).spawn();
        server.unwrap()
    }

    /// Does what a user does with a server: starts the missing runs, and resumes those that were paused
    /// because the server crashed several times during them.
    fn attend(&self, pid: u32, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            if self.api.record().is_some_and(|record| record["pid"] == pid) {
                // A killed server does not answer.
                best_effort(self.attend_once());
            }
        }
    }

    #[expect(clippy::print_stdout, reason = "the script shows the pauses")]
    fn attend_once(&self) -> std::io::Result<()> {
        for number in 0..RUNS {
            // The same key and body: a run whose response was lost is not started twice.
            let key = format!("run-{number}");
            let body = self.body(number);
            let response = self
                .api
                .try_send("POST", "/api/v1/runs", (&body, Some(&key)))?;
            assert!(matches!(response.status, 200 | 201 | 409), "{response:?}");
            let Some(run) = response.json()["id"].as_str().map(str::to_owned) else {
                continue;
            };
            let path = format!("/api/v1/runs/{run}");
            let details = self.api.try_send("GET", &path, (&Value::Null, None))?;
            assert_eq!(details.status, 200, "{details:?}");
            let details = details.json();
            if details["status"] == "paused" {
                let reason = details["reason"].as_str().unwrap();
                assert!(reason.contains("crashed"), "{details}");
                println!("paused: {reason}");
                let path = format!("{path}/resume");
                let resumed = self.api.try_send("POST", &path, (&Value::Null, None))?;
                assert!(matches!(resumed.status, 200 | 409), "{resumed:?}");
                self.resumed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn body(&self, number: usize) -> Value {
        let [_, project] = self.stage.roots();
        json!({
            "directory": project,
            "file": task_name(number),
            "model": format!("scripted:{}", script_name(number)),
            "sandbox": "local",
        })
    }

    /// Returns the number of runs that have not ended or not started.
    fn unfinished(&self) -> usize {
        let ended = self.runs().into_iter().filter(|run| {
            let status = self.api.last_status(run);
            matches!(&*status, "succeeded" | "failed" | "stopped")
        });
        RUNS - ended.count()
    }

    /// Returns the ids of all runs that were created.
    fn runs(&self) -> Vec<String> {
        let [home, _] = self.stage.roots();
        let runs = fs::read_dir(home.join("runs")).into_iter().flatten();
        runs.map(|entry| entry.unwrap().path())
            .filter(|path| path.join("journal.jsonl").exists())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    /// Lets a last server work until all runs have ended, and ends it with a signal.
    fn end(&self) {
        let mut command = self.stage.command(&["serve", "--port", "0", "--json"]);
        command.env("RALPH_WORKERS", RUNS.to_string());
        let server = RunningServer::start(command);
        let start = Instant::now();
        while self.unfinished() > 0 {
            self.attend_once().unwrap();
            assert!(start.elapsed() < WAIT_TIMEOUT, "{}", self.statuses());
            thread::sleep(Duration::from_millis(50));
        }
        let ended = server.end_with(rustix::process::Signal::TERM);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    /// Works on the runs to their end, and compares them with those of an undisturbed batch.
    fn finish(&self, expected: &[RunFacts]) {
        self.end();
        let runs = self.runs();
        assert_eq!(runs.len(), RUNS, "no run was started twice: {runs:?}");
        for run in &runs {
            let audit = self.stage.run(&["audit", run]);
            assert_eq!(audit.code, 0, "{run}: {audit:?}");
        }
        for (facts, expected) in self.facts().iter().zip(expected) {
            assert_eq!(facts, expected);
        }
    }

    fn facts(&self) -> Vec<RunFacts> {
        let mut facts = Vec::new();
        for run in self.runs() {
            let dir = self.stage.run_dir(&run);
            let plan = dir.state().unwrap().plan;
            facts.push((
                plan.task_id.to_string(),
                self.stage
                    .facts_of(&dir, &plan.branch)
                    .with_any_pull_number(),
            ));
        }
        facts.sort_by(|one, other| one.0.cmp(&other.0));
        facts.into_iter().map(|(_, facts)| facts).collect()
    }

    fn statuses(&self) -> String {
        let runs = self.runs().into_iter();
        let statuses = runs.map(|run| format!("{run} {}", self.api.last_status(&run)));
        statuses.collect::<Vec<String>>().join(", ")
    }
}

fn task_name(number: usize) -> String {
    format!("task-{number}.md")
}

fn script_name(number: usize) -> String {
    format!("replies-{number}.jsonl")
}
