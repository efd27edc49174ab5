//! The findings about invalid front matter.

use serde_saphyr::granit_parser::{ErrorKind, Marker, ScanError};

use crate::lint::{FindingLocation, LintFinding, excerpt, to_u32};
use crate::printable::name_character;

/// Maximum nesting depth of lists and maps.
pub(in crate::task) const MAX_DEPTH: usize = 16;

/// The only finding that is reported more than once.
pub(super) const DUPLICATE_KEY: &str = "duplicate-key";

/// Returns the location in the file: the front matter starts in the second line.
pub(super) fn marker_location(marker: &Marker) -> FindingLocation {
    FindingLocation {
        line: to_u32(marker.line() + 1),
        column: to_u32(marker.col() + 1),
    }
}

pub(super) fn anchor(name: &str) -> LintFinding {
    LintFinding::error(
        "yaml-anchor",
        format!("anchors (`&{}`) are not allowed", excerpt(name)),
        "write the value out where it is used; a string that starts with `&` needs quotes",
    )
}

pub(super) fn alias() -> LintFinding {
    LintFinding::error(
        "yaml-alias",
        "aliases (`*name`) are not allowed",
        "write the value out; a string that starts with `*` needs quotes",
    )
}

pub(super) fn tag(name: &str) -> LintFinding {
    LintFinding::error(
        "yaml-tag",
        format!("tags (`{}`) are not allowed", excerpt(name)),
        "remove it; a string that starts with `!` needs quotes",
    )
}

pub(super) fn merge_key() -> LintFinding {
    LintFinding::error(
        "yaml-merge-key",
        "merge keys (`<<`) are not allowed",
        "write the settings out",
    )
}

pub(super) fn complex_key() -> LintFinding {
    LintFinding::error(
        "yaml-complex-key",
        "keys cannot be lists or maps",
        "use plain words as keys",
    )
}

pub(super) fn duplicate_key(name: &str, first: u32, second: u32) -> LintFinding {
    let name = excerpt(name);
    LintFinding::error(
        DUPLICATE_KEY,
        format!("key `{name}` is defined twice, in line {first} and in line {second}"),
        "remove one of the two lines",
    )
}

pub(super) fn second_document() -> LintFinding {
    LintFinding::error(
        "yaml-documents",
        "the front matter contains more than one YAML document",
        "keep one set of settings, without `---` or `...` inside",
    )
}

pub(super) fn control_character(control: char) -> LintFinding {
    LintFinding::error(
        "control-character",
        format!(
            "a string contains the control character {}",
            name_character(control)
        ),
        "remove the escape; `\\n` and `\\t` are the only control characters allowed",
    )
}

pub(super) fn too_deep() -> LintFinding {
    LintFinding::error(
        "yaml-depth",
        format!("lists and maps are nested more than {MAX_DEPTH} levels deep"),
        "settings need two levels at most",
    )
}

/// Describes a parse error. Some kinds have their own finding.
pub(super) fn not_yaml(error: &ScanError) -> LintFinding {
    let finding = if *error.kind() == ErrorKind::UndeclaredTagHandle {
        tag("!")
    } else if *error.kind() == ErrorKind::RecursionLimitExceeded {
        too_deep()
    } else if *error.kind() == ErrorKind::DirectiveDisallowed {
        LintFinding::error(
            "yaml-directive",
            "YAML directives (`%`) are not allowed",
            "remove the line; a string that starts with `%` needs quotes",
        )
    } else {
        LintFinding::error(
            "invalid-yaml",
            format!("the front matter is not valid YAML: {}", error.info()),
            "indent with spaces, and put quotes around a string that contains `: ` or ` #`",
        )
    };
    finding.at_location(marker_location(error.marker()))
}
