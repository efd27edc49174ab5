//! Derived ids, and claims that name boxes by id, text or number.

use std::collections::BTreeSet;

use super::{parse, with_body};
use crate::task::{NamedBox, TaskFile, TicksInCopy};

const BODY: &str = "### Milestone M1 — The *endpoint*\n- [ ] M1.1 Foo **works**\n- [ ] It answers `JSON`.\n\
                    - [ ] 7. Logs are written\n- [ ] M1.2 Bar works\n- [ ] Nested\n- [ ] Nested boxes work\n";

fn task() -> TaskFile {
    parse(&with_body(BODY))
}

fn ids(task: &TaskFile) -> Vec<&str> {
    task.checkboxes.iter().map(|it| it.id.as_str()).collect()
}

#[test]
fn ids_do_not_change_when_boxes_are_inserted_or_moved() {
    let before = parse(&with_body("- [ ] One is there\n- [ ] Two is there\n"));
    let after = parse(&with_body(
        "- [ ] Zero is there\n- [ ] Two is there\n- [ ] M1.1 Half\n- [x] One is there\n",
    ));
    assert_eq!(ids(&before), ["one-is-there", "two-is-there"]);
    assert_eq!(
        ids(&after),
        ["zero-is-there", "two-is-there", "M1.1", "one-is-there"]
    );
}

#[test]
fn ids_are_unique_and_do_not_depend_on_the_order_of_different_texts() {
    let words = "The endpoint answers every request within";
    let body = format!("- [ ] {words} a second\n- [ ] {words} a minute\n");
    let reversed = format!("- [ ] {words} a minute\n- [ ] {words} a second\n");
    let (task, reversed) = (parse(&with_body(&body)), parse(&with_body(&reversed)));
    let mut expected = ids(&reversed);
    expected.reverse();
    assert_eq!(ids(&task), expected);
    let same = "- [ ] Tests pass\n".repeat(3) + "- [ ] tests pass 2\n- [ ] ***\n- [ ] 1\n";
    let task = parse(&with_body(&same));
    let unique: BTreeSet<&str> = ids(&task).into_iter().collect();
    assert_eq!(unique.len(), 6, "{unique:?}");
    assert!(unique.contains("box-1") && unique.contains("box"));
}

#[test]
fn unambiguous_claims_find_their_box() {
    let task = task();
    for (claim, id) in [
        ("M1.1", "M1.1"),
        (" m1.1 ", "M1.1"),
        ("`M1.1`", "M1.1"),
        ("M1.1: Foo works", "M1.1"),
        ("M1.1 Foo **works**", "M1.1"),
        ("[x] M1.1 Foo works.", "M1.1"),
        ("- [ ] M1.1 — Foo works", "M1.1"),
        ("M1.1 (done)", "M1.1"),
        ("box M1.1", "M1.1"),
        ("Checkbox: M1.1", "M1.1"),
        ("Foo works", "M1.1"),
        ("foo  works", "M1.1"),
        ("it-answers-json", "it-answers-json"),
        ("It answers JSON", "it-answers-json"),
        ("- [x] It answers `JSON`.", "it-answers-json"),
        ("2", "it-answers-json"),
        ("#2", "it-answers-json"),
        ("box 2", "it-answers-json"),
        ("Box #2", "it-answers-json"),
        ("2.", "it-answers-json"),
        ("2: It answers JSON", "it-answers-json"),
        ("C2", "it-answers-json"),
        ("4", "M1.2"),
        ("7", "7-logs-are-written"),
        ("7. Logs are written", "7-logs-are-written"),
        ("Nested", "nested"),
        ("nested boxes work", "nested-boxes-work"),
    ] {
        let NamedBox::One(found) = task.box_names().find(claim) else {
            panic!("{claim}: {:?}", task.box_names().find(claim));
        };
        assert_eq!(found.id, id, "{claim}");
    }
}

