//! Requests and responses as bytes: bodies of git are not text.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use crate::model_api::ReceivedRequest;

/// A request with its body as bytes.
pub(super) struct RawRequest {
    pub(super) line: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl RawRequest {
    /// Returns the path and the query.
    pub(super) fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the request for the ledger. A body of git is replaced by its size.
    pub(super) fn received(&self) -> ReceivedRequest {
        let body = if self.target().contains(".git/") {
            format!("<{} bytes>", self.body.len())
        } else {
            String::from_utf8_lossy(&self.body).into_owned()
        };
        ReceivedRequest {
            line: self.line.clone(),
            headers: self.headers.clone(),
            body,
        }
    }
}

/// A response as bytes.
pub(super) struct RawResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl RawResponse {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        // Written at once, because a client that receives half a head waits for the rest.
        let mut head = Vec::new();
        write!(
            head,
            "HTTP/1.1 {} Status\r\nconnection: close\r\n",
            self.status
        )?;
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n")?;
        }
        // A response without content must have no length.
        if self.status == 304 || self.status == 204 {
            write!(head, "\r\n")?;
            out.write_all(&head)?;
        } else {
            write!(head, "content-length: {}\r\n\r\n", self.body.len())?;
            out.write_all(&head)?;
            out.write_all(&self.body)?;
        }
        out.flush()
    }
}

/// Reads a request; `None` if the connection was closed without one.
pub(super) fn read_raw_request<S: Read + Write>(
    connection: &mut S,
) -> io::Result<Option<RawRequest>> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let has = |name: &str, value: &str| {
        let found: Option<&String> = headers.get(name);
        found.is_some_and(|found| found.eq_ignore_ascii_case(value))
    };
    if has("expect", "100-continue") {
        reader
            .get_mut()
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if has("transfer-encoding", "chunked") {
        read_chunks(&mut reader)?
    } else {
        let length = headers.get("content-length");
        let length = length.and_then(|length| ralph_core::parse_value(length));
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        body
    };
    Ok(Some(RawRequest {
        line: line.trim_end().to_owned(),
        headers,
        body,
    }))
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        reader.read_exact(&mut body[start..])?;
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if length == 0 {
            return Ok(body);
        }
    }
}
