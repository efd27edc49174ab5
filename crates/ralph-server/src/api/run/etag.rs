//! Versions of files: an entity tag for every content, and the conditions of requests that replace one.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_core::id::Digest;
use serde::Serialize;

use crate::problem::Problem;

/// The number of lines of a difference in a problem.
const MAX_DIFF_LINES: usize = 200;

/// The version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileVersion(pub(super) Digest);

/// A response with the version of the file that it describes.
pub(super) struct ETagged<T> {
    pub(super) version: FileVersion,
    pub(super) body: T,
}

/// What a request that replaces a file expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteCondition {
    /// One of these versions.
    Versions(Vec<String>),
    /// Any version, but the file must exist.
    Exists,
    /// There is no such file.
    Missing,
}

impl FileVersion {
    /// Returns the version of a content.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Digest::compute(bytes))
    }

    /// Returns the value of `ETag`.
    pub(super) fn entity_tag(&self) -> String {
        format!("\"{}\"", self.0.as_str())
    }

    fn header(&self) -> HeaderValue {
        // A digest consists of hexadecimal digits.
        HeaderValue::from_str(&self.entity_tag()).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

impl<T: Serialize> IntoResponse for ETagged<T> {
    fn into_response(self) -> Response {
        ([(header::ETAG, self.version.header())], Json(self.body)).into_response()
    }
}

impl WriteCondition {
    /// Returns the condition of a request; a request without one is rejected.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let value = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            // A value with other characters matches no version.
            value.map(|value| value.to_str().unwrap_or("\"\"").trim())
        };
        match (value(header::IF_MATCH), value(header::IF_NONE_MATCH)) {
            (Some("*"), None) => Ok(Self::Exists),
            (Some(tags), None) => Ok(Self::Versions(
                tags.split(',').map(|tag| tag.trim().to_owned()).collect(),
            )),
            (None, Some("*")) => Ok(Self::Missing),
            (_, Some(_)) => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid-condition",
                "`If-None-Match` must be `*`, without `If-Match`",
            )),
            (None, None) => Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                "condition-required",
                "replacing a file needs the version that you read",
            )
            .with_hint("send its `ETag` as `If-Match`, or `If-None-Match: *` for a new file")),
        }
    }

    /// Checks the condition. `current` is the content, or `None` if there is no such file; `shown` is
    /// its redacted text.
    pub(super) fn check(
        &self,
        current: Option<&FileVersion>,
        (shown, wanted): (&str, &str),
    ) -> Result<(), Problem> {
        let is_met = match (self, current) {
            (Self::Missing, None) | (Self::Exists, Some(_)) => true,
            (Self::Versions(tags), Some(version)) => tags.contains(&version.entity_tag()),
            (Self::Missing, Some(_)) | (Self::Exists | Self::Versions(_), None) => false,
        };
        if is_met {
            return Ok(());
        }
        let detail = match current {
            Some(_) => "the file has changed since you read it",
            None => "there is no such file",
        };
        let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "stale-version", detail)
            .with_hint("read it again and apply your change to the new content");
        Err(Problem {
            diff: current.map(|_| line_difference(shown, wanted)),
            ..problem
        })
    }
}

/// Returns the lines that differ between two texts, as one hunk of a diff.
fn line_difference(current: &str, wanted: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (current.lines().collect(), wanted.lines().collect());
    let same_start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let ends = old[same_start..]
        .iter()
        .rev()
        .zip(new[same_start..].iter().rev());
    let same_end = ends.take_while(|(a, b)| a == b).count();
    let (old, new) = (
        &old[same_start..old.len() - same_end],
        &new[same_start..new.len() - same_end],
    );
    let (first, removed, added) = (same_start + 1, old.len(), new.len());
    let lines = old.iter().map(|line| format!("-{line}"));
    let lines = lines.chain(new.iter().map(|line| format!("+{line}")));
    let mut text = format!("@@ -{first},{removed} +{first},{added} @@\n");
    for line in lines.take(MAX_DIFF_LINES) {
        text.push_str(&line);
        text.push('\n');
    }
    if removed + added > MAX_DIFF_LINES {
        text.push_str("…\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_only_the_changed_lines() {
        assert_eq!(
            line_difference("a\nb\nc\n", "a\nx\ny\nc\n"),
            "@@ -2,1 +2,2 @@\n-b\n+x\n+y\n"
        );
        assert_eq!(line_difference("a\na\n", "a\n"), "@@ -2,1 +2,0 @@\n-a\n");
        assert_eq!(line_difference("", "a"), "@@ -1,0 +1,1 @@\n+a\n");
        let long = "x\n".repeat(300);
        assert_eq!(
            line_difference("", &long).lines().count(),
            MAX_DIFF_LINES + 2
        );
    }

    #[test]
    fn a_request_needs_a_condition() {
        let condition = |name: header::HeaderName, value: &'static str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            WriteCondition::from_headers(&headers)
        };
        assert_eq!(
            WriteCondition::from_headers(&HeaderMap::new())
                .unwrap_err()
                .status,
            428
        );
        let versions = condition(header::IF_MATCH, "\"a\", \"b\"").unwrap();
        let tags = vec!["\"a\"".to_owned(), "\"b\"".to_owned()];
        assert_eq!(versions, WriteCondition::Versions(tags));
        assert_eq!(
            condition(header::IF_MATCH, "*").unwrap(),
            WriteCondition::Exists
        );
        let missing = condition(header::IF_NONE_MATCH, "*").unwrap();
        assert_eq!(missing, WriteCondition::Missing);
        assert_eq!(
            condition(header::IF_NONE_MATCH, "\"a\"")
                .unwrap_err()
                .status,
            400
        );
        let version = FileVersion::of(b"old");
        let stale = versions
            .check(Some(&version), ("old\n", "new\n"))
            .unwrap_err();
        assert_eq!(
            (stale.status, stale.diff.as_deref()),
            (412, Some("@@ -1,1 +1,1 @@\n-old\n+new\n"))
        );
        assert!(missing.check(None, ("", "new\n")).is_ok());
    }
}
