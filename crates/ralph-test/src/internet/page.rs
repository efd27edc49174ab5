//! What a site answers.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What a site answers at one path.
#[derive(Debug, Clone)]
pub enum SitePage {
    /// A file.
    File {
        /// Its media type.
        kind: &'static str,
        /// What is in it.
        bytes: Bytes,
    },
    /// The way to another address.
    Redirect(String),
    /// Every header and the body of the request, in the headers and the body of the answer. The headers
    /// are among the visits, too.
    Echo,
    /// Lines that never end.
    Endless,
}

/// The pages of a site by their paths, which begin with `/`.
pub type SitePages = BTreeMap<String, SitePage>;

impl SitePage {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::file("text/plain", text.to_owned())
    }

    /// A file of a kind.
    pub fn file(kind: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self::File {
            kind,
            bytes: bytes.into(),
        }
    }
}
