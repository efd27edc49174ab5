use ralph_core::event::{Event, RunEvent};
use serde_json::json;

use super::*;

fn record_line(v: u64, event: &Value) -> Value {
    json!({"v": v, "seq": 1, "prev": Digest::compute(b""), "at": "2026-03-01T10:00:00Z",
        "active_ms": 0, "epoch": 1, "event": event})
}

fn parse_line(line: &str) -> Result<JournalRecord, JournalError> {
    parse(
        Path::new("/state/runs/r1/journal.jsonl"),
        4,
        line.as_bytes(),
    )
}

fn parse_error(line: &Value) -> String {
    parse_line(&line.to_string()).unwrap_err().to_string()
}

#[test]
fn a_known_record_is_read_whatever_is_added_to_it() {
    let mut known = record_line(
        1,
        &json!({"type": "notice", "message": "x", "new_field": 1}),
    );
    known["new_key"] = json!("x");
    let record = parse_line(&known.to_string()).unwrap();
    assert_eq!(
        record.event,
        Event::Run(RunEvent::Notice {
            message: "x".into()
        })
    );
}

#[test]
fn a_newer_format_an_unknown_event_and_damage_are_distinguished() {
    let notice = json!({"type": "notice", "message": "x"});
    let newer = format!(
        "run `r1` was written by a newer ralph (journal format 2), this is ralph {RALPH_VERSION} (format 1)"
    );
    assert_eq!(parse_error(&record_line(2, &notice)), newer);
    assert_eq!(
        parse_error(&record_line(2, &json!({"type": "dreamt"}))),
        newer
    );
    assert_eq!(parse_error(&json!({"v": 2, "another": "frame"})), newer);

    let unknown = |what: &str| {
        format!(
            "journal `/state/runs/r1/journal.jsonl` has an {what} at line 5, this is ralph {RALPH_VERSION}"
        )
    };
    assert_eq!(
        parse_error(&record_line(1, &json!({"type": "dreamt", "of": "sheep"}))),
        unknown("unknown event `dreamt`")
    );
    let status = json!({"type": "status_changed", "status": "asleep"});
    assert_eq!(
        parse_error(&record_line(1, &status)),
        unknown("unknown value `asleep` in event `status_changed`")
    );

    for damaged in [
        record_line(1, &json!({"type": "notice"})).to_string(),
        record_line(1, &json!({"type": 3})).to_string(),
        record_line(1, &notice)
            .to_string()
            .replace("\"seq\"", "\"sep\""),
        record_line(1, &notice).to_string().replace('}', ""),
        "null".into(),
        String::new(),
    ] {
        let error = parse_line(&damaged).unwrap_err();
        assert!(
            matches!(error, JournalError::Damaged { .. }),
            "{damaged}: {error}"
        );
    }
}

#[test]
fn the_record_after_one_that_cannot_be_read_shows_whether_it_is_damaged() {
    let unknown = record_line(1, &json!({"type": "notibe", "message": "x"})).to_string();
    let newer = record_line(3, &json!({"type": "notice", "message": "x"})).to_string();
    let next = |v: u64, prev: Digest| json!({"v": v, "prev": prev}).to_string();
    let other = Digest::compute(b"before it was changed");
    for (first, next, is_damaged) in [
        (&unknown, None, false),
        (
            &unknown,
            Some(next(1, Digest::compute(unknown.as_bytes()))),
            false,
        ),
        (&unknown, Some(next(1, other.clone())), true),
        (&newer, None, false),
        // A newer format may chain its records in another way.
        (&newer, Some(next(3, other.clone())), false),
        (&newer, Some(next(1, other)), true),
    ] {
        let error = parse_line(first).unwrap_err();
        let path = Path::new("/state/runs/r1/journal.jsonl");
        let next_line = next.as_deref().map(str::as_bytes);
        let error = classify_unreadable(error, path, (4, first.as_bytes()), next_line);
        let found = matches!(error, JournalError::Damaged { .. });
        assert_eq!(found, is_damaged, "{first} {next:?}: {error}");
    }
}

#[test]
fn a_torn_record_of_a_newer_format_is_not_repaired() {
    let path = Path::new("/state/runs/r1/journal.jsonl");
    for (torn, is_newer) in [
        ("", false),
        ("{\"v\":1,\"seq\":3", false),
        ("{\"v\":2,\"seq\":3", true),
        ("{\"v\":12,", true),
        // The number may be incomplete.
        ("{\"v\":2", false),
        ("{\"v\":", false),
        ("{\"seq\":2,", false),
    ] {
        let refused = refuse_newer_tail(path, torn.as_bytes()).is_err();
        assert_eq!(refused, is_newer, "{torn}");
    }
}

#[test]
fn the_version_that_opened_the_run_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let lines = [
        record_line(
            1,
            &json!({"type": "run_opened", "epoch": 1, "pid": 1, "ralph": "0.1.0"}),
        ),
        record_line(
            2,
            &json!({"type": "run_opened", "epoch": 2, "pid": 1, "ralph": "3.0.0"}),
        ),
        record_line(
            2,
            &json!({"type": "run_opened", "epoch": 3, "pid": 1, "ralph": "3.1.0"}),
        ),
        record_line(2, &json!({"type": "dreamt"})),
    ];
    let text = lines.map(|line| line.to_string()).join("\n") + "\n";
    fs::write(&path, text).unwrap();
    let JournalError::Newer { ralph, format, .. } = newer_error(&path, 2) else {
        panic!("another error");
    };
    assert_eq!((ralph.as_deref(), format), (Some("3.1.0"), 2));
}

#[test]
fn an_outline_is_read_of_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    assert_eq!(RunOutline::read(&path), RunOutline::default());
    let plan = json!({"task_id": "t", "task_file": "/t.md", "branch": "b", "sandbox": "moon",
        "engine": "dreams", "repo": "/r"});
    let mut text = record_line(7, &json!({"type": "run_created", "plan": plan})).to_string();
    text.push_str("\nnot JSON");
    fs::write(&path, text).unwrap();
    let read = RunOutline::read(&path);
    assert_eq!(read.task_id.as_deref(), Some("t"));
    assert_eq!(read.task_file.as_deref(), Some("/t.md"));
    assert_eq!(read.branch.as_deref(), Some("b"));
    assert_eq!(read.repo.as_deref(), Some("/r"));
    assert_eq!(read.sandbox.as_deref(), Some("moon"));
    assert_eq!(read.engine, None);
}
