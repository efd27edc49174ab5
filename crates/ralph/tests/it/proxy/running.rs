//! A running proxy, and a client for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use ralph_guest::best_effort;

use crate::support::{RalphOutput, TestRalph};

/// A fake credential.
pub(crate) fn canary() -> String {
    format!("sk-ant-{}-{}", "oat01", "Canary5z".repeat(8))
}

pub(crate) struct RunningProxy {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    pub(crate) announcement: String,
    pub(crate) variables: BTreeMap<String, String>,
}

impl RunningProxy {
    /// Starts a proxy on a free port and waits until it listens.
    pub(crate) fn start(ralph: &TestRalph, target: &str, args: &[&str], input: &str) -> Self {
        let mut proxy = Self::spawn(ralph, target, args, input);
        proxy.stderr.read_line(&mut proxy.announcement).unwrap();
        for _ in 0..2 {
            let mut line = String::new();
            proxy.stdout.read_line(&mut line).unwrap();
            let (name, value) = line.trim_end().split_once('=').expect("a variable");
            proxy.variables.insert(name.to_owned(), value.to_owned());
        }
        proxy
    }

    /// Starts a proxy that may fail to start.
    pub(crate) fn spawn(ralph: &TestRalph, target: &str, args: &[&str], input: &str) -> Self {
        let mut child = ralph
            .command(&["proxy", "--target", target])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may end without having read it.
        best_effort(stdin.write_all(input.as_bytes()));
        drop(stdin);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
            announcement: String::new(),
            variables: BTreeMap::new(),
        }
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> String {
        let url = self
            .variables
            .iter()
            .find(|(name, _)| name.ends_with("_BASE_URL"));
        let rest = url.unwrap().1.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap().to_owned()
    }

    /// Returns the placeholder token.
    pub(crate) fn placeholder_token(&self) -> &str {
        let found = self
            .variables
            .iter()
            .find(|(name, _)| !name.ends_with("_BASE_URL"));
        found.unwrap().1
    }

    /// Sends a request with these headers and returns the connection. With HTTP/1.0 the response
    /// ends with the connection, so a test can read it unparsed.
    pub(crate) fn send(&self, request: &str, fields: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let fields: Vec<String> = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let fields = fields.concat();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.0\r\nhost: proxy\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Sends a request and returns the status and body of the response.
    pub(crate) fn request(&self, request: &str, fields: &[&str], body: &str) -> (u16, String) {
        let mut text = String::new();
        self.send(request, fields, body)
            .read_to_string(&mut text)
            .unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Returns the header that carries the placeholder token as a bearer token.
    pub(crate) fn bearer(&self) -> String {
        format!("authorization: Bearer {}", self.placeholder_token())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the proxy.
    pub(crate) fn stop(mut self) -> RalphOutput {
        let pid = rustix::process::Pid::from_child(&self.child);
        best_effort(rustix::process::kill_process(
            pid,
            rustix::process::Signal::TERM,
        ));
        self.wait()
    }

    /// Waits for the proxy to end and returns the rest of its output.
    pub(crate) fn wait(&mut self) -> RalphOutput {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        RalphOutput {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        best_effort(self.child.kill());
        best_effort(self.child.wait());
    }
}

/// Asserts that a text occurs neither in the state directory nor in the visible data of a process.
#[track_caller]
pub(crate) fn assert_absent(ralph: &TestRalph, pid: u32, text: &str) {
    let mut places: Vec<_> = walk(ralph.state().root());
    #[cfg(target_os = "linux")]
    places.extend(["cmdline", "environ"].map(|name| format!("/proc/{pid}/{name}").into()));
    for place in places {
        let bytes = fs::read(&place).unwrap();
        let is_there = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        assert!(!is_there, "{}", place.display());
    }
}

fn walk(root: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(root).unwrap().map(Result::unwrap);
    entries
        .flat_map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}
