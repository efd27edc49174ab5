use super::{PATH, twenty_lines};
use crate::patch::{MAX_FILE_BYTES, MAX_PATCH_BYTES, PatchError, apply};

/// A name, the file, the patch and the error message.
type RefusedPatchCase = (&'static str, &'static str, &'static str, &'static str);

const TWICE: &str = "begin\n  x = 1\nend\n\n\n\n\n\n\nbegin\n  x = 1\nend\n";

fn refusal(original: Option<&str>, patch: &str) -> String {
    apply(PATH, original, patch).unwrap_err().to_string()
}

fn check(cases: &[RefusedPatchCase]) {
    for (name, original, patch, message) in cases {
        assert_eq!(refusal(Some(original), patch), *message, "{name}");
    }
}

const PATCHES_THAT_ARE_NOT_A_TEXT_DIFF_OF_ONE_FILE: &[RefusedPatchCase] = &[
    (
        "another file",
        "a\n",
        "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1 +1 @@\n-a\n+b\n",
        "the patch is for `a/src/main.rs`, but the action is for `src/lib.rs`",
    ),
    (
        "outside the repository",
        "a\n",
        "--- a/../../src/lib.rs\n+++ b/../../src/lib.rs\n@@ -1 +1 @@\n-a\n+b\n",
        "the patch is for `a/../../src/lib.rs`, but the action is for `src/lib.rs`",
    ),
    (
        "two files with git headers",
        "a\n",
        "diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "the patch changes `src/lib.rs` and `a/x b/x`; a patch changes only one file",
    ),
    (
        "two files without",
        "a\n",
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "the patch changes `src/lib.rs` and `a/x`; a patch changes only one file",
    ),
    (
        "a rename",
        "a\n",
        "diff --git a/src/old.rs b/src/lib.rs\nsimilarity index 90%\nrename from src/old.rs\nrename to src/lib.rs\n",
        "the patch renames or copies a file; write the new file and delete the old one",
    ),
    (
        "binary",
        "a\n",
        "diff --git a/src/lib.rs b/src/lib.rs\nindex 1..2 100644\nBinary files a/src/lib.rs and b/src/lib.rs differ\n",
        "the patch is binary; only text can be patched",
    ),
    (
        "created and deleted",
        "a\n",
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        "the patch both creates and deletes `src/lib.rs`; a patch can do only one of them",
    ),
    (
        "another format",
        "a\n",
        "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n-a\n+b\n*** End Patch\n",
        "`*** Begin Patch` belongs to another format; a unified diff with one `@@` per hunk is required",
    ),
    (
        "a merge's diff",
        "a\n",
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n++b\n",
        "`@@@ -1,1 -1,1 +1,1 @@@` belongs to another format; a unified diff with one `@@` per hunk is required",
    ),
];

#[test]
fn rejects_patches_that_are_not_a_text_diff_of_one_file() {
    check(PATCHES_THAT_ARE_NOT_A_TEXT_DIFF_OF_ONE_FILE);
    let no_hunk = "the patch has no hunks; a unified diff with `@@` lines is required";
    for patch in [
        "",
        "Nothing to do.\n",
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n",
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n-a\n+b\n",
        "diff --git a/src/lib.rs b/src/lib.rs\ndeleted file mode 100644\n",
    ] {
        assert_eq!(refusal(Some("a\n"), patch), no_hunk, "{patch:?}");
    }
}

