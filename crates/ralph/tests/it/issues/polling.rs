use std::process::Stdio;

use serde_json::Value;

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};

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

/// Two machines poll the same repository: each issue is worked on once.
#[test]
fn two_machines_share_the_issues() {
    let test = IssueTest::new(DILIGENT);
    let numbers: Vec<u64> = (1..=4)
        .map(|at| test.ready(&TWO_STEPS.replace("feat/files", &format!("feat/files-{at}"))))
        .collect();
    let project = &test.remote.project;
    let poll = ["poll", "--interval", "1s", "--workers", "2", "--json"];
    let mut second = project.command(&poll);
    second.env("RALPH_HOME", project.path("second"));
    second.stdout(Stdio::piped()).stderr(Stdio::piped());
    let first = project.spawn(&poll);
    let second = second.spawn().unwrap();
    test.wait_until("all issues are done", |app| {
        let is_done = |number: &u64| app.issue(*number).labels == ["spec", "status:done"];
        numbers.iter().all(is_done)
    });
    let pid = rustix::process::Pid::from_raw(second.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    first.signal(rustix::process::Signal::INT);
    let outputs = [
        first.wait().expect(0).stdout,
        String::from_utf8(second.wait_with_output().unwrap().stdout).unwrap(),
    ];
    let events = outputs.iter().flat_map(|output| output.lines());
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut started: Vec<u64> = events
        .filter(|event| event["event"] == "started")
        .map(|event| event["issue"].as_u64().unwrap())
        .collect();
    started.sort_unstable();
    assert_eq!(started, numbers);
    assert_eq!(test.remote.github.with_app(|app| app.pulls().len()), 4);
    for number in numbers {
        assert_eq!(test.comments(number).len(), 1);
    }
}
