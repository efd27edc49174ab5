//! Ownership of a journal, and the report about the time in which the process was suspended.

use super::*;
use ralph_core::event::RunEvent;

/// A change to the files of a run.
type JournalDamage = fn(&JournalFixture);

#[test]
fn removing_the_lock_file_gives_the_run_to_no_other_process() {
    let setup = fixture();
    let mut journal = setup.create();
    fs::remove_file(setup.dir.root().join("lock")).unwrap();
    assert!(setup.dir.is_held());
    for _ in 0..2 {
        // The first attempt creates the file again.
        assert!(matches!(setup.open(), Err(JournalError::Held { .. })));
    }
    assert_eq!(journal.append(notice("mine")).unwrap(), 2);
    drop(journal);
    assert!(!setup.dir.is_held());
    assert_eq!(setup.open().unwrap().state().seq, 2);
}

#[test]
fn an_owner_does_not_write_to_a_journal_that_was_replaced_or_changed() {
    let length = |setup: &JournalFixture| fs::metadata(setup.dir.journal()).unwrap().len();
    let changes: [(&str, JournalDamage); 4] = [
        ("replaced by a copy", |setup| {
            let copy = setup.dir.root().join("copy");
            fs::copy(setup.dir.journal(), &copy).unwrap();
            fs::rename(copy, setup.dir.journal()).unwrap();
        }),
        ("longer", |setup| {
            let mut text = fs::read_to_string(setup.dir.journal()).unwrap();
            text.push_str("{}\n");
            fs::write(setup.dir.journal(), text).unwrap();
        }),
        ("of the same length", |setup| {
            let text = fs::read_to_string(setup.dir.journal()).unwrap();
            fs::write(setup.dir.journal(), text.replace("last", "LAST")).unwrap();
        }),
        ("empty", |setup| fs::write(setup.dir.journal(), "").unwrap()),
    ];
    for (what, change) in changes {
        let setup = fixture();
        let mut journal = setup.create();
        journal.append(notice("last")).unwrap();
        journal.check_owner().unwrap();
        change(&setup);
        let (text, before) = (fs::read(setup.dir.journal()).unwrap(), length(&setup));
        let refused = journal.append(notice("late"));
        assert!(
            matches!(refused, Err(JournalError::Lost { pid: None, .. })),
            "{what}: {refused:?}"
        );
        assert_eq!(length(&setup), before, "{what}");
        assert_eq!(fs::read(setup.dir.journal()).unwrap(), text, "{what}");
        assert_eq!(journal.state().seq, 2, "{what}");
    }
}

#[test]
fn the_process_that_took_a_run_over_is_named() {
    let setup = fixture();
    let mut first = setup.create();
    for name in ["journal.jsonl", "lock"] {
        let copy = setup.dir.root().join("copy");
        fs::copy(setup.dir.root().join(name), &copy).unwrap();
        fs::rename(copy, setup.dir.root().join(name)).unwrap();
    }
    let mut second = setup.open().unwrap();
    let opened = Event::Run(RunEvent::RunOpened {
        epoch: 1,
        pid: 4711,
        ralph: None,
    });
    second.append(opened).unwrap();
    let lost = first.append(notice("late")).unwrap_err();
    assert_eq!(
        lost.to_string(),
        "run `260301-100000-0001` was taken over by pid 4711"
    );
    second.append(notice("on time")).unwrap();
    drop((first, second));
    assert_eq!(setup.open().unwrap().state().seq, 3);
}

#[test]
fn a_journal_is_never_created_twice() {
    let setup = fixture();
    drop(setup.create());
    let before = fs::read(setup.dir.journal()).unwrap();
    let again = Journal::create(&setup.dir, plan(), setup.clock.clone(), Redactor::default());
    assert!(matches!(again, Err(JournalError::Store(_))));
    assert_eq!(fs::read(setup.dir.journal()).unwrap(), before);
}

#[test]
fn a_suspension_is_reported_once_before_the_next_event() {
    let setup = fixture();
    setup.clock.suspend(Duration::from_secs(30));
    let mut journal = setup.create();
    journal.append(notice("before")).unwrap();
    setup.clock.suspend(Duration::from_secs(12));
    journal.append(notice("after")).unwrap();
    journal.report_suspension().unwrap();
    setup.clock.suspend(Duration::from_secs(5));
    journal.report_suspension().unwrap();
    let notices: Vec<String> = read(&setup.dir.journal())
        .unwrap()
        .into_iter()
        .filter_map(|record| {
            let Event::Run(RunEvent::Notice { message }) = record.event else {
                return None;
            };
            Some(message)
        })
        .collect();
    let stopped =
        |seconds| format!("ralph was stopped for {seconds} s; this does not count as wall time");
    assert_eq!(
        notices,
        ["before".into(), stopped(12), "after".into(), stopped(5)]
    );
}
