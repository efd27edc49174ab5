//! Answers the queries of one connection.

use std::io;
use std::net::Ipv4Addr;

use ralph_core::net::{EgressDecider, EgressDecision, EgressReason, Endpoint, Host};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::message::{DnsAnswer, DnsParseError, DnsQuery};
use crate::gate::GateInner;
use crate::{ByteStream, SandboxListener};

/// The port in audit records of lookups.
const DNS_PORT: u16 = 53;

/// Answers queries, each prefixed with its two-byte length, until the stream ends.
pub(crate) async fn serve(gate: &GateInner, mut stream: impl ByteStream) -> io::Result<()> {
    let mut message = Vec::new();
    loop {
        let length = match stream.read_u16().await {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        message.resize(usize::from(length), 0);
        timeout(gate.limits.head_timeout, stream.read_exact(&mut message)).await??;
        let Some(response) = respond(gate, &message) else {
            return Ok(());
        };
        let length = u16::try_from(response.len()).map_err(io::Error::other)?;
        let mut framed = Vec::with_capacity(2 + response.len());
        framed.extend(length.to_be_bytes());
        framed.extend(response);
        stream.write_all(&framed).await?;
        stream.flush().await?;
    }
}

fn respond(gate: &GateInner, message: &[u8]) -> Option<Vec<u8>> {
    match DnsQuery::parse(message) {
        Ok(query) => Some(query.encode_response(resolve(gate, &query.name))),
        Err(DnsParseError { response }) => {
            let decision = EgressDecision::denied(EgressReason::Malformed, EgressDecider::Gate);
            drop(
                gate.audit_log
                    .open_unparsed(SandboxListener::Dns, "", DNS_PORT, decision),
            );
            response
        }
    }
}

fn resolve(gate: &GateInner, name: &str) -> DnsAnswer {
    let (service, name) = split_service(name);
    let Ok(host) = Host::parse(name) else {
        let decision = EgressDecision::denied(EgressReason::Malformed, EgressDecider::Gate);
        drop(
            gate.audit_log
                .open_unparsed(SandboxListener::Dns, name, DNS_PORT, decision),
        );
        return DnsAnswer::NxDomain;
    };
    if host.name() == Some("localhost") {
        return DnsAnswer::Address(Ipv4Addr::LOCALHOST);
    }
    let endpoint = Endpoint {
        host,
        port: DNS_PORT,
    };
    let decision = if endpoint.host.name().is_some() {
        gate.decide_name(&endpoint.host)
    } else {
        EgressDecision::denied(EgressReason::Malformed, EgressDecider::Gate)
    };
    drop(gate.open_record(SandboxListener::Dns, &endpoint, decision));
    match (decision.is_allowed(), service) {
        (true, None) => DnsAnswer::Address(gate.names().address(&endpoint.host)),
        (true, Some(_)) => DnsAnswer::NoData,
        (false, _) => DnsAnswer::NxDomain,
    }
}

/// Splits service labels, as in `_https._tcp.example.com`, from the host. The rules apply to the
/// host, and it is the host that the user can allow.
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
    fn service_labels_are_split_from_the_host() {
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
