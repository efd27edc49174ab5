//! Responses: examples with changed fields, errors and pages.

use serde_json::{Value, json};

use super::wire::RawResponse;

/// The response to a request.
pub(super) struct GitHubResponse {
    pub(super) status: u16,
    pub(super) body: Value,
    /// The body of a response that is not JSON.
    text: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl GitHubResponse {
    pub(super) fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            text: None,
            headers: Vec::new(),
        }
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            ..Self::new(status, Value::Null)
        }
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        let documentation_url = "https://docs.github.com/rest";
        Self::new(
            status,
            json!({"message": message, "documentation_url": documentation_url, "status": status.to_string()}),
        )
    }

    pub(super) fn not_found() -> Self {
        Self::error(404, "Not Found")
    }

    /// Rejects a value of a request.
    pub(super) fn invalid(resource: &str, field: &str, code: &str, message: &str) -> Self {
        let mut response = Self::error(422, "Validation Failed");
        let error = json!({"resource": resource, "field": field, "code": code, "message": message});
        response.body["errors"] = json!([error]);
        response
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns a response without content if the client has this one already.
    pub(super) fn revalidate(self, known: Option<&String>) -> Self {
        if self.status != 200 || self.text.is_some() {
            return self;
        }
        let tag = format!("W/\"{}\"", tag(&self.body.to_string()));
        if known == Some(&tag) {
            let headers = self.headers;
            let unchanged = Self {
                headers,
                ..Self::text(304, "")
            };
            return unchanged.header("etag", tag);
        }
        self.header("etag", tag)
    }

    pub(super) fn into_raw(self) -> RawResponse {
        let (kind, body) = match self.text {
            Some(text) => ("text/plain; charset=utf-8", text),
            None => ("application/json; charset=utf-8", self.body.to_string()),
        };
        let headers = self.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let kind = ("content-type".to_owned(), kind.to_owned());
        RawResponse {
            status: self.status,
            headers: std::iter::once(kind).chain(headers).collect(),
            body: body.into_bytes(),
        }
    }
}

/// Returns a digest of a text (FNV-1a).
fn tag(text: &str) -> String {
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{digest:016x}")
}

/// The address of a list.
pub(super) struct ListAddress<'a> {
    /// The address of the API.
    pub(super) api: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    /// The largest number of entries on a page.
    pub(super) page_size: usize,
}

impl ListAddress<'_> {
    /// Returns a parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        parameter(self.query, name)
    }

    /// Responds with a page of the entries.
    pub(super) fn page(&self, entries: &[Value]) -> GitHubResponse {
        let (page, next) = self.select(entries);
        self.link(GitHubResponse::new(200, page.into()), next)
    }

    /// Responds with a page of the entries in a field, and the number of all entries.
    pub(super) fn counted_page(&self, field: &str, entries: &[Value]) -> GitHubResponse {
        let (page, next) = self.select(entries);
        let body = json!({"total_count": entries.len(), field: page});
        self.link(GitHubResponse::new(200, body), next)
    }

    fn select(&self, entries: &[Value]) -> (Vec<Value>, Option<usize>) {
        let number = |name| {
            let text = self.parameter(name);
            text.and_then(|text| ralph_core::parse_value::<usize>(&text))
        };
        let size = number("per_page")
            .unwrap_or(30)
            .clamp(1, self.page_size.max(1));
        let page = number("page").unwrap_or(1).max(1);
        let mut pages = entries.chunks(size).skip(page - 1);
        let selected = pages.next().unwrap_or_default().to_vec();
        (selected, pages.next().map(|_| page + 1))
    }

    fn link(&self, response: GitHubResponse, next: Option<usize>) -> GitHubResponse {
        let Some(next) = next else {
            return response;
        };
        let pairs = self.query.split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("page="));
        let pairs: Vec<&str> = pairs.chain([""]).collect();
        let query = pairs.join("&");
        let (api, path) = (self.api, self.path);
        let first = format!("<{api}{path}?{query}page=1>; rel=\"first\"");
        response.header(
            "link",
            format!("<{api}{path}?{query}page={next}>; rel=\"next\", {first}"),
        )
    }
}

/// Returns a decoded parameter of a query.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(percent_decode(&value.replace('+', " ")))
}

/// Decodes `%20` and the like.
pub(super) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).map(String::from_utf8_lossy);
        let byte = digits.map(|digits| u8::from_str_radix(&digits, 16));
        if let (b'%', Some(Ok(byte))) = (first, byte) {
            decoded.push(byte);
            rest = &after[2..];
        } else {
            decoded.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Returns an example with changed fields.
pub(super) fn example(text: &str, changes: &Value) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("an example in JSON");
    if let (Some(fields), Some(changes)) = (value.as_object_mut(), changes.as_object()) {
        let changes = changes.iter();
        fields.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
    }
    value
}
