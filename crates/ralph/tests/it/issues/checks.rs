//! From the first label of an issue to the last, with checks on GitHub that fail first.

use std::time::{Duration, Instant};

use ralph_test::{FakeCheck, FakeIssue};
use serde_json::Value;

use super::fixture::{DILIGENT, IssueTest, TWO_STEPS};
use crate::project::{LiveRun, actions, claiming, commit, run, write};
use crate::remote::{assert_no_token_in, token};
use crate::server::fixture::RunningServer;

/// Repairs what the log of a failed job names, and otherwise works on the steps.
const REPAIRING: &str = r"
cat >/dev/null
if grep -q E-4711 .ralph/errors.log; then
  echo repaired >2.txt
  git add 2.txt
  git -c user.name=a -c user.email=a@localhost commit --quiet --message 'Repair 2.txt'
  exit 0
fi
";

const LOG: &str = "compiling\nlint: E-4711: `2.txt` has no final word\n";

fn checked(script: &str) -> IssueTest {
    let test = IssueTest::new(script);
    let ci = "[ci]\nrequired = true\ninterval = \"1s\"\ngrace = \"30s\"\ntimeout = \"1h\"\n";
    test.remote.project.configure("ralph.toml", ci);
    test
}

/// Returns the commit whose checks a run waits for.
fn awaited_commit(journal: &[Value]) -> Option<&str> {
    let last = journal
        .iter()
        .rfind(|event| event["type"] == "status_changed")?;
    last["reason"]["commit"]
        .as_str()
        .filter(|_| last["status"] == "waiting_ci")
}

/// Waits until a run waits for the checks of another commit than `before`, and returns it.
#[track_caller]
fn wait_for_checks(live: &LiveRun<'_>, test: &IssueTest, before: Option<&str>) -> String {
    live.wait_until("it waits for checks", |journal| {
        let commit = awaited_commit(journal);
        commit.is_some() && commit != before
    });
    let journal = test.remote.project.journal();
    awaited_commit(&journal).unwrap().to_owned()
}

fn pull(test: &IssueTest) -> FakeIssue {
    let pulls = test.remote.github.with_app(|app| app.pulls());
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    pulls.into_iter().next().unwrap()
}

fn pass(test: &IssueTest, commit: &str) {
    let passed = FakeCheck::completed("lint", "success");
    test.remote
        .github
        .with_app(|app| app.set_check(commit, passed));
}

/// Works on an issue whose checks fail once.
fn assert_repaired(test: &IssueTest, arguments: &[&str]) {
    let number = test.ready(TWO_STEPS);
    let issue = number.to_string();
    let project = &test.remote.project;
    let live = project.spawn(&[&["issue", &issue], arguments].concat());
    let red = wait_for_checks(&live, test, None);
    assert_eq!(test.remote.branch("feat/files").as_ref(), Some(&red));
    assert_eq!(test.status(number), "status:in-progress");
    assert!(pull(test).pull.unwrap().is_draft);
    test.remote.github.with_app(|app| {
        app.set_check(&red, FakeCheck::completed("build", "success"));
        app.set_check(&red, FakeCheck::completed("lint", "failure").with_log(LOG));
    });
    let fixed = wait_for_checks(&live, test, Some(&red));
    assert!(project.file("errors.log").contains("E-4711"));
    assert!(pull(test).pull.unwrap().is_draft);
    pass(test, &fixed);
    let output = live.wait().expect(0);
    assert!(
        output.stdout.contains(&format!("issue #{number} is done")),
        "{}",
        output.stdout
    );
    let iterations = project.events("iteration_started").len();
    let prompt = project.prompt(u32::try_from(iterations).unwrap());
    assert!(prompt.contains("check `lint` failed"), "{prompt}");
    let pull = pull(test);
    assert!(
        pull.body.contains(&format!("Closes #{number}")),
        "{}",
        pull.body
    );
    let facts = pull.pull.unwrap();
    for commit in [&red, &fixed] {
        let statuses = test
            .remote
            .github
            .with_app(|app| app.statuses.get(commit).cloned());
        let verified = statuses.into_iter().flatten().any(|status| {
            (status.context.as_str(), status.state.as_str()) == ("ralph/clean-room", "success")
        });
        assert!(verified, "{commit}");
    }
    assert!(!facts.is_draft && pull.is_open);
    assert_eq!(
        (facts.head.as_str(), facts.base.as_str()),
        ("feat/files", "main")
    );
    assert_eq!(test.remote.branch("feat/files").as_ref(), Some(&fixed));
    assert_eq!(test.status(number), "status:done");
    let body = test.body(number);
    assert_eq!(body.matches(" [done]\n").count(), 2, "{body}");
    assert_eq!(test.comments(number).len(), 1);
    assert_eq!(project.git(&["branch", "--list", "feat/*"]), "");
    project.audit();
    for directory in [&project.home(), &project.repo(), test.remote.hosted.path()] {
        assert_no_token_in(directory, &token());
    }
}

