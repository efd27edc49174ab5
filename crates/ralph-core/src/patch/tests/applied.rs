use super::{PATH, twenty_lines};
use crate::patch::{PatchedFile, apply};

struct AppliedPatchCase {
    name: &'static str,
    original: &'static str,
    patch: &'static str,
    text: &'static str,
    fuzzy: bool,
    notes: &'static [&'static str],
}

const FUNCTION: &str = "fn a() {\n    one();\n    two();\n    three();\n}\n";
const FUNCTION_CHANGED: &str = "fn a() {\n    one();\n    TWO();\n    three();\n}\n";
const TWICE: &str = "begin\n  x = 1\nend\n\nbegin\n  x = 1\nend\n";

const EXACT_AND_MISLABELLED_HUNKS: &[AppliedPatchCase] = &[
    AppliedPatchCase {
        name: "correct",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,3 +2,3 @@ fn a() {\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "wrong line number",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -18,3 +18,3 @@\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &["hunk 1: found at line 2 by its text"],
    },
    AppliedPatchCase {
        name: "counts too big",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,9 +2,9 @@\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &["hunk 1: states 9 old and 9 new lines, has 3 and 3"],
    },
    AppliedPatchCase {
        name: "counts too small",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,1 +2,1 @@\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &["hunk 1: states 1 old and 1 new lines, has 3 and 3"],
    },
    AppliedPatchCase {
        name: "no newline after the patch",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,3 +2,3 @@\n     one();\n-    two();\n+    TWO();\n     three();",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "no prefix before the names",
        original: FUNCTION,
        patch: "--- src/lib.rs\n+++ ./src/lib.rs\n@@ -2,2 +2,2 @@\n     one();\n-    two();\n+    TWO();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "only one name, with a time stamp",
        original: FUNCTION,
        patch: "+++ b/src/lib.rs\t2024-05-06 07:08:09\n@@ -3 +3 @@\n-    two();\n+    TWO();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "bare @@",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@\n     one();\n-    two();\n+    TWO();\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &["hunk 1: found at line 2 by its text"],
    },
    AppliedPatchCase {
        name: "@@ ... @@, no names",
        original: FUNCTION,
        patch: "@@ ... @@\n     one();\n-    two();\n+    TWO();\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &["hunk 1: found at line 2 by its text"],
    },
    AppliedPatchCase {
        name: "line 0 is not a line number",
        original: FUNCTION,
        patch: "@@ -0,0 +0,0 @@\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &[
            "hunk 1: states 0 old and 0 new lines, has 3 and 3",
            "hunk 1: found at line 2 by its text",
        ],
    },
    AppliedPatchCase {
        name: "duplicate block, the line number picks the second",
        original: TWICE,
        patch: "@@ -5,3 +5,3 @@\n begin\n-  x = 1\n+  x = 2\n end\n",
        text: "begin\n  x = 1\nend\n\nbegin\n  x = 2\nend\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "duplicate block, the line number is near to one",
        original: TWICE,
        patch: "@@ -6,3 +6,3 @@\n begin\n-  x = 1\n+  x = 2\n end\n",
        text: "begin\n  x = 1\nend\n\nbegin\n  x = 2\nend\n",
        fuzzy: true,
        notes: &["hunk 1: found at line 5 by its text"],
    },
];

#[test]
fn exact_and_mislabelled_hunks() {
    check(EXACT_AND_MISLABELLED_HUNKS);
}

