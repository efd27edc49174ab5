use ralph_core::budget::BudgetLimits;
use ralph_core::event::RunEvent;
use ralph_core::id::{CommitId, RunId, TaskId};
use ralph_core::plan::{Delivery, EngineKind};
use ralph_core::ports::Isolation;
use ralph_core::run::PauseReason;
use ralph_core::secret::Secret;
use ralph_test::TestClock;

use super::*;
use crate::store::StateDir;

mod ownership;
mod positions;

fn plan() -> RunPlan {
    RunPlan {
        run: RunId::parse("260301-100000-0001").unwrap(),
        task_id: TaskId::parse("task-001").unwrap(),
        title: "Foo".into(),
        task_file: "/t/ralph_task.md".into(),
        contract: Digest::compute(b"contract"),
        repo: "/t".into(),
        base_branch: "main".into(),
        base: CommitId::parse(&"a".repeat(40)).unwrap(),
        branch: "ralph/task-001/foo".into(),
        engine: EngineKind::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:x".into(),
        model_key: None,
        scm: "local".into(),
        scm_credential: None,
        submodules: Vec::new(),
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits::default(),
        setup: None,
        test_command: "true".into(),
        checkboxes: 2,
        mode: ralph_core::task::RunMode::Autonomous,
        settings: None,
    }
}

struct JournalFixture {
    _temporary: tempfile::TempDir,
    state: StateDir,
    dir: RunDir,
    clock: Arc<TestClock>,
}

fn fixture() -> JournalFixture {
    let temporary = tempfile::tempdir().unwrap();
    let state = StateDir::open(temporary.path().join("state")).unwrap();
    let dir = state.run(&plan().run);
    JournalFixture {
        _temporary: temporary,
        state,
        dir,
        clock: TestClock::at("2023-11-14T22:13:20Z"),
    }
}

impl JournalFixture {
    fn create(&self) -> Journal {
        Journal::create(&self.dir, plan(), self.clock.clone(), Redactor::default()).unwrap()
    }

    fn open(&self) -> Result<Journal, JournalError> {
        Journal::open(&self.dir, self.clock.clone(), Redactor::default())
    }
}

fn notice(message: &str) -> Event {
    Event::Run(RunEvent::Notice {
        message: message.into(),
    })
}

