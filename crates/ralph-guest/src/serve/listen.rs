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
    pub(super) async fn bind(address: &str, kind: ListenKind) -> io::Result<Self> {
        Ok(match kind {
            ListenKind::Connections => Self::Connections(TcpListener::bind(address).await?),
            ListenKind::Datagrams => Self::Datagrams(Arc::new(UdpSocket::bind(address).await?)),
        })
    }

    /// Opens a stream to the host for each connection or datagram, until the session ends.
    pub(super) async fn relay(self, name: String, link: Link) {
        match self {
            Self::Connections(listener) => relay_connections(&listener, &name, &link).await,
            Self::Datagrams(socket) => relay_datagrams(&socket, &name, &link).await,
        }
    }
}

async fn relay_connections(listener: &TcpListener, name: &str, link: &Link) {
    let mut relays = JoinSet::new();
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
                relays.spawn(relay_connection(connection, stream.into()));
            }
            Some(_) = relays.join_next() => {}
        }
    }
}

/// Relays bytes in both directions until both end.
async fn relay_connection(connection: TcpStream, stream: Duplex) {
    // Without it small writes are slower.
    best_effort(connection.set_nodelay(true));
    let (client_reader, mut client_writer) = connection.into_split();
    let (host_reader, mut host_writer) = tokio::io::split(stream);
    let upload = async move {
        let mut client_reader = BufReader::with_capacity(RELAY_BUFFER_BYTES, client_reader);
        let copied = copy_buf(&mut client_reader, &mut host_writer).await;
        // Fails only if the host has closed the stream already.
        best_effort(host_writer.shutdown().await);
        (client_reader, copied)
    };
    let download = async move {
        let mut host_reader = BufReader::with_capacity(RELAY_BUFFER_BYTES, host_reader);
        // The program may close its connection before it has read the whole response.
        best_effort(copy_buf(&mut host_reader, &mut client_writer).await);
        best_effort(client_writer.shutdown().await);
    };
    let (mut upload, mut download) = (pin!(upload), pin!(download));
    let mut is_downloaded = false;
    let (mut client_reader, copied) = tokio::select! {
        result = &mut upload => result,
        () = &mut download => {
            is_downloaded = true;
            upload.await
        }
    };
    let rest = async {
        if !is_downloaded {
            download.await;
        }
    };
    if copied.is_ok() {
        return rest.await;
    }
    // The host stopped reading, for example after refusing a request early. Closing a connection
    // with unread bytes can reset it before the client reads the response.
    let mut discarded = sink();
    let drain = async { tokio::join!(rest, copy_buf(&mut client_reader, &mut discarded)) };
    best_effort(timeout(LINGER, drain).await);
}

async fn relay_datagrams(socket: &Arc<UdpSocket>, name: &str, link: &Link) {
    let Ok(local) = socket.local_addr() else {
        return;
    };
    let mut pending = JoinSet::new();
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((count, peer)) = received else {
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                // Datagrams may be lost; clients retry.
                if pending.len() >= MAX_PENDING_DATAGRAMS {
                    continue;
                }
                let listener = name.to_owned();
                let Ok(stream) = link.open(&ConnectRequest { listener, local, peer }) else {
                    return;
                };
                pending.spawn(relay_datagram(socket.clone(), peer, buffer[..count].to_vec(), stream.into()));
            }
            Some(_) = pending.join_next() => {}
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
    let exchange = async {
        let length = u16::try_from(datagram.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&datagram).await?;
        let mut response = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut response).await?;
        socket.send_to(&response, peer).await
    };
    // Datagrams may be lost; clients retry.
    best_effort(timeout(DATAGRAM_REPLY_TIMEOUT, exchange).await);
}
