//! Screens fields that reference data outside the request, for all wire formats.

use ralph_core::net::{Endpoint, ProviderTool};
use serde_json::Value;

use super::{Screener, quoted};

/// Fields whose value is a URL, or an object with a `url`.
const URL_FIELDS: [&str; 9] = [
    "url",
    "image_url",
    "file_url",
    "video_url",
    "audio_url",
    "document_url",
    "uri",
    "file_uri",
    "fileUri",
];
/// Fields whose value identifies a file at the provider.
const FILE_FIELDS: [&str; 2] = ["file_id", "fileId"];

impl Screener<'_> {
    /// Refuses URLs and stored files referenced by a message part of any type, because some servers
    /// decide by the field alone.
    pub(super) fn screen_remote_fields(&mut self, part: &Value) {
        for field in URL_FIELDS {
            let Some(value) = part.get(field) else {
                continue;
            };
            let url = value.get("url").unwrap_or(value);
            if let Some(url) = url.as_str().filter(|url| !is_inline(url)) {
                self.refuse(Some(ProviderTool::Urls), describe_url(url));
            } else if !url.is_string() && !url.is_null() {
                self.refuse(Some(ProviderTool::Urls), "a URL");
            }
        }
        let file = part.get("file").unwrap_or(&Value::Null);
        for field in FILE_FIELDS {
            for value in [part.get(field), file.get(field)].into_iter().flatten() {
                if !value.is_null() {
                    self.refuse(Some(ProviderTool::Files), "a stored file");
                }
            }
        }
        if file.get("file_url").is_some_and(|url| !url.is_null()) {
            self.refuse(Some(ProviderTool::Urls), "a URL");
        }
    }
}

/// Returns whether a URL contains its data, or is empty.
fn is_inline(url: &str) -> bool {
    let scheme = url.trim_start().get(..5);
    url.is_empty() || scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// Describes a URL by its host, because the rest can contain a secret.
fn describe_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    match Endpoint::parse(authority, 443) {
        Ok(endpoint) => format!("a URL at {}", quoted(&endpoint.host.to_string())),
        Err(_) => "a URL".to_owned(),
    }
}
