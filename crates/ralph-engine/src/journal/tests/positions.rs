//! Positions in a journal: reading on, and jumping to a record.

use super::*;

/// Every record from a position, with its offset.
fn records_after(path: &Path, after: &JournalPosition) -> (Vec<(u64, u64)>, JournalPosition) {
    let mut found = Vec::new();
    let end = read_after(path, after, &mut |record, offset| {
        found.push((record.seq, offset));
    });
    (found, end.unwrap())
}

#[test]
fn reading_in_pieces_finds_the_same_records_as_reading_everything() {
    let fixture = fixture();
    let mut journal = fixture.create();
    journal.append(notice("two")).unwrap();
    let path = fixture.dir.journal();
    let (first, middle) = records_after(&path, &JournalPosition::start());
    journal.append(notice(&"three ".repeat(50_000))).unwrap();
    journal.append(notice("four")).unwrap();
    // A record that is being written.
    let mut text = fs::read(&path).unwrap();
    let length = text.len() as u64;
    text.extend_from_slice(b"{\"v\":1,\"seq\":5");
    fs::write(&path, text).unwrap();

    let (second, end) = records_after(&path, &middle);
    let (all, same_end) = records_after(&path, &JournalPosition::start());
    assert_eq!([first, second].concat(), all);
    assert_eq!(end, same_end);
    assert_eq!((end.seq, end.offset), (4, length));
    let sequences: Vec<u64> = all.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(sequences, [1, 2, 3, 4]);
    assert_eq!(records_after(&path, &end), (Vec::new(), end));
}

#[test]
fn a_record_is_found_from_every_earlier_one() {
    let fixture = fixture();
    let mut journal = fixture.create();
    for number in 0..20 {
        let text = format!("{number} ").repeat(number * 700);
        journal.append(notice(&text)).unwrap();
    }
    let path = fixture.dir.journal();
    let (all, _) = records_after(&path, &JournalPosition::start());
    for known in &all {
        for (seq, offset) in all.iter().filter(|(seq, _)| *seq >= known.0) {
            let found = offset_of_record(&path, *known, *seq).unwrap();
            assert_eq!(found, Some(*offset), "{seq} from {known:?}");
        }
        assert_eq!(offset_of_record(&path, *known, 22).unwrap(), None);
    }
}

#[test]
fn another_journal_does_not_contain_a_position() {
    let fixture = fixture();
    let mut journal = fixture.create();
    journal.append(notice("two")).unwrap();
    let path = fixture.dir.journal();
    let (_, end) = records_after(&path, &JournalPosition::start());
    assert!(JournalPosition::start().is_in(&path).unwrap());
    assert!(end.is_in(&path).unwrap());
    journal.append(notice("three")).unwrap();
    assert!(end.is_in(&path).unwrap());

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("two", "owt")).unwrap();
    assert!(!end.is_in(&path).unwrap());
    let replaced = read_after(&path, &end, &mut |_, _| {}).map(drop);
    assert!(
        replaced.is_ok(),
        "only the new records are read: {replaced:?}"
    );
    let whole = read_after(&path, &JournalPosition::start(), &mut |_, _| {});
    assert!(matches!(whole, Err(JournalError::Damaged { line: 3, .. })));

    fs::write(&path, "").unwrap();
    assert!(!end.is_in(&path).unwrap());
}
