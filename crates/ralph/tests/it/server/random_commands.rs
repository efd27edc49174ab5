//! Random commands to the runs of a server that is killed now and then.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::api_client::ApiClient;
use super::random::Random;
use super::tasks::{audit, request, serve, write_task};
use crate::project::{Project, actions, finish, run, write};
use crate::support::count_from_env;

/// The commands, and how often each is chosen.
const COMMANDS: [&str; 10] = [
    "pause", "pause", "pause", "resume", "resume", "resume", "rotate", "rotate", "stop", "kill",
];

/// The audit rejects a journal with an illegal transition.
#[test]
fn random_commands_and_kills_lead_to_legal_transitions_only() {
    let steps = count_from_env("RALPH_RANDOM_COMMANDS", 40);
    let mut random = Random::from_env("RALPH_RANDOM_COMMANDS_SEED");
    let project = Project::new().set("max_iterations", "40");
    let api = ApiClient::new(&project.home());
    let mut server = serve(&project, "2");
    let mut runs = Vec::new();
    for number in 0..3 {
        let name = format!("random-{number}");
        write_task(&project, &name, "test -s base.txt");
        let work = |part: usize| {
            let file = write(&format!("part-{part}.txt"), "text\n");
            let mut line = actions(&[file, run("sleep 0.2")]);
            line["delay_ms"] = json!(200);
            line
        };
        let mut script: Vec<Value> = (0..20).map(work).collect();
        script.push(finish());
        runs.push(api.start_run(&request(&project, &format!("{name}.md"), &script)));
    }
    for _ in 0..steps {
        let run = &runs[random.index(runs.len())];
        match COMMANDS[random.index(COMMANDS.len())] {
            "kill" => {
                server.end_with(Signal::KILL);
                server = serve(&project, "2");
            }
            command => {
                let path = format!("/api/v1/runs/{run}/{command}");
                let response = api.try_send("POST", &path, (&Value::Null, None)).unwrap();
                assert!(matches!(response.status, 200 | 409), "{path}: {response:?}");
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(random.below(300)));
    }
    assert_eq!(server.end_with(Signal::TERM).code, Some(0));
    for run in &runs {
        audit(&project, run);
    }
}
