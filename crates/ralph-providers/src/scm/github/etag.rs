//! Remembers responses, so that an unchanged resource costs no request of the rate limit.

use std::collections::VecDeque;

use hyper::header::ETAG;

use super::response::{ReadResponse, header};

/// The largest number of remembered responses, and of their bytes.
const MAX_RESPONSES: usize = 64;
const MAX_BYTES: usize = 4 << 20;

/// The responses with an `ETag`, the oldest first.
#[derive(Debug, Default)]
pub(super) struct ResponseCache(VecDeque<CachedResponse>);

#[derive(Debug)]
struct CachedResponse {
    url: String,
    tag: String,
    response: ReadResponse,
}

impl ResponseCache {
    /// Returns the tag and the response of an address.
    pub(super) fn find(&self, url: &str) -> Option<(&str, &ReadResponse)> {
        let found = self.0.iter().find(|cached| cached.url == url);
        found.map(|cached| (cached.tag.as_str(), &cached.response))
    }

    /// Remembers a response if it has a tag, and drops the oldest ones above the limits.
    pub(super) fn insert(&mut self, url: &str, response: &ReadResponse) {
        self.0.retain(|cached| cached.url != url);
        if let Some(tag) = header(&response.headers, ETAG.as_str()) {
            self.0.push_back(CachedResponse {
                url: url.to_owned(),
                tag: tag.to_owned(),
                response: response.clone(),
            });
        }
        let size = |cached: &CachedResponse| cached.response.body.len();
        while self.0.len() > MAX_RESPONSES || self.0.iter().map(size).sum::<usize>() > MAX_BYTES {
            self.0.pop_front();
        }
    }

    /// Forgets all responses: another credential may see other objects.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use hyper::header::{HeaderMap, HeaderValue};

    use super::*;

    fn response(size: usize) -> ReadResponse {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static("\"one\""));
        ReadResponse {
            status: StatusCode::OK,
            headers,
            body: vec![0; size],
        }
    }

    #[test]
    fn old_responses_are_dropped() {
        let mut cache = ResponseCache::default();
        for number in 0..100 {
            cache.insert(&format!("url-{number}"), &response(1));
        }
        assert_eq!(cache.0.len(), MAX_RESPONSES);
        assert!(cache.find("url-0").is_none());
        assert_eq!(cache.find("url-99").unwrap().0, "\"one\"");
        cache.insert("large", &response(MAX_BYTES));
        assert_eq!(cache.0.len(), 1);
        cache.insert("too large", &response(MAX_BYTES + 1));
        assert_eq!(cache.0.len(), 0);
    }
}
