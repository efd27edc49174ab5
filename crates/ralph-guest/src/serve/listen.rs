//! Relays connections and datagrams from inside of the sandbox to the host.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::wire::{Connect, Duplex, Link, Listening};

/// How much of a connection is in memory at once, each way.
const PIECE: usize = 32 * 1024;
/// The longest datagram.
const DATAGRAM: usize = 64 * 1024;
/// How long an answer to a datagram may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How many datagrams may wait for their answers.
const MAX_WAITING: usize = 256;
/// How long to wait when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(10);

/// An address inside that is listened on.
pub(super) enum Listener {
    Connections(TcpListener),
    Datagrams(Arc<UdpSocket>),
}

impl Listener {
    pub(super) async fn bind(address: &str, listening: Listening) -> io::Result<Self> {
        Ok(match listening {
            Listening::Connections => Self::Connections(TcpListener::bind(address).await?),
            Listening::Datagrams => Self::Datagrams(Arc::new(UdpSocket::bind(address).await?)),
        })
    }

    /// Opens a stream to the host for whatever comes, for as long as the session lasts.
    pub(super) async fn relay(self, name: String, link: Link) {
        match self {
            Self::Connections(listener) => connections(&listener, &name, &link).await,
            Self::Datagrams(socket) => datagrams(&socket, &name, &link).await,
        }
    }
}

async fn connections(listener: &TcpListener, name: &str, link: &Link) {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // One that failed is the other side's loss; a lack of descriptors passes.
                let Ok((connection, peer)) = accepted else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let Ok(local) = connection.local_addr() else { continue };
                let listener = name.to_owned();
                let Ok(stream) = link.open(&Connect { listener, local, peer }) else {
                    return;
                };
                carried.spawn(carry(connection, stream.into()));
            }
            Some(_) = carried.join_next() => {}
        }
    }
}

/// Carries bytes both ways until both sides have ended.
async fn carry(mut connection: TcpStream, mut stream: Duplex) {
    connection.set_nodelay(true).ok();
    // A side that fails ends both, which the other side sees as a closed connection.
    copy_bidirectional_with_sizes(&mut connection, &mut stream, PIECE, PIECE)
        .await
        .ok();
}

async fn datagrams(socket: &Arc<UdpSocket>, name: &str, link: &Link) {
    let Ok(local) = socket.local_addr() else {
        return;
    };
    let mut waiting = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((count, peer)) = received else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                // Datagrams may be lost; whoever needs an answer asks again.
                if waiting.len() >= MAX_WAITING {
                    continue;
                }
                let listener = name.to_owned();
                let Ok(stream) = link.open(&Connect { listener, local, peer }) else {
                    return;
                };
                waiting.spawn(exchange(socket.clone(), peer, buffer[..count].to_vec(), stream.into()));
            }
            Some(_) = waiting.join_next() => {}
        }
    }
}

/// Carries one datagram there and its answer back.
async fn exchange(socket: Arc<UdpSocket>, peer: SocketAddr, datagram: Vec<u8>, mut stream: Duplex) {
    let exchanged = async {
        let length = u16::try_from(datagram.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&datagram).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        socket.send_to(&answer, peer).await
    };
    // Without an answer nothing comes back, as with any datagram.
    tokio::time::timeout(ANSWER, exchanged).await.ok();
}