#[test]
fn an_agent_repairs_failed_checks_of_an_issue() {
    let test = checked(&format!("{REPAIRING}{DILIGENT}"));
    assert_repaired(&test, &[]);
}

#[test]
fn the_actions_engine_repairs_failed_checks_of_an_issue() {
    let test = checked(DILIGENT);
    let work = [run("echo x >1.txt; echo x >2.txt"), commit("Add both")];
    let repair = [write("2.txt", "repaired\n"), commit("Repair 2.txt")];
    let project = &test.remote.project;
    project.write_script(&[claiming(&["S1", "S2"], &work), actions(&repair)]);
    let model = project.model();
    assert_repaired(&test, &["--engine", "actions", "--model", &model]);
}

#[test]
fn a_process_that_died_while_it_waited_for_checks_waits_again() {
    let test = checked(DILIGENT);
    let number = test.ready(TWO_STEPS).to_string();
    let project = &test.remote.project;
    let live = project.spawn(&["issue", &number]);
    let commit = wait_for_checks(&live, &test, None);
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    let verified = project.events("verify_started").len();
    pass(&test, &commit);
    project.ralph(&["issue", &number]).expect(0);
    assert_eq!(project.events("verify_started").len(), verified);
    assert_eq!(test.status(1), "status:done");
    assert!(!pull(&test).pull.unwrap().is_draft);
}

#[test]
fn a_server_updates_the_issue_of_a_run_that_it_continues() {
    let test = checked(DILIGENT);
    let number = test.ready(TWO_STEPS).to_string();
    let project = &test.remote.project;
    let live = project.spawn(&["issue", &number]);
    let commit = wait_for_checks(&live, &test, None);
    live.signal(rustix::process::Signal::INT);
    live.wait().expect(130);
    pass(&test, &commit);
    let server = RunningServer::start(project.command(&["serve", "--port", "0"]));
    let shown = project.ralph(&["resume", "last"]).expect(0);
    assert!(shown.stdout.starts_with("the server (pid "), "{shown:?}");
    // The server writes to the issue after the end of the run.
    let start = Instant::now();
    while test.status(1) != "status:done" {
        let elapsed = start.elapsed();
        assert!(elapsed < Duration::from_mins(3), "{}", test.status(1));
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = server.end_with(rustix::process::Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_paused_wait_for_checks_continues() {
    let test = checked(DILIGENT);
    let number = test.ready(TWO_STEPS).to_string();
    let project = &test.remote.project;
    let live = project.spawn(&["issue", &number]);
    let commit = wait_for_checks(&live, &test, None);
    live.signal(rustix::process::Signal::INT);
    live.wait().expect(130);
    assert_eq!(test.status(1), "status:ready");
    let verified = project.events("verify_started").len();
    pass(&test, &commit);
    // Any command that continues the run updates its issue.
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(project.events("verify_started").len(), verified);
    assert_eq!(test.status(1), "status:done");
}
