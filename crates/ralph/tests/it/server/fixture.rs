//! A running `ralph serve`, and requests to it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ralph_core::parse_value;
use ralph_guest::best_effort;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything takes on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// A running server.
pub(crate) struct RunningServer {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    pub(crate) first_line: String,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct ServerResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The end of a server.
#[derive(Debug)]
pub(crate) struct EndedServer {
    pub(crate) code: Option<i32>,
    /// Standard output after the first line.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl RunningServer {
    /// Starts the command and waits for its first line.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_at(command, "")
    }

    /// Starts the command and waits for a line with this beginning, which counts as its first one.
    pub(crate) fn start_at(mut command: Command, beginning: &str) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let mut first_line = String::new();
        while stdout.read_line(&mut first_line).unwrap() > 0 && !first_line.starts_with(beginning) {
            first_line.clear();
        }
        if first_line.is_empty() {
            let mut error = String::new();
            stderr.read_to_string(&mut error).unwrap();
            panic!("the server does not start: {error}");
        }
        Self {
            child,
            stdout,
            stderr,
            first_line: first_line.trim_end().to_owned(),
        }
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the host and port of the first line.
    pub(crate) fn host(&self) -> String {
        let url = self.first_line.split("://").nth(1).unwrap();
        let end = url.find(['/', '"']).unwrap();
        url[..end].to_owned()
    }

    /// Sends a request without a body, with these header lines.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[String]) -> ServerResponse {
        send(&self.host(), (method, path), headers, "").unwrap()
    }

    /// Sends a request with a token.
    pub(crate) fn request_as(&self, token: &str, method: &str, path: &str) -> ServerResponse {
        self.request(method, path, &[format!("Authorization: Bearer {token}")])
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn end_with(self, signal: Signal) -> EndedServer {
        kill_process(self.pid(), signal).unwrap();
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> EndedServer {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < WAIT_TIMEOUT, "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        EndedServer {
            code: self.child.wait().unwrap().code(),
            stdout,
            stderr,
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // A test that failed must not leave a process behind.
        best_effort(self.child.kill());
        best_effort(self.child.wait());
    }
}

/// Sends a request on a connection of its own. A server that ends before its response is an error.
pub(crate) fn send(
    host: &str,
    (method, path): (&str, &str),
    headers: &[String],
    body: &str,
) -> io::Result<ServerResponse> {
    let mut stream = TcpStream::connect(host)?;
    let headers: Vec<String> = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let headers = headers.concat();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(parse_value);
    Ok(ServerResponse {
        status: status.ok_or(io::ErrorKind::InvalidData)?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

impl ServerResponse {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}
