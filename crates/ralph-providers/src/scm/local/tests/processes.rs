//! Several processes using the same records. A test starts its own executable again for each
//! process, with an environment variable that selects the child's role.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Gives the child its directory and run: `<directory>:<run>`.
const CHILD_VARIABLE: &str = "RALPH_TEST_LOCAL_SCM_CHILD";

/// How many pull requests a child opens.
const BRANCHES: u64 = 10;

fn start_child(fixture: &ScmFixture, test: &str, run: &str) -> Child {
    let mut task = fixture.root().as_os_str().to_owned();
    task.push(format!(":{run}"));
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("scm::local::tests::processes::{test}"), "--exact"])
        .env(CHILD_VARIABLE, task)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the source host and the run in a child process, `None` in the test itself.
fn child_role() -> Option<(LocalScm, String)> {
    let task = std::env::var_os(CHILD_VARIABLE)?;
    let (root, run) = task.to_str().unwrap().rsplit_once(':').unwrap();
    let root = Path::new(root);
    let clock = TestClock::at(MORNING);
    let records = root.join("state/pulls");
    let scm = LocalScm::new(&records, &root.join("repo"), git_program(), clock);
    Some((scm.unwrap(), run.to_owned()))
}

async fn open_many(scm: &LocalScm, run: &str) {
    for branch in 0..BRANCHES {
        let draft = draft(run, &format!("{run}/{branch}"));
        let opened = scm.open(&draft).await.unwrap();
        assert_eq!(scm.open(&draft).await.unwrap(), opened);
        assert_eq!(scm.find(&draft.head).await.unwrap(), Some(opened));
    }
}

#[tokio::test]
async fn processes_that_open_at_once_get_one_number_each() {
    const NAME: &str = "processes_that_open_at_once_get_one_number_each";
    if let Some((scm, run)) = child_role() {
        return open_many(&scm, &run).await;
    }
    let fixture = ScmFixture::new();
    let runs = ["r0", "r1", "r2", "r3"];
    let children: Vec<Child> = runs
        .iter()
        .map(|run| start_child(&fixture, NAME, run))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut heads = Vec::new();
    let names = record_names(&fixture.store_directory());
    for (index, name) in names.iter().enumerate() {
        assert_eq!(*name, format!("{}.json", index + 1));
        heads.push(
            LocalScm::read_record(&fixture.store_directory().join(name))
                .unwrap()
                .head,
        );
    }
    heads.sort();
    let expected: Vec<String> = runs
        .iter()
        .flat_map(|run| (0..BRANCHES).map(move |branch| format!("{run}/{branch}")))
        .collect();
    assert_eq!(heads, expected);
}

/// Writes until it is killed; the end is only reached if the test fails to kill it.
async fn update_until_killed(scm: &LocalScm, run: &str) {
    let opened = scm.open(&draft(run, "a")).await.unwrap().number;
    for round in 0..20_000 {
        let body = format!("{round} {}", "x".repeat(100_000));
        let draft = PullDraft {
            body,
            ..draft(run, "a")
        };
        assert_eq!(scm.update(opened, &draft).await.unwrap().number, opened);
    }
}

#[tokio::test]
async fn a_killed_process_leaves_only_whole_records() {
    const KILLS: u64 = 12;
    if let Some((scm, run)) = child_role() {
        return update_until_killed(&scm, &run).await;
    }
    let fixture = ScmFixture::new();
    for kill in 1..=KILLS {
        let run = format!("r{kill}");
        let mut child = start_child(&fixture, "a_killed_process_leaves_only_whole_records", &run);
        let record = fixture.store_directory().join(format!("{kill}.json"));
        let deadline = Instant::now() + Duration::from_mins(1);
        while !record.exists() {
            assert!(Instant::now() < deadline, "the process opened nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Kills at a different point of the write each time.
        std::thread::sleep(Duration::from_millis(3 * kill));
        child.kill().unwrap();
        child.wait().unwrap();

        let read = LocalScm::read_record(&record).unwrap();
        assert_eq!((read.number, read.run.as_str()), (kill, run.as_str()));
        // The run resumes after the crash: it finds its pull request, and the lock is free.
        let again = fixture.scm().open(&draft(&run, "a")).await.unwrap();
        assert_eq!(again.number, kill);
    }
    assert_eq!(record_names(&fixture.store_directory()).len() as u64, KILLS);
}
