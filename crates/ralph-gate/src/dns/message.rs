//! DNS messages: the subset of queries and responses that the sandbox needs.

use std::net::Ipv4Addr;

/// The record type of an IPv4 address.
const TYPE_A: u16 = 1;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
/// The time to live of an answer, in seconds.
const TTL_SECONDS: u32 = 30;
const HEADER_BYTES: usize = 12;

/// A parsed query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DnsQuery {
    id: [u8; 2],
    recursion_desired: u8,
    /// The name in the client's spelling.
    pub(super) name: String,
    wants_address: bool,
    /// The encoded question, which the response repeats.
    question: Vec<u8>,
}

/// The answer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DnsAnswer {
    /// The name has this address and no other records.
    Address(Ipv4Addr),
    /// The name exists but has no records of this type.
    NoData,
    /// The name does not exist.
    NxDomain,
}

/// A message that is not a supported query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DnsParseError {
    /// The error response, if one can be sent.
    pub(super) response: Option<Vec<u8>>,
}

impl DnsQuery {
    pub(super) fn parse(message: &[u8]) -> Result<Self, DnsParseError> {
        let Some(header) = message.first_chunk::<HEADER_BYTES>() else {
            return Err(DnsParseError { response: None });
        };
        let is_response = header[2] & 0x80 != 0;
        if is_response {
            return Err(DnsParseError { response: None });
        }
        let refused = |code: u8| DnsParseError {
            response: Some(error_response(header, code)),
        };
        let opcode = (header[2] >> 3) & 0xf;
        if opcode != 0 {
            return Err(refused(4));
        }
        let questions = u16::from_be_bytes([header[4], header[5]]);
        if questions != 1 {
            return Err(refused(1));
        }
        let (name, end) = parse_name(&message[HEADER_BYTES..]).ok_or_else(|| refused(1))?;
        let rest = &message[HEADER_BYTES + end..];
        let Some(&[t0, t1, c0, c1]) = rest.first_chunk::<4>() else {
            return Err(refused(1));
        };
        if u16::from_be_bytes([c0, c1]) != CLASS_IN {
            return Err(refused(5));
        }
        Ok(Self {
            id: [header[0], header[1]],
            recursion_desired: header[2] & 1,
            name,
            wants_address: matches!(u16::from_be_bytes([t0, t1]), TYPE_A | TYPE_ANY),
            question: message[HEADER_BYTES..HEADER_BYTES + end + 4].to_vec(),
        })
    }

    /// Returns the encoded response.
    pub(super) fn encode_response(&self, answer: DnsAnswer) -> Vec<u8> {
        let (code, address) = match answer {
            DnsAnswer::Address(address) if self.wants_address => (0, Some(address)),
            DnsAnswer::Address(_) | DnsAnswer::NoData => (0, None),
            DnsAnswer::NxDomain => (3, None),
        };
        let mut message = Vec::with_capacity(HEADER_BYTES + self.question.len() + 16);
        message.extend(self.id);
        message.extend([0x84 | self.recursion_desired, 0x80 | code]);
        message.extend([0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
        message.extend(&self.question);
        if let Some(address) = address {
            // A pointer to the name in the question, which starts at byte 12.
            message.extend([0xc0, 12, 0, 1, 0, 1]);
            message.extend(TTL_SECONDS.to_be_bytes());
            message.extend([0, 4]);
            message.extend(address.octets());
        }
        message
    }
}

/// Returns a response without a question.
fn error_response(header: &[u8; HEADER_BYTES], code: u8) -> Vec<u8> {
    let mut message = vec![header[0], header[1], 0x80 | (header[2] & 0x79), 0x80 | code];
    message.resize(HEADER_BYTES, 0);
    message
}

/// Parses a name and returns it with its length in bytes. Rejects pointers and dots inside labels,
/// which no query needs.
fn parse_name(bytes: &[u8]) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        if length > 63 || name.len() + length > 254 {
            return None;
        }
        let label = bytes.get(at..at + length)?;
        if label.contains(&b'.') || !label.is_ascii() {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        let Ok(label) = str::from_utf8(label) else {
            return None;
        };
        name.push_str(label);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    #[test]
    fn address_queries_get_the_address() {
        let message = query("Allowed.Example", TYPE_A);
        let parsed = DnsQuery::parse(&message).unwrap();
        assert_eq!(parsed.name, "Allowed.Example");
        let mut expected = message.clone();
        expected[2..8].copy_from_slice(&[0x85, 0x80, 0, 1, 0, 1]);
        expected.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 127, 1, 0, 1]);
        let address = Ipv4Addr::new(127, 1, 0, 1);
        assert_eq!(
            parsed.encode_response(DnsAnswer::Address(address)),
            expected
        );
    }

    #[test]
    fn other_types_get_no_data_and_other_names_nxdomain() {
        let address = DnsAnswer::Address(Ipv4Addr::new(127, 1, 0, 1));
        // AAAA, TXT, HTTPS.
        for kind in [28, 16, 65] {
            let message = query("allowed.example", kind);
            let reply = DnsQuery::parse(&message).unwrap().encode_response(address);
            assert_eq!(reply[2..8], [0x85, 0x80, 0, 1, 0, 0], "{kind}");
            assert_eq!(reply[12..], message[12..]);
        }
        let message = query("evil.example", TYPE_A);
        let reply = DnsQuery::parse(&message)
            .unwrap()
            .encode_response(DnsAnswer::NxDomain);
        assert_eq!(reply[2..8], [0x85, 0x83, 0, 1, 0, 0]);
    }

    #[test]
    fn malformed_queries_are_rejected() {
        let cut = &query("a.example", TYPE_A)[..20];
        let mut two = query("a.example", TYPE_A);
        two[5] = 2;
        let mut update = query("a.example", TYPE_A);
        update[2] = 5 << 3;
        let mut chaos = query("a.example", TYPE_A);
        *chaos.last_mut().unwrap() = 3;
        let pointer = [
            0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1,
        ];
        let mut dotted = query("ab.example", TYPE_A);
        dotted[13] = b'.';
        for (message, code) in [
            (cut, 1),
            (&two, 1),
            (&update, 4),
            (&chaos, 5),
            (&pointer, 1),
            (&dotted, 1),
        ] {
            let reply = DnsQuery::parse(message).unwrap_err().response.unwrap();
            assert_eq!(reply[..2], [0xab, 0xcd]);
            assert_eq!(reply[3], 0x80 | code, "{message:?}");
        }
        let mut response = query("a.example", TYPE_A);
        response[2] |= 0x80;
        assert_eq!(
            DnsQuery::parse(&response),
            Err(DnsParseError { response: None })
        );
        assert_eq!(
            DnsQuery::parse(b"short"),
            Err(DnsParseError { response: None })
        );
    }
}