const PROSE_AND_FENCES_AROUND_THE_DIFF: &[AppliedPatchCase] = &[
    AppliedPatchCase {
        name: "prose and a fence",
        original: FUNCTION,
        patch: "Here it is:\n- it calls TWO\n\n```diff\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,3 +2,3 @@\n     one();\n-    two();\n+    TWO();\n     three();\n```\n\nWhat changed:\n- `two` is `TWO`\n+ nothing else\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "prose right after the hunk",
        original: FUNCTION,
        patch: "@@ -2,3 +2,3 @@\n     one();\n-    two();\n+    TWO();\n     three();\n\nThis calls `TWO`.\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "a fence that is never closed",
        original: FUNCTION,
        patch: "```\n@@ -2,3 +2,3 @@\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "fences in a Markdown file stay text",
        original: "text\n```\ncode\n```\n",
        patch: "````diff\n@@ -1,4 +1,4 @@\n text\n ```\n-code\n+CODE\n ```\n````\n",
        text: "text\n```\nCODE\n```\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "removed and added lines that look like names",
        original: "a\n-- old\nb\nc\nd\n",
        patch: "@@ -1,2 +1,2 @@\n a\n--- old\n+++ new\n@@ -4,2 +4,2 @@\n c\n-d\n+D\n",
        text: "a\n++ new\nb\nc\nD\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "the same header before every hunk",
        original: FUNCTION,
        patch: "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2 +2 @@\n-    one();\n+    ONE();\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -4 +4 @@\n-    three();\n+    THREE();\n",
        text: "fn a() {\n    ONE();\n    two();\n    THREE();\n}\n",
        fuzzy: false,
        notes: &[],
    },
];

#[test]
fn prose_and_fences_around_the_diff() {
    check(PROSE_AND_FENCES_AROUND_THE_DIFF);
}

const LINE_ENDINGS_AND_THE_LAST_NEWLINE: &[AppliedPatchCase] = &[
    AppliedPatchCase {
        name: "CRLF file, LF patch",
        original: "a\r\nb\r\nc\r\n",
        patch: "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n",
        text: "a\r\nB\r\nB2\r\nc\r\n",
        fuzzy: false,
        notes: &["the patch's line endings differ from those of the file, which are kept"],
    },
    AppliedPatchCase {
        name: "LF file, CRLF patch",
        original: "a\nb\nc\n",
        patch: "@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n c\r\n",
        text: "a\nB\nc\n",
        fuzzy: false,
        notes: &["the patch's line endings differ from those of the file, which are kept"],
    },
    AppliedPatchCase {
        name: "mixed endings stay where they are",
        original: "a\r\nb\nc\r\nd\r\n",
        patch: "@@ -2,2 +2,2 @@\r\n b\r\n-c\r\n+C\r\n",
        text: "a\r\nb\nC\r\nd\r\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "file without a last newline, no marker",
        original: "a\nb",
        patch: "@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
        text: "a\nB",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "appending to a file without a last newline",
        original: "a\nb",
        patch: "@@ -1,2 +1,3 @@\n a\n b\n+c\n",
        text: "a\nb\nc",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "the marker takes the newline away",
        original: "a\nb\n",
        patch: "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\n",
        text: "a\nB",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "the marker on the old side adds the newline",
        original: "a\nb",
        patch: "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
        text: "a\nb\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "the marker picks the end of the file",
        original: "x\ny\nx",
        patch: "@@ @@\n-x\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n",
        text: "x\ny\nz",
        fuzzy: true,
        notes: &["hunk 1: found at line 3 by its text"],
    },
    AppliedPatchCase {
        name: "a byte order mark is preserved",
        original: "\u{feff}a\nb\n",
        patch: "@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
        text: "\u{feff}A\nb\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "a byte order mark is quoted",
        original: "\u{feff}a\nb\n",
        patch: "@@ -1,2 +1,2 @@\n-\u{feff}a\n+a\n b\n",
        text: "a\nb\n",
        fuzzy: false,
        notes: &[],
    },
];

#[test]
fn line_endings_and_the_last_newline() {
    check(LINE_ENDINGS_AND_THE_LAST_NEWLINE);
}

