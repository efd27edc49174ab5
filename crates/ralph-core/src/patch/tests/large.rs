use super::PATH;
use crate::patch::{MAX_FILE_BYTES, MAX_PATCH_BYTES, PatchedFile, apply};

#[test]
fn many_hunks_in_a_large_file() {
    let lines: Vec<String> = (0..300_000).map(|n| format!("line {n}\n")).collect();
    let original = lines.concat();
    let mut changed = lines.clone();
    let mut patch = Vec::new();
    for at in (1..lines.len() - 1).step_by(30) {
        // The numbers are off by one, so every hunk is searched for.
        let (before, line, after) = (&lines[at - 1], &lines[at], &lines[at + 1]);
        let number = at + 1;
        patch.push(format!(
            "@@ -{number},3 +{number},3 @@\n {before}-{line}+new {line} {after}"
        ));
        changed[at] = format!("new {line}");
    }
    let patch = patch.concat();
    assert!(original.len() < MAX_FILE_BYTES && patch.len() < MAX_PATCH_BYTES);
    let patched = apply(PATH, Some(&original), &patch).unwrap();
    assert_eq!(patched.text, Some(changed.concat()));
    assert_eq!(patched.notes.len(), 21);
    assert_eq!(patched.notes[20], "and 9980 more notes");
}

#[test]
fn the_search_for_endlessly_repeated_lines_is_limited() {
    let original = "x\n".repeat(1_000_000);
    let patch = format!("@@\n{}-x\n+y\n", " x\n".repeat(300_000));
    assert_eq!(
        apply(PATH, Some(&original), &patch)
            .unwrap_err()
            .to_string(),
        "hunk 1: its lines repeat too often in the file to find one position; quote rarer lines"
    );
}

#[test]
fn a_rare_line_is_found_among_many_equal_ones() {
    let original = "x\n".repeat(200_000) + "y\n" + &"x\n".repeat(200_000);
    let expected = original.replace('y', "z");
    assert_eq!(
        apply(PATH, Some(&original), "@@ -1,3 +1,3 @@\n x\n-y\n+z\n x\n"),
        Ok(PatchedFile {
            text: Some(expected),
            mode: None,
            fuzzy: true,
            notes: vec!["hunk 1: found at line 200000 by its text".into()],
        })
    );
}

#[test]
fn many_positions_and_many_added_lines_do_not_multiply() {
    let original = "x\ny\n".repeat(100_000);
    let added = "+z\n".repeat(100_000);
    let patch = format!("@@\n xx\n{added} y\n x\n");
    assert_eq!(
        apply(PATH, Some(&original), &patch)
            .unwrap_err()
            .to_string(),
        "hunk 1: its old lines match at lines 2, 4, 6, 8, 10 and 99994 more, and its line number does not select one of them; quote more lines around the change"
    );
}
