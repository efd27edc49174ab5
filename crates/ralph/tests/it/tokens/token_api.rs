//! A provider on loopback that gives every request the same response and records it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) struct TokenApi {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TokenApi {
    /// Responds with this status and body until the test ends.
    pub(crate) fn with_response(status: u16, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                recorded.lock().unwrap().push(read(&mut stream));
                let length = body.len();
                let start = format!(
                    "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: {length}\r\n\r\n"
                );
                stream.write_all((start + body).as_bytes()).unwrap();
            }
        });
        Self { address, requests }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "half a request: {text}");
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if body.len() == length {
            return text;
        }
    }
}