const AMBIGUOUS_HUNKS: &[RefusedPatchCase] = &[
    (
        "content that is not there",
        "a\nb\nc\n",
        "@@ -1,3 +1,3 @@\n a\n-nonsense\n+x\n c\n",
        "hunk 1: its old lines are not in the file; the first mismatch is `nonsense`",
    ),
    (
        "lines in a different order",
        "a\nb\nc\n",
        "@@ -1,3 +1,3 @@\n b\n-a\n+x\n c\n",
        "hunk 1: its old lines are not in the file; the first mismatch is `a`",
    ),
    (
        "twice, without a line number",
        TWICE,
        "@@ @@\n begin\n-  x = 1\n+  x = 2\n end\n",
        "hunk 1: its old lines match at lines 1, 10, and its line number does not select one of them; quote more lines around the change",
    ),
    (
        "twice, the line number in the middle",
        TWICE,
        "@@ -5,3 +5,3 @@\n begin\n-  x = 1\n+  x = 2\n end\n",
        "hunk 1: its old lines match at lines 1, 10, and its line number does not select one of them; quote more lines around the change",
    ),
    (
        "twice apart from trailing whitespace",
        "x\ny\nx \n",
        "@@\n-x\n+z\n",
        "hunk 1: its old lines match at lines 1, 3, and its line number does not select one of them; quote more lines around the change",
    ),
    (
        "exact at one position, indented at the stated line",
        "a();\nb();\nif c {\n    a();\n    b();\n}\n",
        "@@ -4,2 +4,2 @@\n a();\n-b();\n+d();\n",
        "hunk 1: its old lines match at lines 1, 4, and its line number does not select one of them; quote more lines around the change",
    ),
    (
        "only additions",
        "a\n",
        "@@ -1,0 +2,1 @@\n+b\n",
        "hunk 1: it quotes no line of the file, so its position is unknown; quote lines around `b`",
    ),
    (
        "only an empty line as context",
        "a\n\nb\n",
        "@@ -7,1 +7,2 @@\n \n+c\n",
        "hunk 1: it quotes no line of the file, so its position is unknown; quote lines around `c`",
    ),
    (
        "hunks in the wrong order",
        "a\nb\nc\nd\n",
        "@@ -3,2 +3,2 @@\n-c\n+C\n d\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
        "hunk 2: it belongs at line 1, which is not after the previous hunk; sort the hunks",
    ),
    (
        "additions next to a left-out line",
        "a\nx\nb\n",
        "@@ -1,2 +1,3 @@\n a\n+new\n b\n",
        "hunk 1: the file has the line `x` between its lines, so the position of the change is ambiguous; quote that line, too",
    ),
    (
        "a left-out line between removed lines",
        "a\nb\nx\nc\nd\n",
        "@@ -1,4 +1,2 @@\n a\n-b\n-c\n d\n",
        "hunk 1: the file has the line `x` between its lines, so the position of the change is ambiguous; quote that line, too",
    ),
    (
        "a left-out line that the counts say is removed",
        "a\nx\nb\nc\nd\n",
        "@@ -1,5 +1,4 @@\n a\n b\n-c\n+C\n d\n",
        "hunk 1: the file has the line `x` between its lines, so the position of the change is ambiguous; quote that line, too",
    ),
    (
        "at the stated line with the line that the counts say is lost",
        "x\n\n\na\nb\nc\na\nc\n",
        "@@ -4,3 +4,4 @@\n a\n+new\n c\n",
        "hunk 1: its old lines match at lines 7, 4, and its line number does not select one of them; quote more lines around the change",
    ),
    (
        "elsewhere without an empty last line that makes the counts right",
        "x\n\n\na\nb\nc\na\nc\n",
        "@@ -4,3 +4,4 @@\n a\n+new\n c\n\nDone.\n",
        "hunk 1: its old lines are not in the file; the first mismatch is ``",
    ),
    (
        "an indentation with two readings",
        "if a {\n        b();\n}\n",
        "@@ -2,1 +2,2 @@\n-    b();\n+    b(\n+        c);\n",
        "hunk 1: its old lines match at line 2 only with a different indentation, and that of the added lines is ambiguous; quote the indentation exactly",
    ),
    (
        "context that lost its leading space",
        "def a():\n    b()\n",
        "@@ -2,1 +2,2 @@\n   b()\n+    c()\n",
        "hunk 1: its old lines match at line 2 only with a different indentation, and that of the added lines is ambiguous; quote the indentation exactly",
    ),
    (
        "indented twice",
        "if a {\n    c();\n}\nif b {\n    c();\n}\n",
        "@@ -1,1 +1,1 @@\n-c();\n+d();\n",
        "hunk 1: its old lines match at lines 2, 5, and its line number does not select one of them; quote more lines around the change",
    ),
];