#[test]
fn records_are_numbered_and_chained() {
    let setup = fixture();
    let mut journal = setup.create();
    assert_eq!(journal.append_all([notice("a"), notice("b")]).unwrap(), 3);
    assert_eq!(*journal.latest().borrow(), 3);
    drop(journal);
    let mut journal = setup.open().unwrap();
    assert_eq!(journal.append(notice("c")).unwrap(), 4);
    let text = fs::read_to_string(setup.dir.journal()).unwrap();
    let mut last = Digest::compute(b"");
    for (line, seq) in text.lines().zip(1..) {
        let record: JournalRecord = serde_json::from_str(line).unwrap();
        assert_eq!((record.seq, record.prev), (seq, last));
        last = Digest::compute(line.as_bytes());
    }
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn a_torn_record_is_moved_aside_and_nothing_before_it_changes() {
    let setup = fixture();
    let mut journal = setup.create();
    journal.append(notice("whole")).unwrap();
    drop(journal);
    let before = fs::read(setup.dir.journal()).unwrap();
    fs::write(
        setup.dir.journal(),
        [before.as_slice(), b"{\"v\":1,\"seq\":3,"].concat(),
    )
    .unwrap();
    let journal = setup.open().unwrap();
    assert_eq!(journal.state().seq, 2);
    assert_eq!(fs::read(setup.dir.journal()).unwrap(), before);
    let kept = setup
        .dir
        .recovered()
        .join(format!("journal-{}.part", before.len()));
    assert_eq!(fs::read(kept).unwrap(), b"{\"v\":1,\"seq\":3,");
}

#[test]
fn a_changed_or_missing_record_is_found() {
    let setup = fixture();
    let mut journal = setup.create();
    journal
        .append_all([notice("one"), notice("two"), notice("three")])
        .unwrap();
    drop(journal);
    let text = fs::read_to_string(setup.dir.journal()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let changed = text.replace("two", "TWO");
    let missing = [lines[0], lines[1], lines[3]].concat();
    let swapped = [lines[0], lines[2], lines[1], lines[3]].concat();
    for (damaged, line) in [(changed, 4), (missing, 3), (swapped, 2)] {
        fs::write(setup.dir.journal(), damaged).unwrap();
        let Err(JournalError::Damaged { line: found, .. }) = setup.open() else {
            panic!("not found")
        };
        assert_eq!(found, line);
    }
}

#[test]
fn only_one_process_has_a_run() {
    let setup = fixture();
    assert!(!setup.dir.is_held());
    let journal = setup.create();
    assert!(setup.dir.is_held());
    assert!(matches!(setup.open(), Err(JournalError::Held { .. })));
    drop(journal);
    assert!(!setup.dir.is_held());
    setup.open().unwrap();
}

#[test]
fn time_stands_still_while_a_run_is_paused_or_left() {
    let setup = fixture();
    let mut journal = setup.create();
    let status = |status| Event::Run(RunEvent::StatusChanged { status });
    journal.append(status(RunStatus::Preparing)).unwrap();
    setup.clock.advance(Duration::from_secs(10));
    journal
        .append(status(RunStatus::Paused(PauseReason::Person)))
        .unwrap();
    setup.clock.advance(Duration::from_secs(1000));
    assert_eq!(journal.active(), Duration::from_secs(10));
    journal.append(status(RunStatus::Running)).unwrap();
    setup.clock.advance(Duration::from_secs(5));
    journal.append(notice("last words")).unwrap();
    drop(journal);
    setup.clock.advance(Duration::from_secs(5000));
    let journal = setup.open().unwrap();
    assert_eq!(journal.active(), Duration::from_secs(15));
}

#[test]
fn secrets_are_redacted_and_the_chain_stays_valid() {
    let setup = fixture();
    let redactor = Redactor::new(vec![(
        "KEY".into(),
        Secret::new("correct horse battery".into()),
    )]);
    let mut journal = Journal::create(&setup.dir, plan(), setup.clock.clone(), redactor).unwrap();
    journal
        .append_all([notice("it is correct horse battery!"), notice("next")])
        .unwrap();
    drop(journal);
    let text = fs::read_to_string(setup.dir.journal()).unwrap();
    assert!(!text.contains("horse"));
    assert!(text.contains("it is [REDACTED:KEY]!"));
    setup.open().unwrap();
}

#[test]
fn a_run_is_found_by_id_prefix_task_or_last() {
    let setup = fixture();
    assert!(matches!(
        setup.state.find("last"),
        Err(crate::store::FindError::None)
    ));
    drop(setup.create());
    let second = RunPlan {
        run: RunId::parse("260301-100001-0002").unwrap(),
        task_id: TaskId::parse("other").unwrap(),
        ..plan()
    };
    let dir = setup.state.run(&second.run);
    drop(
        Journal::create(
            &dir,
            second.clone(),
            setup.clock.clone(),
            Redactor::default(),
        )
        .unwrap(),
    );
    for (query, expected) in [
        ("last", &second.run),
        ("260301-100000-0001", &plan().run),
        ("260301-100000", &plan().run),
        ("task-001", &plan().run),
        ("other", &second.run),
    ] {
        assert_eq!(setup.state.find(query).unwrap(), *expected, "{query}");
    }
    let near = |query, repository: &str| {
        let repository = WorkingRepository {
            path: repository.into(),
            origin: None,
        };
        setup.state.find_near(query, &repository)
    };
    for (query, repository, expected) in [
        ("last", second.repo.as_str(), &second.run),
        ("last", "/elsewhere", &second.run),
        ("task-001", "/elsewhere", &plan().run),
        ("260301-100000-0001", "/elsewhere", &plan().run),
    ] {
        assert_eq!(near(query, repository).unwrap(), *expected, "{query}");
    }
    assert!(matches!(
        setup.state.find("2603"),
        Err(crate::store::FindError::Ambiguous { .. })
    ));
    assert!(matches!(
        setup.state.find("nothing"),
        Err(crate::store::FindError::Unknown(_))
    ));
}

/// Returns the last record and the content of the seal.
fn last_record_and_seal(setup: &JournalFixture) -> (String, serde_json::Value) {
    let text = fs::read_to_string(setup.dir.journal()).unwrap();
    let seal = fs::read(setup.dir.root().join("journal.seal")).unwrap();
    let last = text.lines().last().unwrap().to_owned();
    (last, serde_json::from_slice(&seal).unwrap())
}

#[test]
fn a_journal_is_sealed_when_it_is_opened_and_closed() {
    let setup = fixture();
    let mut journal = setup.create();
    let (last, seal) = last_record_and_seal(&setup);
    let expected = |seq: u64, line: &str| serde_json::json!({"seq": seq, "sha256": Digest::compute(line.as_bytes())});
    assert_eq!(seal, expected(1, &last));
    journal.append(notice("one")).unwrap();
    assert_eq!(
        last_record_and_seal(&setup).1["seq"],
        1,
        "only closing seals it"
    );
    drop(journal);
    let (last, seal) = last_record_and_seal(&setup);
    assert_eq!(seal, expected(2, &last));
}

#[test]
fn a_journal_that_cannot_be_read_is_not_touched() {
    let setup = fixture();
    setup.create().append(notice("one")).unwrap();
    // Without a lock, to check that none is created, and without a seal, which would name the old
    // record.
    fs::remove_file(setup.dir.root().join("lock")).unwrap();
    fs::remove_file(setup.dir.root().join("journal.seal")).unwrap();
    let text = fs::read_to_string(setup.dir.journal()).unwrap();
    let newer = text.replace("\"v\":1,\"seq\":2", "\"v\":2,\"seq\":2");
    let unknown = text.replace("\"type\":\"notice\"", "\"type\":\"dreamt\"");
    let torn = format!("{text}{{\"v\":2,\"seq\":3");
    for journal in [newer, unknown, torn] {
        let journal = format!("{journal}{{\"v\":1,\"se");
        fs::write(setup.dir.journal(), &journal).unwrap();
        let before = file_names(&setup.dir);
        assert!(setup.open().is_err());
        assert!(refuse_newer(&setup.dir.journal()).is_err());
        assert_eq!(fs::read_to_string(setup.dir.journal()).unwrap(), journal);
        assert_eq!(file_names(&setup.dir), before);
    }
}

fn file_names(dir: &RunDir) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(dir.root()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