#[test]
fn ambiguous_claims_find_no_box() {
    let task = task();
    for claim in [
        "",
        "M1",
        "M9.9",
        "works",
        "Foo",
        "0",
        "99",
        "1.2",
        "2/6",
        "C4",
        "box",
        "all of them",
        "2 is done",
        "It answers XML",
        "first",
        "answers JSON",
    ] {
        assert_eq!(task.box_names().find(claim), NamedBox::Unknown, "{claim}");
    }
    // The id of one box with the words of another.
    for (claim, expected) in [
        ("M1.1 Bar works", ["M1.2", "M1.1"]),
        ("M1.2: Foo works", ["M1.1", "M1.2"]),
        ("M1.1, M1.2", ["M1.1", "M1.2"]),
    ] {
        let NamedBox::Ambiguous(found) = task.box_names().find(claim) else {
            panic!("{claim}");
        };
        let mut found: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{claim}");
    }
    // The same text twice, and a number that is both a position and part of a text.
    let body = "- [ ] Tests pass\n- [ ] 1. Tests pass\n- [ ] Tests pass\n";
    let task = parse(&with_body(body));
    for claim in ["Tests pass", "1"] {
        let found = task.box_names().find(claim);
        assert!(
            matches!(found, NamedBox::Ambiguous(_)),
            "{claim}: {found:?}"
        );
    }
}

#[test]
fn finds_milestones_by_id_or_title() {
    let task = task();
    for claim in [
        "M1",
        "m1",
        "Milestone M1",
        "The endpoint",
        "the *endpoint*.",
    ] {
        let found = task.named_milestone(claim).map(|it| it.id.as_str());
        assert_eq!(found, Some("M1"), "{claim}");
    }
    for claim in ["", "M2", "endpoint", "milestone"] {
        assert_eq!(task.named_milestone(claim), None, "{claim}");
    }
}

#[test]
fn open_boxes_have_a_number_an_id_and_a_text() {
    let task = task();
    let ticked = BTreeSet::from(["M1.1".to_owned(), "nested".to_owned()]);
    assert_eq!(
        task.open_boxes(&ticked),
        [
            "2. it-answers-json: It answers `JSON`.",
            "3. 7-logs-are-written: 7. Logs are written",
            "4. M1.2: Bar works",
            "6. nested-boxes-work: Nested boxes work",
        ]
    );
}

#[test]
fn ticks_of_earlier_versions_are_translated() {
    let ticked = BTreeSet::from(["C2", "C4", "M1.1", "C9"].map(str::to_owned));
    // The fourth box has an id in the file, so it was never named `C4`.
    let expected = BTreeSet::from(["it-answers-json", "C4", "M1.1", "C9"].map(str::to_owned));
    assert_eq!(task().current_ids(&ticked), expected);
}

#[test]
fn reads_ticks_from_a_modified_copy() {
    let task = task();
    let ticks = |copy: &str| {
        let TicksInCopy { ticked, differs } = task.ticks_in(copy);
        (ticked.into_iter().collect::<Vec<_>>().join(" "), differs)
    };
    let ticked = task.text.replace("[ ] It", "[X] It");
    assert_eq!(ticks(&ticked), ("it-answers-json".into(), false));
    let noted = ticked.replace(
        "- [ ] Nested\n",
        "  - done, see src/json.rs\n- [ ] Nested\n",
    );
    assert_eq!(ticks(&noted), ("it-answers-json".into(), true));
    let moved = ticked.replace("- [ ] M1.1 Foo", "- [ ] New\n- [x] M1.1 Foo");
    assert_eq!(ticks(&moved), ("M1.1 it-answers-json".into(), true));
    // A different text is a different box, and a duplicated box is ambiguous.
    let reworded = ticked.replace("answers", "perhaps answers");
    assert_eq!(ticks(&reworded), (String::new(), true));
    let twice = ticked.replace("- [ ] Nested\n", "- [x] M1.1 Foo **works**\n");
    assert_eq!(ticks(&twice), ("it-answers-json".into(), true));
    assert_eq!(ticks("nothing"), (String::new(), true));
    let undecodable = ticked.replace("It", "It\u{1b}");
    assert_eq!(ticks(&undecodable), (String::new(), true));
}
