//! Relays connections from inside of the sandbox to the host.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::wire::{Connect, Flow, Link, Stream};

/// How much of a connection is in memory at once.
const PIECE: usize = 64 * 1024;

/// Opens a stream to the host for each connection, for as long as the session lasts.
pub(super) async fn relay(listener: TcpListener, name: String, link: Link) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // One that failed is the other side's loss; a lack of descriptors passes.
                let Ok((connection, _)) = accepted else {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    continue;
                };
                let Ok(stream) = link.open(&Connect { listener: name.clone() }) else {
                    return;
                };
                connections.spawn(carry(connection, stream));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries bytes both ways until both sides have ended.
async fn carry(connection: TcpStream, stream: Stream) {
    let Stream {
        sender,
        mut messages,
        mut data,
    } = stream;
    connection.set_nodelay(true).ok();
    let (mut from_inside, mut to_inside) = connection.into_split();
    let out = async {
        loop {
            sender.room(PIECE).await;
            let mut piece = vec![0; PIECE];
            let count = from_inside.read(&mut piece).await?;
            if count == 0 {
                sender.end();
                return Ok::<_, io::Error>(());
            }
            piece.truncate(count);
            sender.data(Flow::Main, piece);
        }
    };
    let back = async {
        while let Some((_, bytes)) = data.next().await {
            to_inside.write_all(&bytes).await?;
        }
        to_inside.shutdown().await
    };
    tokio::select! {
        // A side that fails ends both, which the other side sees as a closed connection.
        _ = async { tokio::try_join!(out, back) } => {}
        _ = messages.next() => {}
    }
}
