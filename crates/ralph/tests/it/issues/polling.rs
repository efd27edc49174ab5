use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};
use crate::project::LiveRun;

#[test]
fn polling_works_on_issues_in_the_order_of_their_dependencies() {
    let test = IssueTest::new(DILIGENT);
    let last = test.ready(&TWO_STEPS.replace("feat/files", "feat/last\ndepends: [2]"));
    let first = test.ready(TWO_STEPS);
    assert_eq!((last, first), (1, 2));
    let live = test
        .remote
        .project
        .spawn(&["poll", "--interval", "1s", "--json"]);
    test.wait_until("both issues are done", |app| {
        [last, first].iter().all(|number| {
            app.issue(*number)
                .labels
                .contains(&"status:done".to_owned())
        })
    });
    live.signal(rustix::process::Signal::INT);
    let output = live.wait().expect(0);
    let events: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ended: Vec<(u64, &str)> = events
        .iter()
        .filter(|event| event["event"] == "issue_ended")
        .map(|event| {
            (
                event["issue"].as_u64().unwrap(),
                event["result"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(ended, [(last, "blocked"), (first, "done"), (last, "done")]);
    let waiting = events
        .iter()
        .any(|event| event["waiting"][0]["on"] == serde_json::json!([first]));
    assert!(waiting, "{}", output.stdout);
}

#[test]
fn polling_shows_what_it_watches_and_what_waits() {
    let test = IssueTest::new(DILIGENT);
    test.ready(&TWO_STEPS.replace("feat/files", "feat/files\ndepends: [99]"));
    let live = test.remote.project.spawn(&["poll", "--interval", "1s"]);
    test.wait_until("the issue is blocked", |app| {
        app.issue(1).labels.contains(&"status:blocked".to_owned())
    });
    let github = &test.remote.github;
    let before = github.requests().len();
    let is_look =
        |line: &&String| line.starts_with("GET /repos/octo/app/issues?") && line.contains("ready");
    // The one before the last is complete.
    let start = Instant::now();
    while github.requests()[before..].iter().filter(is_look).count() < 3 {
        assert!(start.elapsed() < Duration::from_mins(5), "no further looks");
        std::thread::sleep(Duration::from_millis(20));
    }
    live.signal(rustix::process::Signal::INT);
    let output = live.wait().expect(0).stdout;
    for line in [
        "ralph: watching octo/app for issues with `status:ready` by octocat, every 1 s\n",
        "ralph: issue #1 is blocked: waits for #99; #99 does not exist\n",
        "ralph: no ready issues; #1 waits for #99; #99 does not exist; next look in 1 s\n",
        "ralph: poll interrupted\n",
    ] {
        assert!(output.contains(line), "{line}{output}");
    }
    let comments = test.comments(1);
    assert!(
        comments[0].contains("has no issue #99: correct `depends`"),
        "{comments:?}"
    );
}

/// Two machines poll the same repository: each issue is worked on once.
#[test]
fn two_machines_share_the_issues() {
    let test = IssueTest::new(DILIGENT);
    let numbers: Vec<u64> = (1..=3)
        .map(|at| test.ready(&TWO_STEPS.replace("feat/files", &format!("feat/files-{at}"))))
        .collect();
    let project = &test.remote.project;
    // The output goes to files, because it is longer than a pipe.
    let machines = ["first", "second"].map(|name| {
        let mut command = project.command(&["poll", "--interval", "1s", "--json"]);
        command.env("RALPH_HOME", project.path(name));
        command.stdout(File::create(project.path(&format!("{name}.log"))).unwrap());
        LiveRun::new(project, command.stderr(Stdio::null()).spawn().unwrap())
    });
    test.wait_until("all issues are done", |app| {
        let is_done = |number: &u64| app.issue(*number).labels == ["spec", "status:done"];
        numbers.iter().all(is_done)
    });
    for mut machine in machines {
        machine.signal(rustix::process::Signal::INT);
        let start = Instant::now();
        while machine.is_alive() {
            assert!(
                start.elapsed() < Duration::from_mins(5),
                "polling does not end"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let outputs = ["first", "second"]
        .map(|name| fs::read_to_string(project.path(&format!("{name}.log"))).unwrap());
    let events = outputs.iter().flat_map(|output| output.lines());
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut started: Vec<u64> = events
        .filter(|event| event["event"] == "started")
        .map(|event| event["issue"].as_u64().unwrap())
        .collect();
    started.sort_unstable();
    assert_eq!(started, numbers);
    assert_eq!(test.remote.github.with_app(|app| app.pulls().len()), 3);
    for number in numbers {
        assert_eq!(test.comments(number).len(), 1);
    }
}
