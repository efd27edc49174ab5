//! What is refused, and how it is said.

use serde_saphyr::granit_parser::{ErrorKind, Marker, ScanError};

use crate::lint::{Finding, Place, count, excerpt};

/// How deep lists and maps may be nested.
pub(in crate::task) const MAX_DEPTH: usize = 16;

/// The code of the one refusal that is worth saying more than once.
pub(super) const DUPLICATE_KEY: &str = "duplicate-key";

/// Returns the place in the file: the front matter starts in its second line.
pub(super) fn place(marker: &Marker) -> Place {
    Place {
        line: count(marker.line() + 1),
        column: count(marker.col() + 1),
    }
}

pub(super) fn anchor(name: &str) -> Finding {
    Finding::error(
        "yaml-anchor",
        format!("anchors (`&{}`) are not allowed", excerpt(name)),
        "write the value out where it is used; a text that starts with `&` needs quotes",
    )
}

pub(super) fn alias() -> Finding {
    Finding::error(
        "yaml-alias",
        "aliases (`*name`) are not allowed",
        "write the value out; a text that starts with `*` needs quotes",
    )
}

pub(super) fn tag(name: &str) -> Finding {
    Finding::error(
        "yaml-tag",
        format!("tags (`{}`) are not allowed", excerpt(name)),
        "remove it; a text that starts with `!` needs quotes",
    )
}

pub(super) fn merge_key() -> Finding {
    Finding::error(
        "yaml-merge-key",
        "merge keys (`<<`) are not allowed",
        "write the settings out",
    )
}

pub(super) fn complex_key() -> Finding {
    Finding::error(
        "yaml-complex-key",
        "a key is a list or a map",
        "use plain words as keys",
    )
}

pub(super) fn duplicate_key(name: &str, first: u32, second: u32) -> Finding {
    let name = excerpt(name);
    Finding::error(
        DUPLICATE_KEY,
        format!("key `{name}` is given twice, in line {first} and in line {second}"),
        "keep one of the two lines",
    )
}

pub(super) fn second_document() -> Finding {
    Finding::error(
        "yaml-documents",
        "the front matter holds more than one YAML document",
        "keep one set of settings, without `---` or `...` inside",
    )
}

pub(super) fn control_character(control: char) -> Finding {
    Finding::error(
        "control-character",
        format!("a text contains the control character {control:?}"),
        "remove the escape; `\\n` and `\\t` are the only control characters allowed",
    )
}

pub(super) fn too_deep() -> Finding {
    Finding::error(
        "yaml-depth",
        format!("lists and maps are nested more than {MAX_DEPTH} deep"),
        "settings need two levels at most",
    )
}

/// Says what the parser stopped at. Some of it is refused by its own name.
pub(super) fn not_yaml(error: &ScanError) -> Finding {
    let finding = if *error.kind() == ErrorKind::UndeclaredTagHandle {
        tag("!")
    } else if *error.kind() == ErrorKind::RecursionLimitExceeded {
        too_deep()
    } else if *error.kind() == ErrorKind::DirectiveDisallowed {
        Finding::error(
            "yaml-directive",
            "YAML directives (`%`) are not allowed",
            "remove the line; a text that starts with `%` needs quotes",
        )
    } else {
        Finding::error(
            "invalid-yaml",
            format!("the front matter is not valid YAML: {}", error.info()),
            "indent with spaces, and put quotes around a text that contains `: ` or ` #`",
        )
    };
    finding.at(place(error.marker()))
}
