//! Validates request paths, so that the gate and the provider cannot read them differently.

/// A pattern for the paths that a credential may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathPattern {
    /// Exactly this path.
    Exact(String),
    /// This path followed by a single segment.
    ChildOf(String),
}

impl PathPattern {
    pub(super) fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == exact,
            Self::ChildOf(parent) => path
                .strip_prefix(parent.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| !name.is_empty() && !name.contains('/')),
        }
    }
}

/// Returns whether a path is in canonical form: no escapes, empty segments, dot segments or
/// parameters.
pub(super) fn is_canonical_path(path: &str) -> bool {
    let is_part =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'@');
    path.strip_prefix('/').is_some_and(|rest| {
        rest.split('/').all(|part| {
            !part.is_empty() && part != "." && part != ".." && part.bytes().all(is_part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_paths_are_accepted() {
        for (path, plain) in [
            ("/v1/messages", true),
            ("/v1/models/claude-sonnet-4-5@1:x", true),
            ("/owner/repo.git/info/refs", true),
            ("/", false),
            ("", false),
            ("v1/messages", false),
            ("/v1//messages", false),
            ("/v1/messages/", false),
            ("/v1/../admin", false),
            ("/v1/./messages", false),
            ("/v1/%2e%2e/admin", false),
            ("/v1%2fmessages", false),
            ("/v1/messages%00", false),
            ("/v1\\messages", false),
            ("/v1/messages;x=1", false),
            ("/v1/mess ages", false),
            ("/v1/m\u{e9}ssages", false),
        ] {
            assert_eq!(is_canonical_path(path), plain, "{path}");
        }
    }

    #[test]
    fn patterns_match_exactly_or_one_level_below() {
        let exact = PathPattern::Exact("/v1/models".into());
        let below = PathPattern::ChildOf("/v1/models".into());
        for (path, is_exact, is_below) in [
            ("/v1/models", true, false),
            ("/v1/models/a", false, true),
            ("/v1/models/a/b", false, false),
            ("/v1/modelsx", false, false),
            ("/v1/models/", false, false),
        ] {
            assert_eq!(exact.matches(path), is_exact, "{path}");
            assert_eq!(below.matches(path), is_below, "{path}");
        }
    }
}
