//! File modes in git's headers.

use super::PATH;
use crate::patch::{FileMode, apply, patched_mode};

const GIT: &str = "diff --git a/src/lib.rs b/src/lib.rs\n";
const CHANGE: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-a\n+b\n";
const NEW: &str = "--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1 @@\n+b\n";
const GONE: &str = "--- a/src/lib.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";

/// Applies a diff with these headers; returns the text and mode of the file, or the error.
fn applied(
    original: Option<&str>,
    headers: &str,
    diff: &str,
) -> Result<(Option<String>, Option<FileMode>), String> {
    let patch = format!("{GIT}{headers}{diff}");
    let patched = apply(PATH, original, &patch).map_err(|error| error.to_string())?;
    assert_eq!(patched.notes, Vec::<String>::new());
    Ok((patched.text, patched.mode))
}

/// The file, git's headers, the diff, and the resulting text and mode.
type PatchModeCase = (
    Option<&'static str>,
    &'static str,
    &'static str,
    Option<&'static str>,
    Option<FileMode>,
);

const RUN: Option<FileMode> = Some(FileMode::Executable);
const PLAIN: Option<FileMode> = Some(FileMode::Plain);

const MODE_CASES: &[PatchModeCase] = &[
    (None, "new file mode 100755\n", NEW, Some("b\n"), RUN),
    (None, "new file mode 100644\n", NEW, Some("b\n"), None),
    (
        None,
        "new file mode 100755\nindex 000..e69\n",
        "",
        Some(""),
        RUN,
    ),
    (
        Some("a\n"),
        "old mode 100644\nnew mode 100755\n",
        CHANGE,
        Some("b\n"),
        RUN,
    ),
    (
        Some("a\n"),
        "old mode 100755\nnew mode 100644\n",
        CHANGE,
        Some("b\n"),
        PLAIN,
    ),
    (
        Some("a\n"),
        "old mode 100644\nnew mode 100755\n",
        "",
        Some("a\n"),
        RUN,
    ),
    (
        Some("a\r\n"),
        "old mode 100755\nnew mode 100644\n",
        "",
        Some("a\r\n"),
        PLAIN,
    ),
    (
        Some(""),
        "old mode 100644\nnew mode 100755\n",
        "",
        Some(""),
        RUN,
    ),
    (
        Some("a\n"),
        "index 12..34 100755\n",
        CHANGE,
        Some("b\n"),
        None,
    ),
    (Some("a\n"), "deleted file mode 100755\n", GONE, None, None),
];

#[test]
fn a_mode_is_set_if_the_patch_changes_it() {
    for (original, headers, diff, text, mode) in MODE_CASES {
        let expected = Ok((text.map(str::to_owned), *mode));
        assert_eq!(
            applied(*original, headers, diff),
            expected,
            "{headers}{diff}"
        );
        let patch = format!("{GIT}{headers}{diff}");
        assert_eq!(patched_mode(PATH, &patch), *mode, "{headers}{diff}");
    }
}

#[test]
fn links_submodules_and_other_modes_are_rejected() {
    let link =
        "the patch is for a symbolic link (mode 120000); use a `run` action with `ln -s` or `rm`";
    let submodule = "the patch is for a submodule (mode 160000); only files can be patched";
    for (original, headers, diff, message) in [
        (None, "new file mode 120000\n", NEW, link),
        (
            Some("a\n"),
            "old mode 100644\nnew mode 120000\n",
            CHANGE,
            link,
        ),
        (
            Some("a\n"),
            "old mode 120000\nnew mode 100644\n",
            CHANGE,
            link,
        ),
        (Some("a\n"), "index 12..34 120000\n", CHANGE, link),
        (Some("a\n"), "deleted file mode 120000\n", GONE, link),
        (None, "new file mode 160000\n", NEW, submodule),
        (Some("a\n"), "index 12..34 160000\n", CHANGE, submodule),
        (
            None,
            "new file mode 104755\n",
            NEW,
            "the patch has the file mode `104755`; only 100644 and 100755 are supported",
        ),
        (
            None,
            "old mode 100644\nnew mode 100755\n",
            "",
            "`src/lib.rs` does not exist, so there is nothing to change; add all lines to create it",
        ),
    ] {
        assert_eq!(
            applied(original, headers, diff),
            Err(message.to_owned()),
            "{headers}{diff}"
        );
    }
}
