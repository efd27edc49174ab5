//! The connections to a provider: used again, and given up in time.

use std::time::Duration;

use ralph_gate::{Listener, Route};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::credentials::{phantom, post, provider, secret};
use crate::support::{OK, World, ask, body, status};

const ASK: &str = r#"{"model":"claude-haiku-4-5","messages":[]}"#;

#[tokio::test]
async fn a_connection_is_used_again() {
    let mut world = World::new();
    let route = Route::anthropic_key(secret()).unwrap();
    let (gate, heard) = provider(&mut world, route, OK).await;
    let request = post(
        "/anthropic/v1/messages",
        &format!("x-api-key: {}", phantom(&gate)),
        ASK,
    );
    for _ in 0..3 {
        let answer = ask(&gate, Listener::Credentials, &request).await;
        assert_eq!((status(&answer), heard.connections()), (200, 1), "{answer}");
    }
}

#[tokio::test]
async fn one_that_was_closed_in_the_meantime_costs_no_request() {
    let mut world = World::new();
    let acceptor = world.acceptor("api.anthropic.com");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.name("api.anthropic.com:443", listener.local_addr().unwrap());
    let (tell, mut closed) = tokio::sync::mpsc::channel::<()>(1);
    // It answers once on each connection, and does not say that it closes it then.
    let host = tokio::spawn(async move {
        for _ in 0..3 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            while !request.ends_with(ASK.as_bytes()) {
                let count = stream.read(&mut piece).await.unwrap();
                request.extend_from_slice(&piece[..count]);
            }
            stream.write_all(OK.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            tell.send(()).await.unwrap();
        }
    });
    world.routes = vec![Route::anthropic_key(secret()).unwrap()];
    let (gate, _) = world.gate();
    let auth = format!("x-api-key: {}", phantom(&gate));
    let request = post("/anthropic/v1/messages", &auth, ASK);
    for _ in 0..3 {
        let answer = ask(&gate, Listener::Credentials, &request).await;
        assert!(
            status(&answer) == 200 && body(&answer).contains("ok"),
            "{answer}"
        );
        closed.recv().await.unwrap();
        // The end of the connection has to arrive.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.await.unwrap();
}