const CONTEXT_THAT_IS_NOT_QUOTED_WELL: &[AppliedPatchCase] = &[
    AppliedPatchCase {
        name: "an empty context line without its space",
        original: "a\n\nb\nc\n",
        patch: "@@ -1,4 +1,4 @@\n a\n\n-b\n+B\n c\n",
        text: "a\n\nB\nc\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "an empty last context line without its space",
        original: "a\nb\n\nc\n",
        patch: "@@ -1,3 +1,3 @@\n a\n-b\n+B\n\n",
        text: "a\nB\n\nc\n",
        fuzzy: false,
        notes: &[],
    },
    AppliedPatchCase {
        name: "trailing whitespace",
        original: "a  \nb\t\nc\n",
        patch: "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c  \n",
        text: "a  \nB\nc\n",
        fuzzy: true,
        notes: &["hunk 1: found at line 1 with different trailing whitespace"],
    },
    AppliedPatchCase {
        name: "a left-out line between context lines",
        original: "fn a() {\n    // note\n    one();\n    two();\n}\n",
        patch: "@@ -1,4 +1,4 @@\n fn a() {\n     one();\n-    two();\n+    TWO();\n }\n",
        text: "fn a() {\n    // note\n    one();\n    TWO();\n}\n",
        fuzzy: true,
        notes: &["hunk 1: found at line 1 with one line of the file omitted"],
    },
    AppliedPatchCase {
        name: "a left-out line before a removed one, confirmed by the counts",
        original: "fn a() {\n    // note\n    two();\n}\n",
        patch: "@@ -1,4 +1,4 @@\n fn a() {\n-    two();\n+    TWO();\n }\n",
        text: "fn a() {\n    // note\n    TWO();\n}\n",
        fuzzy: true,
        notes: &[
            "hunk 1: states 4 old and 4 new lines, has 3 and 3",
            "hunk 1: found at line 1 with one line of the file omitted",
        ],
    },
    AppliedPatchCase {
        name: "two empty lines quoted as one",
        original: "a\n\n\nb\nc\n",
        patch: "@@\n a\n \n b\n-c\n+C\n",
        text: "a\n\n\nb\nC\n",
        fuzzy: true,
        notes: &["hunk 1: found at line 1 with one line of the file omitted"],
    },
    AppliedPatchCase {
        name: "a misquoted first line",
        original: FUNCTION,
        patch: "@@ -1,4 +1,4 @@\n fn a(x: u8) {\n     one();\n-    two();\n+    TWO();\n     three();\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &["hunk 1: found at line 1 with one misquoted context line"],
    },
    AppliedPatchCase {
        name: "a misquoted last line, without a line number",
        original: FUNCTION,
        patch: "@@\n     one();\n-    two();\n+    TWO();\n     three(4);\n",
        text: FUNCTION_CHANGED,
        fuzzy: true,
        notes: &["hunk 1: found at line 2 with one misquoted context line"],
    },
];

#[test]
fn misquoted_context_lines() {
    check(CONTEXT_THAT_IS_NOT_QUOTED_WELL);
}

const ANOTHER_INDENTATION_MOVES_THE_ADDED_LINES: &[AppliedPatchCase] = &[
    AppliedPatchCase {
        name: "tabs in the file, spaces in the patch",
        original: "fn a() {\n\tif b {\n\t\tc();\n\t}\n}\n",
        patch: "@@ -2,3 +2,4 @@\n     if b {\n-        c();\n+        d();\n+        e();\n     }\n",
        text: "fn a() {\n\tif b {\n\t\td();\n\t\te();\n\t}\n}\n",
        fuzzy: true,
        notes: &[
            "hunk 1: found at line 2 with a different indentation, which was applied to the added lines, too",
        ],
    },
    AppliedPatchCase {
        name: "the patch starts at the margin",
        original: "class A:\n    def b(self):\n        return 1\n",
        patch: "@@\n def b(self):\n-    return 1\n+    x = 2\n+\n+    return x\n",
        text: "class A:\n    def b(self):\n        x = 2\n\n        return x\n",
        fuzzy: true,
        notes: &[
            "hunk 1: found at line 2 with a different indentation, which was applied to the added lines, too",
        ],
    },
    AppliedPatchCase {
        name: "one space too many after the sign",
        original: "a\nb\nc\n",
        patch: "@@ -1,3 +1,3 @@\n  a\n- b\n+ B\n  c\n",
        text: "a\nB\nc\n",
        fuzzy: true,
        notes: &[
            "hunk 1: found at line 1 with a different indentation, which was applied to the added lines, too",
        ],
    },
];

#[test]
fn another_indentation_moves_the_added_lines() {
    check(ANOTHER_INDENTATION_MOVES_THE_ADDED_LINES);
}