#[test]
fn rejects_ambiguous_hunks() {
    check(AMBIGUOUS_HUNKS);
}

#[test]
fn a_line_that_exists_elsewhere_is_not_misquoted() {
    // `one` has changed in the file, so the hunk's body matches only in `two`.
    let original = "fn one() {\n    x = 1;\n    z();\n}\n\nfn two() {\n    x = 0;\n    z();\n}\n";
    let patch = "@@ -1,3 +1,3 @@\n fn one() {\n-    x = 0;\n+    x = 2;\n     z();\n";
    assert_eq!(
        refusal(Some(original), patch),
        "hunk 1: its old lines are not in the file; the first mismatch is `    x = 0;`"
    );
}

const INCOMPLETE_HUNKS: &[RefusedPatchCase] = &[
    (
        "nothing changes",
        "a\nb\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n+b\n",
        "hunk 1: it changes nothing: its old and new lines are equal",
    ),
    (
        "the text stops after a removed line",
        "a\nb\nc\n",
        "@@ -1,3 +1,3 @@\n a\n-b\n",
        "hunk 1: it ends with `b` before it reaches the number of lines in its `@@` line; if it is complete, quote a line after the change",
    ),
    (
        "a context line without its space in the middle",
        "a\nb\nfn c() {\nd\n",
        "@@ -1,4 +1,4 @@\n a\n-b\n+B\nfn c() {\n-d\n+D\n",
        "hunk 1: `-d` is not part of a hunk; context lines in a hunk start with a space",
    ),
    (
        "a fence without its space in the middle",
        "a\n```\nb\n```\nc\n",
        "```diff\n@@\n-a\n+A\n```\n-b\n+B\n```\n c\n```\n",
        "hunk 1: `-b` is not part of a hunk; context lines in a hunk start with a space",
    ),
    (
        "additions after the stated end and an empty line",
        "a\nb\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\n+ added B\n",
        "hunk 1: `+ added B` is not part of a hunk; context lines in a hunk start with a space",
    ),
    (
        "a name below the `@@` line",
        "a\n",
        "--- a/src/lib.rs\n@@ -1 +1 @@\n+++ b/src/lib.rs\n-a\n+b\n",
        "hunk 1: `+++ b/src/lib.rs` is not part of a hunk; context lines in a hunk start with a space",
    ),
    (
        "the end marker in the middle of the hunk",
        "a\nb\n",
        "@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n+A\n b\n",
        "hunk 1: `\\ No newline at end of file` follows `a`, which is not the last line",
    ),
    (
        "the end marker in the middle of the file",
        "a\nb\n",
        "@@ -1 +1 @@\n-a\n+A\n\\ No newline at end of file\n",
        "hunk 1: `\\ No newline at end of file` follows `A`, which is not the last line",
    ),
    (
        "the old end marker in the middle of the file",
        "a\nb\n",
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+A\n",
        "hunk 1: `\\ No newline at end of file` follows `a`, which is not the last line",
    ),
];

#[test]
fn rejects_incomplete_hunks() {
    check(INCOMPLETE_HUNKS);
}

