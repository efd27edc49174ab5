//! A provider on a private address that a person named.

use ralph_core::net::Policy;
use ralph_gate::{Arrival, Gate, Listener, Route};

use crate::credentials::{phantom, post, secret};
use crate::support::{OK, World, ask, connect, header, host, status};

const ASK: &str = r#"{"model":"gpt-5","messages":[]}"#;

/// Asks the provider in the two ways that the credential port sends: whole, and as it comes.
async fn asked(gate: &Gate) -> [u16; 2] {
    let auth = format!("Authorization: Bearer {}", phantom(gate));
    let whole = post("/models/v1/chat/completions", &auth, ASK);
    let streamed =
        format!("GET /models/v1/models HTTP/1.1\r\nHost: x\r\n{auth}\r\nConnection: close\r\n\r\n");
    let whole = ask(gate, Listener::Credentials, whole).await;
    let streamed = ask(gate, Listener::Credentials, streamed).await;
    [status(&whole), status(&streamed)]
}

#[tokio::test]
async fn only_credentials_are_sent_to_an_address_that_was_named_for_them() {
    let mut world = World::new();
    world.policy = Policy::AllowAll;
    let (address, heard) = host(OK.into(), Some(world.acceptor("gateway.example"))).await;
    world.name_for_credentials("gateway.example:443", address);
    // Whoever owns a name can let it lead anywhere.
    for name in ["rebind.example:80", "rebind.example:443"] {
        world.name_only(name, &[address]);
    }
    let route = Route::openai_compatible("models", "https://gateway.example/v1", secret()).unwrap();
    world.routes = vec![route];
    let (gate, _) = world.gate();

    let plain = "GET / HTTP/1.1\r\nHost: rebind.example\r\nConnection: close\r\n\r\n";
    let proxied = plain.replace("GET /", "GET http://rebind.example/");
    for (listener, request) in [(Listener::Http, plain), (Listener::Proxy, proxied.as_str())] {
        let answer = ask(&gate, listener, request).await;
        let refused = header(&answer, "x-ralph-gate");
        assert_eq!(refused, Some("private-address"), "{listener:?}");
    }
    let tunnel = crate::tls::tunnel(&gate, "rebind.example:443").await;
    let refused = tunnel.unwrap_err();
    assert_eq!(header(&refused, "x-ralph-gate"), Some("private-address"));
    let stream = connect(&gate, Arrival::through(Listener::Https));
    let tls = crate::tls::https(stream, world.roots(), "rebind.example", "rebind.example");
    assert!(tls.await.is_err());
    let decisions = world.notes.wait_for_decisions(4).await;
    assert_eq!(
        decisions,
        [
            "http rebind.example:80 - private-address gate",
            "proxy rebind.example:80 - private-address gate",
            "proxy rebind.example:443 - private-address gate",
            "https rebind.example:443 - private-address gate",
        ]
    );
    assert_eq!(heard.connections(), 0);

    assert_eq!(asked(&gate).await, [200, 200]);
}

#[tokio::test]
async fn a_private_address_that_nobody_named_gets_no_credential() {
    let mut world = World::new();
    let (address, heard) = host(OK.into(), Some(world.acceptor("gateway.example"))).await;
    world.name_only("gateway.example:443", &[address]);
    let route = Route::openai_compatible("models", "https://gateway.example/v1", secret()).unwrap();
    world.routes = vec![route];
    let (gate, _) = world.gate();
    assert_eq!(asked(&gate).await, [502, 502]);
    assert_eq!(heard.connections(), 0);
}