fn check(cases: &[AppliedPatchCase]) {
    for case in cases {
        let expected = PatchedFile {
            text: Some(case.text.to_owned()),
            mode: None,
            fuzzy: case.fuzzy,
            notes: case.notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        let patched = apply(PATH, Some(case.original), case.patch);
        assert_eq!(patched, Ok(expected), "{}", case.name);
    }
}

#[test]
fn later_hunks_inherit_the_offset_of_earlier_ones() {
    let original = format!(
        "new\nnew too\n{}",
        twenty_lines().replace("line15", "line5")
    );
    // Both numbers are from before two lines were added on top, and `line5` occurs twice.
    let patch = "@@ -2,2 +2,3 @@\n line2\n+more\n line3\n@@ -15 +16 @@\n-line5\n+LINE15\n";
    let expected = original
        .replacen("line2\n", "line2\nmore\n", 1)
        .replace("line14\nline5\n", "line14\nLINE15\n");
    assert_eq!(
        apply(PATH, Some(&original), patch).map(|patched| patched.text),
        Ok(Some(expected))
    );
}

#[test]
fn a_second_hunk_whose_number_counts_added_lines_is_found_by_its_text() {
    let patch =
        "@@ -2,2 +2,4 @@\n line2\n+x\n+y\n line3\n@@ -12,2 +12,2 @@\n line10\n-line11\n+LINE11\n";
    let expected = twenty_lines()
        .replace("line2\n", "line2\nx\ny\n")
        .replace("line11", "LINE11");
    assert_eq!(
        apply(PATH, Some(&twenty_lines()), patch),
        Ok(PatchedFile {
            text: Some(expected),
            mode: None,
            fuzzy: true,
            notes: vec!["hunk 2: found at line 10 by its text".into()],
        })
    );
}

#[test]
fn files_are_created_and_deleted() {
    let created = |text: &str| {
        Ok(PatchedFile {
            text: Some(text.to_owned()),
            mode: None,
            fuzzy: false,
            notes: Vec::new(),
        })
    };
    let new = "--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    assert_eq!(apply(PATH, None, new), created("a\nb\n"));
    assert_eq!(apply(PATH, Some(""), new), created("a\nb\n"));
    assert_eq!(
        apply(PATH, None, &new.replace("/dev/null", "a/src/lib.rs")),
        created("a\nb\n")
    );
    assert_eq!(apply(PATH, None, "@@\n+a\n+b\n"), created("a\nb\n"));
    assert_eq!(
        apply(PATH, None, &new.replace('\n', "\r\n")),
        created("a\nb\n")
    );
    let unix_header = new.replace("+a\n+b\n", "+a\r\n+b\r\n");
    assert_eq!(apply(PATH, None, &unix_header), created("a\r\nb\r\n"));
    let open_end = format!("{new}\\ No newline at end of file\n");
    assert_eq!(apply(PATH, None, &open_end), created("a\nb"));
    let empty = "diff --git a/src/lib.rs b/src/lib.rs\nnew file mode 100644\nindex 000..e69\n";
    assert_eq!(apply(PATH, None, empty), created(""));

    let miscounted = "diff --git a/src/lib.rs b/src/lib.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1,9 @@\n+a\n\n+b\n";
    assert_eq!(
        apply(PATH, None, miscounted),
        Ok(PatchedFile {
            text: Some("a\n\nb\n".into()),
            mode: None,
            fuzzy: true,
            notes: vec![
                "hunk 1: states 0 old and 9 new lines, has 1 and 3".into(),
                "hunk 1: empty lines without `+` were added as empty lines".into(),
            ],
        })
    );

    let gone = Ok(PatchedFile {
        text: None,
        mode: None,
        fuzzy: false,
        notes: Vec::new(),
    });
    let delete = "--- a/src/lib.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n";
    assert_eq!(apply(PATH, Some("a\nb\n"), delete), gone);
    assert_eq!(apply(PATH, Some("a\r\nb"), delete), gone);
    let delete_empty = "diff --git a/src/lib.rs b/src/lib.rs\ndeleted file mode 100644\n";
    assert_eq!(apply(PATH, Some(""), delete_empty), gone);
}