#[test]
fn rejects_invalid_patches_of_whole_files() {
    let new = "--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1 @@\n+a\n";
    let delete = "--- a/src/lib.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n";
    check(&[
        (
            "new, but exists",
            "other\n",
            new,
            "`src/lib.rs` already exists with different content; patch its lines or write the whole file",
        ),
        (
            "deleted, but longer",
            "a\nb\nc\n",
            delete,
            "hunk 1: it deletes the file, but its lines differ from the file's at `c`",
        ),
        (
            "deleted, but shorter",
            "a\n",
            delete,
            "hunk 1: it deletes the file, but its lines differ from the file's at `b`",
        ),
        (
            "deleted in two hunks",
            "a\nb\n",
            "--- a/src/lib.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n@@ -2 +0,0 @@\n-b\n",
            "hunk 2: a new or deleted file needs one hunk with all its lines",
        ),
    ]);
    let missing =
        "`src/lib.rs` does not exist, so there is nothing to change; add all lines to create it";
    assert_eq!(refusal(None, "@@ -1 +1 @@\n-a\n+b\n"), missing);
    assert_eq!(refusal(None, "@@ -9,0 +10 @@\n+b\n"), missing);
    assert_eq!(
        refusal(None, &new.replace("+a", "+a\n b")),
        "hunk 1: the file is new, but `b` is not an added line; start each line with `+`"
    );
}

#[test]
fn recognises_patches_that_are_already_applied() {
    for (original, patch) in [
        ("a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        ("a\nnew\nb\n", "@@ -1,2 +1,3 @@\n a\n+new\n b\n"),
        // Added lines at an edge would match a second time.
        ("a\nnew\nb\n", "@@ -1,1 +1,2 @@\n a\n+new\n"),
        ("a\nnew\nb\n", "@@ -2,1 +2,2 @@\n+new\n b\n"),
        ("a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n"),
        // The old lines elsewhere are unrelated.
        ("a\nB\nc\n\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b \n+b\n"),
        ("A\nb\nC\n", "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\n"),
        (
            "a\r\n",
            "--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1 @@\n+a\n",
        ),
    ] {
        let error = apply(PATH, Some(original), patch);
        assert_eq!(error, Err(PatchError::AlreadyApplied), "{patch:?}");
    }
    let delete = "--- a/src/lib.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    assert_eq!(apply(PATH, None, delete), Err(PatchError::AlreadyApplied));
    // One hunk is applied, the other is not.
    let half = "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\n";
    assert_eq!(
        refusal(Some("A\nb\nc\n"), half),
        "hunk 1: the file already has its new lines; omit it, or quote a line after them to add them again"
    );
    // The lines are missing here, but not from the file, which proves nothing.
    assert_eq!(
        refusal(Some("a\nc\nb\n"), "@@ -1,3 +1,2 @@\n a\n-b\n c\n"),
        "hunk 1: its old lines are not in the file; the first mismatch is `b`"
    );
}

#[test]
fn one_bad_hunk_rejects_the_patch() {
    let patch =
        "@@ -2,2 +2,2 @@\n line2\n-line3\n+LINE3\n@@ -10,2 +10,2 @@\n line10\n-nonsense\n+x\n";
    assert_eq!(
        refusal(Some(&twenty_lines()), patch),
        "hunk 2: its old lines are not in the file; the first mismatch is `nonsense`"
    );
}

#[test]
fn sizes_and_quotes_are_bounded() {
    let patch = "x".repeat(MAX_PATCH_BYTES + 1);
    assert_eq!(
        apply(PATH, None, &patch),
        Err(PatchError::TooLarge(MAX_PATCH_BYTES + 1))
    );
    let original = "y".repeat(MAX_FILE_BYTES - 2) + "\n";
    let patch = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ @@\n+zz\n";
    let long = format!("a\n{original}");
    let grows = patch.replace("+zz", " a\n+z");
    assert_eq!(
        apply(PATH, Some(&long), &grows),
        Err(PatchError::ResultTooLarge(MAX_FILE_BYTES + 3))
    );
    let line = "é".repeat(200);
    assert_eq!(
        refusal(Some("a\n"), &format!("@@\n-{line}\n+b\n")),
        format!(
            "hunk 1: its old lines are not in the file; the first mismatch is `{}…`",
            "é".repeat(120)
        )
    );
}
