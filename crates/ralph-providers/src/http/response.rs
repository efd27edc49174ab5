//! A response whose body arrives in chunks.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};

use super::HttpError;

/// The number of compressed bytes that are decoded at once, which bounds the size of a decoded chunk.
const COMPRESSED_CHUNK_BYTES: usize = 4096;

/// A response: its head, and its body as it arrives.
pub struct StreamedResponse {
    head: Parts,
    body: Incoming,
    gzip: Option<GzipBody>,
}

/// The state of a compressed body.
struct GzipBody {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Bytes that have arrived and are not decoded yet.
    compressed: Bytes,
    has_data: bool,
}

impl StreamedResponse {
    pub(super) fn new(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let encoding = head.headers.get(CONTENT_ENCODING);
        let is_gzip = encoding.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"));
        let gzip = is_gzip.then(|| GzipBody {
            decoder: MultiGzDecoder::new(Vec::new()),
            compressed: Bytes::new(),
            has_data: false,
        });
        Self { head, body, gzip }
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the next part of the body; `None` at its end. Dropping the future loses no data.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(gzip) = &mut self.gzip else {
            return receive(&mut self.body).await;
        };
        loop {
            if gzip.compressed.is_empty() {
                match receive(&mut self.body).await? {
                    Some(bytes) => gzip.compressed = bytes,
                    None => return gzip.finish(),
                }
            }
            let decoded = gzip.decode_next().map_err(HttpError::Encoding)?;
            if !decoded.is_empty() {
                return Ok(Some(decoded));
            }
        }
    }
}

impl GzipBody {
    fn decode_next(&mut self) -> io::Result<Bytes> {
        let length = self.compressed.len().min(COMPRESSED_CHUNK_BYTES);
        let chunk = self.compressed.split_to(length);
        self.has_data |= !chunk.is_empty();
        self.decoder.write_all(&chunk)?;
        self.decoder.flush()?;
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }

    fn finish(&mut self) -> Result<Option<Bytes>, HttpError> {
        if !std::mem::take(&mut self.has_data) {
            return Ok(None);
        }
        self.decoder.try_finish().map_err(HttpError::Encoding)?;
        let rest = std::mem::take(self.decoder.get_mut());
        Ok((!rest.is_empty()).then(|| rest.into()))
    }
}

/// Returns the next data of a body; trailers are skipped.
async fn receive(body: &mut Incoming) -> Result<Option<Bytes>, HttpError> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(HttpError::Body)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
