//! Relays connections and datagrams from inside the sandbox to the host.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy_buf, sink};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::best_effort;
use crate::wire::{ConnectRequest, Duplex, Link, ListenKind};

/// The buffer of a connection per direction, in bytes.
const RELAY_BUFFER_BYTES: usize = 32 * 1024;
/// The longest datagram.
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;
/// The time limit for the response to a datagram.
const DATAGRAM_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of datagrams that wait for a response.
const MAX_PENDING_DATAGRAMS: usize = 256;
/// The time to drain client data that the host no longer accepts.
const LINGER: Duration = Duration::from_secs(5);
/// The delay before accepting again when no descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// A listener inside the sandbox.
pub(super) enum GuestListener {
    Connections(TcpListener),
    Datagrams(Arc<UdpSocket>),
}

impl GuestListener {
    pub(super) async fn bind(address: &str, listening: ListenKind) -> io::Result<Self> {
        Ok(match listening {
            ListenKind::Connections => Self::Connections(TcpListener::bind(address).await?),
            ListenKind::Datagrams => Self::Datagrams(Arc::new(UdpSocket::bind(address).await?)),
        })
    }

    /// Opens a stream to the host for each arrival until the session ends.
    pub(super) async fn relay(self, name: String, link: Link) {
        match self {
            Self::Connections(listener) => relay_connections(&listener, &name, &link).await,
            Self::Datagrams(socket) => relay_datagrams(&socket, &name, &link).await,
        }
    }
}

async fn relay_connections(listener: &TcpListener, name: &str, link: &Link) {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A failed connection only affects its client; a lack of descriptors is temporary.
                let Ok((connection, peer)) = accepted else {
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                let Ok(local) = connection.local_addr() else { continue };
                let listener = name.to_owned();
                let Ok(stream) = link.open(&ConnectRequest { listener, local, peer }) else {
                    return;
                };
                carried.spawn(relay_connection(connection, stream.into()));
            }
            Some(_) = carried.join_next() => {}
        }
    }
}

/// Relays bytes in both directions until both end.
async fn relay_connection(connection: TcpStream, stream: Duplex) {
    // Without it small writes are slower.
    best_effort(connection.set_nodelay(true));
    let (incoming, mut outgoing) = connection.into_split();
    let (answer, mut question) = tokio::io::split(stream);
    let there = async move {
        let mut incoming = BufReader::with_capacity(RELAY_BUFFER_BYTES, incoming);
        let carried = copy_buf(&mut incoming, &mut question).await;
        // Fails only if the host has closed the stream already.
        best_effort(question.shutdown().await);
        (incoming, carried)
    };
    let back = async move {
        let mut answer = BufReader::with_capacity(RELAY_BUFFER_BYTES, answer);
        // The program may close its connection before it has read the whole answer.
        best_effort(copy_buf(&mut answer, &mut outgoing).await);
        best_effort(outgoing.shutdown().await);
    };
    let (mut there, mut back) = (pin!(there), pin!(back));
    let mut is_answered = false;
    let (mut incoming, carried) = tokio::select! {
        taken = &mut there => taken,
        () = &mut back => {
            is_answered = true;
            there.await
        }
    };
    let rest = async {
        if !is_answered {
            back.await;
        }
    };
    if carried.is_ok() {
        return rest.await;
    }
    // The host stopped reading, for example after refusing a request early. Closing a connection
    // with unread bytes can reset it before the client reads the response.
    let mut nowhere = sink();
    let read_on = async { tokio::join!(rest, copy_buf(&mut incoming, &mut nowhere)) };
    best_effort(timeout(LINGER, read_on).await);
}

async fn relay_datagrams(socket: &Arc<UdpSocket>, name: &str, link: &Link) {
    let Ok(local) = socket.local_addr() else {
        return;
    };
    let mut waiting = JoinSet::new();
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((count, peer)) = received else {
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                // Datagrams may be lost; clients retry.
                if waiting.len() >= MAX_PENDING_DATAGRAMS {
                    continue;
                }
                let listener = name.to_owned();
                let Ok(stream) = link.open(&ConnectRequest { listener, local, peer }) else {
                    return;
                };
                waiting.spawn(relay_datagram(socket.clone(), peer, buffer[..count].to_vec(), stream.into()));
            }
            Some(_) = waiting.join_next() => {}
        }
    }
}

/// Relays one datagram and its response.
async fn relay_datagram(
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    datagram: Vec<u8>,
    mut stream: Duplex,
) {
    let exchanged = async {
        let length = u16::try_from(datagram.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&datagram).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        socket.send_to(&answer, peer).await
    };
    // Without an answer nothing comes back, as with any datagram.
    best_effort(timeout(DATAGRAM_REPLY_TIMEOUT, exchanged).await);
}
