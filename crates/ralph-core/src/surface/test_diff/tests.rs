//! Diffs of test files and their findings.

use super::{TestDiff, examine_test_diff};

/// Returns a diff of one file with these lines in its hunk.
fn diff(path: &str, lines: &[&str]) -> String {
    format!(
        "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n{}\n",
        lines.join("\n")
    )
}

fn describe(examined: &TestDiff) -> Vec<String> {
    let weakened = examined.weakened.iter();
    let rewritten = examined.rewritten.iter();
    weakened
        .chain(rewritten)
        .map(|finding| format!("{}: {}", finding.path, finding.why))
        .collect()
}

#[test]
fn weakened_tests_are_found_in_many_languages() {
    for (lines, why) in [
        (&["-    assert add(1, 2) == 3"][..], "1 assertion removed"),
        (
            &["-    expect(x).toBe(1)", "-    expect(y).toBe(2)"],
            "2 assertions removed",
        ),
        (&["-        assert_eq!(a, b);"], "1 assertion removed"),
        (&["-    self.assertEqual(a, b)"], "1 assertion removed"),
        (&["-\tt.Errorf(\"wrong\")"], "1 assertion removed"),
        (&["-grep -q one a.txt || exit 1"], "1 assertion removed"),
        (
            &["+@pytest.mark.skip", " def test_a():"],
            "1 skip marker added",
        ),
        (&["+@pytest.mark.xfail"], "1 skip marker added"),
        (&["+    pytest.skip('later')"], "1 skip marker added"),
        (&["+    #[ignore = \"slow\"]"], "1 skip marker added"),
        (&["+\tt.Skip(\"later\")"], "1 skip marker added"),
        (&["+  @Disabled"], "1 skip marker added"),
        (
            &["-it('adds', () => {", "+it.skip('adds', () => {"],
            "1 skip marker added",
        ),
        (
            &["-describe('adds', () => {", "+xdescribe('adds', () => {"],
            "1 skip marker added",
        ),
        (
            &["-  it('adds', () => {", "+  it.only('adds', () => {"],
            "1 marker added that runs only some tests",
        ),
        (
            &["-def test_a():", "-    assert add(1, 2) == 3"],
            "1 test removed, 1 assertion removed",
        ),
    ] {
        let why = format!("x: test weakened: {why}");
        assert_eq!(
            describe(&examine_test_diff(&diff("x", lines))),
            [why],
            "{lines:?}"
        );
    }
}

#[test]
fn reports_removed_files_but_not_new_ones() {
    let gone = "diff --git a/t/a b.py b/t/a b.py\ndeleted file mode 100644\nindex 1..0\n";
    let new = "diff --git a/t/n.py b/t/n.py\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/t/n.py\n@@ -0,0 +1 @@\n+@pytest.mark.skip\n";
    let examined = examine_test_diff(&format!("{gone}{new}"));
    assert_eq!(describe(&examined), ["t/a b.py: test file removed"]);
}

#[test]
fn reports_rewritten_assertions_but_not_additional_tests() {
    let examined = examine_test_diff(&diff("x", &["-    assert a == 3", "+    assert a == 4"]));
    assert_eq!(
        describe(&examined),
        ["x: test changed: 1 assertion rewritten"]
    );
    assert_eq!(examined.weakened, []);
    let more = diff("x", &["+def test_b():", "+    assert b == 4", " same"]);
    assert_eq!(examine_test_diff(&more), TestDiff::default());
}

#[test]
fn files_are_counted_separately() {
    let both = diff("a", &["-    assert a"]) + &diff("b", &["+    assert b"]);
    assert_eq!(
        describe(&examine_test_diff(&both)),
        ["a: test weakened: 1 assertion removed"]
    );
}

#[test]
fn ignores_text_that_is_not_a_diff() {
    for text in [
        "",
        "\n\n",
        "@@ -1 +1 @@\n-assert x\n",
        "diff --git \n@@ \n+x\n",
    ] {
        examine_test_diff(text);
    }
    assert_eq!(examine_test_diff("nothing"), TestDiff::default());
}
