//! A provider on loopback whose responses are controlled by the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use ralph_guest::available;

/// A request that has arrived, and the connection to answer it on.
pub(crate) struct ProxiedRequest {
    /// The request line and the headers, with names in lower case.
    pub(crate) head: Vec<String>,
    pub(crate) body: String,
    stream: TcpStream,
}

impl ProxiedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Sends a complete response.
    pub(crate) fn respond(mut self, status: u16, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nx-own: yes\r\n\r\n");
        self.stream.write_all((head + body).as_bytes()).unwrap();
    }

    /// Starts an event stream; the test sends the chunks.
    pub(crate) fn stream(mut self) -> TcpStream {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.stream.write_all(head.as_bytes()).unwrap();
        self.stream
    }
}

pub(crate) struct ProxyTestUpstream {
    address: SocketAddr,
    requests: Receiver<ProxiedRequest>,
}

impl ProxyTestUpstream {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(request) = read_request(&mut reader, &stream) {
                        if sender.send(request).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the next request.
    pub(crate) fn next_request(&self) -> ProxiedRequest {
        self.requests.recv().unwrap()
    }

    /// Returns a received request, if there is one.
    pub(crate) fn try_next_request(&self) -> Option<ProxiedRequest> {
        available(self.requests.try_recv())
    }
}

fn read_request(reader: &mut BufReader<TcpStream>, stream: &TcpStream) -> Option<ProxiedRequest> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        let count = reader.read_line(&mut line).unwrap_or(0);
        match line.trim_end() {
            _ if count == 0 => return None,
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let mut request = ProxiedRequest {
        head,
        body: String::new(),
        stream: stream.try_clone().unwrap(),
    };
    let length = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}
