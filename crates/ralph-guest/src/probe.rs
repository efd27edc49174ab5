//! Probes the network from inside a sandbox.
//!
//! The guest itself probes, because no other program inside can be trusted: a `curl` of the image,
//! or one that a command has added to the search path, can report that every host is blocked. Each
//! probe prints one line, and a missing line counts as a failure:
//!
//! ```text
//! ok                      the program runs
//! gate STATUS             the gate's answer to `/health`, 000 for none
//! host STATUS             the proxy's answer to `CONNECT` for the forbidden host, 000 for none
//! name STATUS             the answer at the forbidden host's own name, 000 for none
//! direct reached|blocked  the result of a connection past the gate
//! ```

use crate::available;
use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The first argument that runs the guest program as a network probe.
pub const PROBE_NETWORK: &str = "probe-network";
/// The time limit of one step.
const STEP_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit of all probes together.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of response bytes read.
const MAX_RESPONSE_BYTES: usize = 4 << 10;

/// The addresses to probe; each is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeSettings {
    /// The gate, which must respond.
    pub gate: Option<SocketAddr>,
    /// A host that must not be reachable.
    pub host: Option<String>,
    /// The proxy that commands use.
    pub proxy: Option<SocketAddr>,
    /// An address that must not be reachable.
    pub direct: Option<SocketAddr>,
}

impl ProbeSettings {
    /// Parses `[--gate ADDRESS] [--host NAME] [--direct ADDRESS]` and the URL of the proxy. Returns
    /// `None` for invalid arguments.
    pub fn parse(arguments: impl IntoIterator<Item = String>, proxy: Option<&str>) -> Option<Self> {
        let mut settings = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next()?;
            match name.as_str() {
                "--gate" => settings.gate = Some(available(value.parse())?),
                "--host" => settings.host = Some(value),
                "--direct" => settings.direct = Some(available(value.parse())?),
                _ => return None,
            }
        }
        let address = proxy.map(|url| url.trim_start_matches("http://").trim_end_matches('/'));
        settings.proxy = address.and_then(|address| available(address.parse()));
        Some(settings)
    }

    /// Runs all probes concurrently and writes a line for each that ends in time.
    pub fn run(self, output: &mut impl Write) -> io::Result<()> {
        writeln!(output, "ok")?;
        let (sender, lines) = mpsc::channel();
        let mut pending = 0;
        let mut start = |probe: Box<dyn FnOnce() -> String + Send>| {
            pending += 1;
            let sender = sender.clone();
            thread::spawn(move || sender.send(probe()));
        };
        if let Some(gate) = self.gate {
            start(Box::new(move || result_line("gate", probe_gate(gate))));
        }
        if let Some(host) = self.host {
            let name = host.clone();
            start(Box::new(move || {
                result_line("host", probe_proxy(&host, self.proxy))
            }));
            start(Box::new(move || result_line("name", probe_name(&name))));
        }
        if let Some(direct) = self.direct {
            start(Box::new(move || {
                let is_reached = TcpStream::connect_timeout(&direct, STEP_TIMEOUT).is_ok();
                format!("direct {}", if is_reached { "reached" } else { "blocked" })
            }));
        }
        let end = Instant::now() + TOTAL_TIMEOUT;
        for _ in 0..pending {
            let left = end.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) => writeln!(output, "{line}")?,
                Err(_) => break,
            }
        }
        output.flush()
    }
}

fn result_line(name: &str, status: io::Result<u16>) -> String {
    format!("{name} {:03}", status.unwrap_or(0))
}

fn probe_gate(gate: SocketAddr) -> io::Result<u16> {
    request_status(gate, &format!("GET /health HTTP/1.1\r\nHost: {gate}\r\n"))
}

/// Requests a tunnel from the proxy. If it opens one, the host is reachable.
fn probe_proxy(host: &str, proxy: Option<SocketAddr>) -> io::Result<u16> {
    let proxy = proxy.ok_or(io::ErrorKind::NotFound)?;
    request_status(
        proxy,
        &format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n"),
    )
}

/// Connects to a host by its name.
fn probe_name(host: &str) -> io::Result<u16> {
    let mut last = Err(io::ErrorKind::NotFound.into());
    for address in (host, 80).to_socket_addrs()?.take(2) {
        last = request_status(address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n"));
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Sends a request head and returns the response status.
fn request_status(address: SocketAddr, head: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, STEP_TIMEOUT)?;
    stream.set_read_timeout(Some(STEP_TIMEOUT))?;
    stream.set_write_timeout(Some(STEP_TIMEOUT))?;
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    let mut response = Vec::new();
    let mut chunk = [0; 512];
    while !response.contains(&b'\n') && response.len() < MAX_RESPONSE_BYTES {
        match stream.read(&mut chunk)? {
            0 => break,
            count => response.extend(&chunk[..count]),
        }
    }
    let line = String::from_utf8_lossy(&response);
    let mut words = line.split_whitespace();
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/"));
    let status = words.next().and_then(|word| available(word.parse()));
    status
        .filter(|_| is_http)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    use super::*;

    /// Answers every connection with a status and returns the address.
    fn serve_status(status: u16) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(&stream).lines();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).unwrap();
            }
        });
        address
    }

    fn closed_address() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }

    fn printed_lines(settings: ProbeSettings) -> Vec<String> {
        let mut output = Vec::new();
        settings.run(&mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert!(text.starts_with("ok\n"), "{text}");
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn every_probe_reports() {
        let isolated = ProbeSettings {
            gate: Some(serve_status(200)),
            host: Some("forbidden.invalid".to_owned()),
            proxy: Some(serve_status(403)),
            direct: Some(closed_address()),
        };
        let expected = ["direct blocked", "gate 200", "host 403", "name 000"];
        assert_eq!(printed_lines(isolated), expected);
        let reachable = ProbeSettings {
            gate: Some(closed_address()),
            host: Some("localhost".to_owned()),
            proxy: Some(serve_status(200)),
            direct: Some(serve_status(200)),
        };
        let lines = printed_lines(reachable);
        assert_eq!(lines[..3], ["direct reached", "gate 000", "host 200"]);
        assert_eq!(
            printed_lines(ProbeSettings::default()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_response_that_is_not_http_counts_as_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"SSH-2.0 200\r\n").unwrap();
        });
        assert_eq!(result_line("gate", probe_gate(address)), "gate 000");
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        let parse = |line: &str, proxy| {
            ProbeSettings::parse(line.split_whitespace().map(str::to_owned), proxy)
        };
        let expected = ProbeSettings {
            gate: Some("127.0.0.1:4141".parse().unwrap()),
            host: Some("a.example".to_owned()),
            proxy: Some("127.0.0.1:3128".parse().unwrap()),
            direct: Some("1.1.1.1:443".parse().unwrap()),
        };
        assert_eq!(
            parse(
                "--gate 127.0.0.1:4141 --host a.example --direct 1.1.1.1:443",
                Some("http://127.0.0.1:3128/")
            ),
            Some(expected)
        );
        for line in ["--gate", "--gate x", "--direct 1.1.1.1", "--unknown x"] {
            assert_eq!(parse(line, None), None, "{line}");
        }
    }
}
