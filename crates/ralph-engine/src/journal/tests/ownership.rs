//! Ownership of a journal, and the report about the time in which the process was suspended.

use super::*;
use ralph_core::event::RunEvent;

/// A change to the files of a run.
type JournalDamage = fn(&JournalFixture);

#[test]
fn removing_the_lock_file_gives_the_run_to_no_other_process() {
    let place = fixture();
    let mut journal = place.create();
    fs::remove_file(place.dir.root().join("lock")).unwrap();
    assert!(place.dir.is_held());
    for _ in 0..2 {
        // The first attempt creates the file again.
        assert!(matches!(place.open(), Err(JournalError::Held { .. })));
    }
    assert_eq!(journal.append(notice("mine")).unwrap(), 2);
    drop(journal);
    assert!(!place.dir.is_held());
    assert_eq!(place.open().unwrap().state().seq, 2);
}

#[test]
fn an_owner_does_not_write_to_a_journal_that_was_replaced_or_changed() {
    let length = |place: &JournalFixture| fs::metadata(place.dir.journal()).unwrap().len();
    let changes: [(&str, JournalDamage); 4] = [
        ("replaced by a copy", |place| {
            let copy = place.dir.root().join("copy");
            fs::copy(place.dir.journal(), &copy).unwrap();
            fs::rename(copy, place.dir.journal()).unwrap();
        }),
        ("longer", |place| {
            let mut text = fs::read_to_string(place.dir.journal()).unwrap();
            text.push_str("{}\n");
            fs::write(place.dir.journal(), text).unwrap();
        }),
        ("of the same length", |place| {
            let text = fs::read_to_string(place.dir.journal()).unwrap();
            fs::write(place.dir.journal(), text.replace("last", "LAST")).unwrap();
        }),
        ("empty", |place| fs::write(place.dir.journal(), "").unwrap()),
    ];
    for (what, change) in changes {
        let place = fixture();
        let mut journal = place.create();
        journal.append(notice("last")).unwrap();
        journal.check_owner().unwrap();
        change(&place);
        let (text, before) = (fs::read(place.dir.journal()).unwrap(), length(&place));
        let refused = journal.append(notice("late"));
        assert!(
            matches!(refused, Err(JournalError::Lost { pid: None, .. })),
            "{what}: {refused:?}"
        );
        assert_eq!(length(&place), before, "{what}");
        assert_eq!(fs::read(place.dir.journal()).unwrap(), text, "{what}");
        assert_eq!(journal.state().seq, 2, "{what}");
    }
}

#[test]
fn the_process_that_took_a_run_over_is_named() {
    let place = fixture();
    let mut first = place.create();
    for name in ["journal.jsonl", "lock"] {
        let copy = place.dir.root().join("copy");
        fs::copy(place.dir.root().join(name), &copy).unwrap();
        fs::rename(copy, place.dir.root().join(name)).unwrap();
    }
    let mut second = place.open().unwrap();
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
    assert_eq!(place.open().unwrap().state().seq, 3);
}

#[test]
fn a_journal_is_never_created_twice() {
    let place = fixture();
    drop(place.create());
    let before = fs::read(place.dir.journal()).unwrap();
    let again = Journal::create(&place.dir, plan(), place.clock.clone(), Redactor::default());
    assert!(matches!(again, Err(JournalError::Store(_))));
    assert_eq!(fs::read(place.dir.journal()).unwrap(), before);
}

#[test]
fn an_absence_is_reported_once_before_the_next_event() {
    let place = fixture();
    place.clock.suspend(Duration::from_secs(30));
    let mut journal = place.create();
    journal.append(notice("before")).unwrap();
    place.clock.suspend(Duration::from_secs(12));
    journal.append(notice("after")).unwrap();
    journal.report_suspension().unwrap();
    place.clock.suspend(Duration::from_secs(5));
    journal.report_suspension().unwrap();
    let told: Vec<String> = read(&place.dir.journal())
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
        told,
        ["before".into(), stopped(12), "after".into(), stopped(5)]
    );
}
