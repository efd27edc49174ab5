//! DNS inside the sandbox.

use ralph_gate::{Arrival, SandboxListener};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{GateTestbed, connect};

fn query(id: u8, name: &str, kind: u8) -> Vec<u8> {
    let mut message = vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, kind, 0, 1]);
    let mut framed = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    framed.extend(message);
    framed
}

#[tokio::test]
async fn only_allowed_names_resolve() {
    let mut testbed = GateTestbed::allowing(&["allowed.example", "*.wild.example"]);
    let (gate, _) = testbed.build_gate();
    let mut stream = connect(&gate, Arrival::new(SandboxListener::Dns));
    let (a, aaaa) = (1, 28);
    for (name, kind, code, address) in [
        ("Allowed.Example", a, 0, Some([127, 1, 0, 1])),
        ("allowed.example", aaaa, 0, None),
        ("x.wild.example", a, 0, Some([127, 1, 0, 2])),
        ("allowed.example", a, 0, Some([127, 1, 0, 1])),
        ("localhost", a, 0, Some([127, 0, 0, 1])),
        ("wild.example", a, 3, None),
        ("secret-data.evil.example", a, 3, None),
        ("secret-data.evil.example", a, 3, None),
    ] {
        stream.write_all(&query(7, name, kind)).await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut reply = vec![0; usize::from(length)];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply[..2], [0, 7]);
        assert_eq!(reply[3] & 0xf, code, "{name}");
        assert_eq!(reply[7], u8::from(address.is_some()), "{name}");
        if let Some(address) = address {
            assert_eq!(reply[reply.len() - 4..], address, "{name}");
        }
    }
    drop(stream);
    let decisions = testbed.sink.decisions();
    assert_eq!(decisions[0], "dns allowed.example:53 + listed policy");
    assert_eq!(
        decisions[4],
        "dns wild.example:53 - blocked-by-allowlist policy"
    );
    let announced: Vec<_> = testbed
        .sink
        .blocked
        .lock()
        .unwrap()
        .iter()
        .map(|n| format!("{}:{}", n.host, n.port))
        .collect();
    assert_eq!(
        announced,
        ["wild.example:443", "secret-data.evil.example:443"]
    );
}
