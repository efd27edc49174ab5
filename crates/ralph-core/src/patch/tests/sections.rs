//! Hunks that match at several positions and name a section in their `@@` line.

use super::PATH;
use crate::patch::apply;

const RUST: &str = "impl A {\n    fn one(&self) {\n        x();\n        y();\n    }\n\n    fn two(&self) {\n        \
                    x();\n        y();\n    }\n}\n\nfn two() {\n        x();\n        y();\n}\n";
const PYTHON: &str = "class A:\n    def run(self):\n        x()\n        return 1\n\nclass B:\n    def run(self):\n        \
                      x()\n        return 1\n";
const MARKDOWN: &str =
    "# Guide\n\n## Setup\n\nRun it.\n\n## Use\n\nRun it.\n\n### More\n\nRun it.\n";
const INI: &str = "[one]\nport = 1\n[two]\nport = 1\n";

const BODY: &str = "         x();\n-        y();\n+        z();\n";

fn changed_line(original: &str, patch: &str) -> Result<usize, String> {
    let patched = apply(PATH, Some(original), patch).map_err(|error| error.to_string())?;
    let text = patched.text.unwrap();
    let mut pairs = original.lines().zip(text.lines());
    Ok(pairs.position(|(old, new)| old != new).unwrap() + 1)
}

/// A name, the file, the `@@` line, the lines of the hunk and the changed line.
type PatchSectionCase = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    usize,
);

const SECTION_CASES: &[PatchSectionCase] = &[
    ("a method", RUST, "@@ @@ fn one(&self) {", BODY, 4),
    ("its name alone", RUST, "@@ fn one", BODY, 4),
    (
        "with a wrong number",
        RUST,
        "@@ -40,2 +40,2 @@ fn one(&self) {",
        BODY,
        4,
    ),
    (
        "a method like a function",
        RUST,
        "@@ @@ fn two(&self) {",
        BODY,
        9,
    ),
    (
        "a function like a method",
        RUST,
        "@@ -1,2 +1,2 @@ fn two() {",
        BODY,
        15,
    ),
    (
        "a class",
        PYTHON,
        "@@ -90,2 +90,2 @@ class B:",
        "         x()\n-        return 1\n+        return 2\n",
        9,
    ),
    (
        "a heading",
        MARKDOWN,
        "@@ @@ ## Setup",
        " \n-Run it.\n+Start it.\n",
        5,
    ),
    (
        "a heading without its marks",
        MARKDOWN,
        "@@ @@ More",
        " \n-Run it.\n+Start it.\n",
        13,
    ),
    (
        "a section of settings",
        INI,
        "@@ @@ [two]",
        "-port = 1\n+port = 2\n",
        4,
    ),
    (
        "the number among two in the section",
        MARKDOWN,
        "@@ -12,2 +12,2 @@ ## Use",
        " \n-Run it.\n+Start it.\n",
        13,
    ),
    (
        "a section that does not exist",
        RUST,
        "@@ -3,2 +3,2 @@ fn nine() {",
        BODY,
        4,
    ),
];

#[test]
fn the_section_selects_among_equal_positions() {
    for (name, original, header, body, line) in SECTION_CASES {
        let patch = format!("{header}\n{body}");
        assert_eq!(changed_line(original, &patch), Ok(*line), "{name}");
    }
}

#[test]
fn a_section_that_selects_no_position_is_named() {
    for (name, original, header, body, line_numbers, section) in [
        (
            "none of that name",
            RUST,
            "@@ @@ fn nine() {",
            BODY,
            "3, 8, 14",
            "fn nine() {",
        ),
        (
            "two of that name",
            RUST,
            "@@ fn two",
            BODY,
            "3, 8, 14",
            "fn two",
        ),
        (
            "the number of another position",
            RUST,
            "@@ -3,2 +3,2 @@ fn two() {",
            BODY,
            "3, 8, 14",
            "fn two() {",
        ),
        (
            "two positions in it",
            MARKDOWN,
            "@@ @@ ## Use",
            " \n-Run it.\n+Start it.\n",
            "4, 8, 12",
            "## Use",
        ),
        (
            "all of them in it",
            PYTHON,
            "@@ @@ def run(self):",
            "         x()\n-        return 1\n+        return 2\n",
            "3, 8",
            "def run(self):",
        ),
    ] {
        let patch = format!("{header}\n{body}");
        let message = format!(
            "hunk 1: its old lines match at lines {line_numbers}, and neither its line number nor its section `{section}` selects one of them; \
             quote more lines around the change"
        );
        assert_eq!(changed_line(original, &patch), Err(message), "{name}");
    }
}

#[test]
fn a_section_selects_among_positions_with_different_indentation() {
    let body = " x();\n-y();\n+z();\n";
    let patch = format!("@@ @@ fn one(&self) {{\n{body}");
    assert_eq!(changed_line(RUST, &patch), Ok(4));
}

#[test]
fn one_position_needs_no_section() {
    let patch = "@@ -1,2 +1,2 @@ fn nine() {\n [two]\n-port = 1\n+port = 2\n";
    assert_eq!(changed_line(INI, patch), Ok(4));
}
