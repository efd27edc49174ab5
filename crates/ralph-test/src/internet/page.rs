//! The pages of a site.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The response of a site at one path.
#[derive(Debug, Clone)]
pub enum SitePage {
    /// A file.
    File {
        /// The media type.
        kind: &'static str,
        bytes: Bytes,
    },
    /// A redirect to another URL.
    Redirect(String),
    /// Echoes the headers and body of the request. The headers are also recorded as visits.
    Echo,
    /// An endless stream of lines.
    Endless,
}

/// The pages of a site by path; paths start with `/`.
pub type SitePages = BTreeMap<String, SitePage>;

impl SitePage {
    /// A plain-text page.
    pub fn text(text: &str) -> Self {
        Self::file("text/plain", text.to_owned())
    }

    /// A file with a media type.
    pub fn file(kind: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self::File {
            kind,
            bytes: bytes.into(),
        }
    }
}
