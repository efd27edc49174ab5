//! Answers the queries of one connection.

use std::io;
use std::net::Ipv4Addr;

use ralph_core::net::{Decider, Decision, Endpoint, Host, Reason};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::message::{Answer, Query, Refused};
use crate::gate::Inner;
use crate::{Listener, Stream};

/// The port in records about names.
const PORT: u16 = 53;

/// Answers queries, each with its length in two bytes before it, until the other side is done.
pub(crate) async fn serve(gate: &Inner, mut stream: impl Stream) -> io::Result<()> {
    let mut message = Vec::new();
    loop {
        let length = match stream.read_u16().await {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        message.resize(usize::from(length), 0);
        timeout(gate.limits.head_time, stream.read_exact(&mut message)).await??;
        let Some(reply) = reply(gate, &message) else {
            return Ok(());
        };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        let mut framed = Vec::with_capacity(2 + reply.len());
        framed.extend(length.to_be_bytes());
        framed.extend(reply);
        stream.write_all(&framed).await?;
        stream.flush().await?;
    }
}

fn reply(gate: &Inner, message: &[u8]) -> Option<Vec<u8>> {
    match Query::parse(message) {
        Ok(query) => Some(query.answered(answer(gate, &query.name))),
        Err(Refused { reply }) => {
            let decision = Decision::denied(Reason::Malformed, Decider::Gate);
            drop(gate.book.open_text(Listener::Dns, "", PORT, decision));
            reply
        }
    }
}

fn answer(gate: &Inner, name: &str) -> Answer {
    let (service, name) = split_service(name);
    let Ok(host) = Host::parse(name) else {
        let decision = Decision::denied(Reason::Malformed, Decider::Gate);
        drop(gate.book.open_text(Listener::Dns, name, PORT, decision));
        return Answer::NoSuchName;
    };
    if host.name() == Some("localhost") {
        return Answer::Address(Ipv4Addr::LOCALHOST);
    }
    let endpoint = Endpoint { host, port: PORT };
    let decision = if endpoint.host.name().is_some() {
        gate.decide_name(&endpoint.host)
    } else {
        Decision::denied(Reason::Malformed, Decider::Gate)
    };
    drop(gate.record(Listener::Dns, &endpoint, decision));
    match (decision.is_allowed(), service) {
        (true, None) => Answer::Address(gate.names().address(&endpoint.host)),
        (true, Some(_)) => Answer::Nothing,
        (false, _) => Answer::NoSuchName,
    }
}

/// Splits the name of a service, as `_https._tcp.example.com`, from the host that may offer it: the
/// host is what is decided about, and what a human could allow.
fn split_service(name: &str) -> (Option<&str>, &str) {
    let mut host = name;
    while host.starts_with('_')
        && let Some((_, rest)) = host.split_once('.')
    {
        host = rest;
    }
    let service = name[..name.len() - host.len()].strip_suffix('.');
    (service, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_belongs_to_a_host() {
        for (name, expected) in [
            ("a.example", (None, "a.example")),
            ("_https._tcp.a.example", (Some("_https._tcp"), "a.example")),
            ("a._b.example", (None, "a._b.example")),
            ("_a", (None, "_a")),
            ("", (None, "")),
        ] {
            assert_eq!(split_service(name), expected, "{name}");
        }
    }
}
