use super::{PATH, twenty_lines};
use crate::patch::apply;

const HEADER: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n";
const HUNKS: [&str; 3] = [
    "@@ -2,4 +2,5 @@ one\n line2\n-line3\n+LINE3\n+added\n line4\n line5\n",
    "@@ -9,4 +10,4 @@ two\n line9\n line10\n-line11\n+LINE11\n line12\n",
    "@@ -16,4 +17,3 @@ three\n line16\n line17\n-line18\n line19\n",
];

fn good_patch() -> String {
    HEADER.to_owned() + &HUNKS.concat()
}

/// Returns the file with the chosen hunks applied.
fn with_hunks(chosen: [bool; 3]) -> String {
    let changes = [
        ("line3\n", "LINE3\nadded\n"),
        ("line11\n", "LINE11\n"),
        ("line18\n", ""),
    ];
    let chosen = changes.iter().zip(chosen).filter(|(_, chosen)| *chosen);
    chosen.fold(twenty_lines(), |text, ((old, new), _)| {
        text.replace(old, new)
    })
}

/// Returns the file after a damaged patch; unchanged if the patch is rejected.
fn result(patch: &str) -> String {
    let patched = apply(PATH, Some(&twenty_lines()), patch);
    patched.map_or_else(
        |_| twenty_lines(),
        |patched| patched.text.unwrap_or_default(),
    )
}

#[test]
fn every_prefix_applies_whole_hunks_or_nothing() {
    let patch = good_patch();
    let allowed = [
        twenty_lines(),
        with_hunks([true, false, false]),
        with_hunks([true, true, false]),
        with_hunks([true, true, true]),
    ];
    for (end, _) in patch.char_indices() {
        let text = result(&patch[..end]);
        assert!(allowed.contains(&text), "{end} characters gave:\n{text}");
    }
    assert_eq!(result(&patch), allowed[3]);
}

#[test]
fn one_lost_line_loses_at_most_that_line() {
    let patch = good_patch();
    let lines: Vec<&str> = patch.split_inclusive('\n').collect();
    for lost in 0..lines.len() {
        let damaged: String = [&lines[..lost], &lines[lost + 1..]].concat().concat();
        let text = result(&damaged);
        let mut allowed = vec![twenty_lines(), with_hunks([true; 3])];
        // Without an added line, only that line is missing.
        if let Some(added) = lines[lost].strip_prefix('+') {
            allowed.push(with_hunks([true; 3]).replace(added, ""));
        }
        assert!(
            allowed.contains(&text),
            "without {:?}:\n{text}",
            lines[lost]
        );
    }
}

#[test]
fn one_lost_hunk_does_not_affect_the_others() {
    for lost in 0..HUNKS.len() {
        let mut chosen = [true; 3];
        chosen[lost] = false;
        let others = HUNKS.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        let patch: String = others.map(|(hunk, _)| *hunk).collect();
        assert_eq!(result(&patch), with_hunks(chosen));
    }
}

#[test]
fn one_doubled_line_changes_nothing_else() {
    let patch = good_patch();
    let lines: Vec<&str> = patch.split_inclusive('\n').collect();
    for doubled in 0..lines.len() {
        let damaged: String = [&lines[..=doubled], &lines[doubled..]].concat().concat();
        let text = result(&damaged);
        let mut allowed = vec![twenty_lines(), with_hunks([true; 3])];
        if let Some(added) = lines[doubled].strip_prefix('+') {
            let twice = added.repeat(2);
            allowed.push(with_hunks([true; 3]).replace(added, &twice));
        }
        assert!(
            allowed.contains(&text),
            "twice {:?}:\n{text}",
            lines[doubled]
        );
    }
}

#[test]
fn two_swapped_lines_never_change_other_lines() {
    let patch = good_patch();
    let lines: Vec<&str> = patch.split_inclusive('\n').collect();
    let all = with_hunks([true; 3]);
    for at in 1..lines.len() {
        let mut swapped = lines.clone();
        swapped.swap(at - 1, at);
        let text = result(&swapped.concat());
        // Added lines may be swapped with each other and with the line that they replace.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let allowed = [sorted(&twenty_lines()), sorted(&all)];
        assert!(
            allowed.contains(&sorted(&text)),
            "line {at} swapped gave:\n{text}"
        );
    }
}

#[test]
fn applying_twice_is_rejected() {
    let once = result(&good_patch());
    assert_eq!(
        apply(PATH, Some(&once), &good_patch()),
        Err(crate::patch::PatchError::AlreadyApplied)
    );
}

#[test]
fn changed_bytes_do_not_cause_a_panic() {
    let patch = good_patch();
    for (at, _) in patch.char_indices() {
        for other in [
            "", "\n", "\r", "\t", "`", "@", "-", "+", "\\ ", "é", "\u{feff}", "\0",
        ] {
            let damaged = format!("{}{other}{}", &patch[..at], &patch[at + 1..]);
            let lines = result(&damaged).lines().count();
            assert!(
                (18..=24).contains(&lines),
                "{at} as {other:?}: {lines} lines"
            );
        }
    }
}

#[test]
fn absurd_numbers_do_not_cause_a_panic() {
    let numbers = [
        "0",
        "1",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999",
    ];
    let hunk = |start: &str, count: &str| format!("@@ -{start},{count} +{start},{count} @@\n");
    for start in numbers {
        for count in numbers {
            let patch = hunk(start, count)
                + " line2\n-line3\n+LINE3\n line4\n"
                + &hunk(start, count)
                + "+added\n line9\n";
            let expected = twenty_lines()
                .replace("line3\n", "LINE3\n")
                .replace("line9\n", "added\nline9\n");
            assert_eq!(result(&patch), expected, "{start},{count}");
        }
    }
}
