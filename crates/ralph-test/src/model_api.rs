//! A model API on loopback with scripted responses, byte for byte.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub use certificate::FakeCertificate;

mod certificate;

/// A server that returns the scripted responses in order; the last one repeats.
///
/// It speaks plain HTTP/1.1 over its own sockets, so that a response can break off, stall or have a
/// wrong length like a real one. Its threads end with the process.
#[derive(Debug)]
pub struct FakeModelApi {
    address: SocketAddr,
    scheme: &'static str,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The request line without its line end: `POST /v1/chat/completions HTTP/1.1`.
    pub line: String,
    /// The headers with lowercase names.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// A scripted response.
#[derive(Debug, Clone)]
pub struct FakeResponse {
    status: u16,
    headers: Vec<(String, String)>,
    parts: Vec<FakeResponsePart>,
    is_stream: bool,
}

#[derive(Debug, Clone)]
enum FakeResponsePart {
    Text(String),
    Wait(Duration),
    /// Closes the connection abruptly.
    Cut,
}

impl FakeResponse {
    /// Responds with a status and a body of known length.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            parts: vec![FakeResponsePart::Text(body.into())],
            is_stream: false,
        }
    }

    /// Responds with JSON.
    #[must_use]
    pub fn json(status: u16, body: &str) -> Self {
        Self::new(status, "application/json", body)
    }

    /// Responds with an empty event stream.
    #[must_use]
    pub fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            parts: Vec::new(),
            is_stream: true,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds an unnamed event.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        self.text(&format!("data: {data}\n\n"))
    }

    /// Adds a named event.
    #[must_use]
    pub fn named_event(self, name: &str, data: &str) -> Self {
        self.text(&format!("event: {name}\ndata: {data}\n\n"))
    }

    /// Adds a raw chunk of the body.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.parts.push(FakeResponsePart::Text(text.into()));
        self
    }

    /// Waits before the next chunk.
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.parts.push(FakeResponsePart::Wait(time));
        self
    }

    /// Closes the connection during the body.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.parts.push(FakeResponsePart::Cut);
        self
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
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
        let length: usize = self.parts.iter().map(FakeResponsePart::length).sum();
        if self.is_stream {
            write!(head, "transfer-encoding: chunked\r\n\r\n")?;
        } else {
            write!(head, "content-length: {length}\r\n\r\n")?;
        }
        out.write_all(&head)?;
        for part in &self.parts {
            match part {
                FakeResponsePart::Text(text) if self.is_stream => {
                    out.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
                }
                FakeResponsePart::Text(text) => out.write_all(text.as_bytes())?,
                FakeResponsePart::Wait(time) => thread::sleep(*time),
                FakeResponsePart::Cut => return Ok(()),
            }
            out.flush()?;
        }
        if self.is_stream {
            out.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }
}

impl FakeResponsePart {
    fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // The client waits for these bytes, which are never sent.
            Self::Cut => 1000,
            Self::Wait(_) => 0,
        }
    }
}

impl FakeModelApi {
    /// Starts a server with these responses.
    pub fn start(responses: impl IntoIterator<Item = FakeResponse>) -> io::Result<Self> {
        Self::start_on(TcpListener::bind("127.0.0.1:0")?, responses, None)
    }

    /// Starts a server at an address that may have been in use before.
    pub fn start_at(
        address: SocketAddr,
        responses: impl IntoIterator<Item = FakeResponse>,
    ) -> io::Result<Self> {
        Self::start_on(TcpListener::bind(address)?, responses, None)
    }

    /// Starts a TLS server with a certificate.
    pub fn start_tls(
        responses: impl IntoIterator<Item = FakeResponse>,
        certificate: &FakeCertificate,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        Self::start_on(listener, responses, Some(certificate.config()))
    }

    fn start_on(
        listener: TcpListener,
        responses: impl IntoIterator<Item = FakeResponse>,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let received = Arc::new(Mutex::new(Vec::new()));
        let responses: Arc<Mutex<VecDeque<FakeResponse>>> =
            Arc::new(Mutex::new(responses.into_iter().collect()));
        let log = received.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else {
                    break;
                };
                let (log, responses, tls) = (log.clone(), responses.clone(), tls.clone());
                thread::spawn(move || match tls.map(ServerConnection::new) {
                    None => serve_connection(connection, &log, &responses),
                    Some(Ok(tls)) => {
                        let mut stream = StreamOwned::new(tls, connection);
                        serve_connection(&mut stream, &log, &responses);
                        stream.conn.send_close_notify();
                        // The client may have closed the connection.
                        drop(stream.flush());
                    }
                    Some(Err(_)) => {}
                });
            }
        });
        Ok(Self {
            address,
            scheme,
            received,
        })
    }

    /// Returns the URL of the server: `http://127.0.0.1:PORT`, or with `https`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the requests received so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        lock(&self.received).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers one request; a disconnect is not an error.
fn serve_connection(
    mut connection: impl Read + Write,
    log: &Mutex<Vec<ReceivedRequest>>,
    responses: &Mutex<VecDeque<FakeResponse>>,
) {
    let Ok(Some(request)) = read_request(&mut connection) else {
        return;
    };
    let response = {
        let mut responses = lock(responses);
        lock(log).push(request);
        if responses.len() > 1 {
            responses.pop_front()
        } else {
            responses.front().cloned()
        }
    };
    if let Some(response) = response {
        // The client may have closed the connection.
        drop(response.write(&mut connection));
    }
}

/// Reads a request; `None` if the connection was closed without one.
fn read_request(connection: &mut impl Read) -> io::Result<Option<ReceivedRequest>> {
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
    let length = headers
        .get("content-length")
        .and_then(|length| ralph_core::parse_value(length));
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some(ReceivedRequest {
        line: line.trim_end().to_owned(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
