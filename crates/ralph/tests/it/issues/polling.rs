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
