//! A host on every address of this machine that nothing may reach.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use super::visit_log::VisitLog;

/// The response to every connection and datagram.
pub const CATCH_ALL_RESPONSE: &str = "you-have-reached-the-sink";
/// The number of attempts to find a port that is free for both protocols.
const MAX_BIND_ATTEMPTS: usize = 50;

/// A host that accepts everything: connections and datagrams at every address of this machine on
/// one port, and connections to the abstract socket [`CatchAllHost::socket_name`]. It stops when it
/// is dropped.
#[derive(Debug)]
pub struct CatchAllHost {
    port: u16,
    visits: VisitLog,
    _tasks: JoinSet<()>,
}

impl CatchAllHost {
    /// Starts the host. Must be called in a runtime.
    ///
    /// # Panics
    /// If no port is available.
    pub async fn start() -> Self {
        let (tcp, udp) = bind_tcp_and_udp().await;
        let port = tcp.local_addr().expect("an address").port();
        let visits = VisitLog::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_connections(tcp, visits.clone()));
        tasks.spawn(answer_datagrams(Arc::new(udp), visits.clone()));
        #[cfg(target_os = "linux")]
        tasks.spawn(accept_abstract_connections(
            abstract_socket_name(port),
            visits.clone(),
        ));
        Self {
            port,
            visits,
            _tasks: tasks,
        }
    }

    /// Returns the loopback address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the name of the abstract socket.
    pub fn socket_name(&self) -> String {
        abstract_socket_name(self.port)
    }

    /// Returns the recorded visits.
    pub fn visits(&self) -> &VisitLog {
        &self.visits
    }
}

fn abstract_socket_name(port: u16) -> String {
    format!("ralph-sink-{port}")
}

/// Binds a port for both protocols at all addresses, for IPv4 and IPv6 if available.
async fn bind_tcp_and_udp() -> (TcpListener, UdpSocket) {
    for address in ["[::]", "0.0.0.0"] {
        for _ in 0..MAX_BIND_ATTEMPTS {
            let Ok(tcp) = TcpListener::bind(format!("{address}:0")).await else {
                break;
            };
            let port = tcp.local_addr().expect("an address").port();
            if let Ok(udp) = UdpSocket::bind(format!("{address}:{port}")).await {
                return (tcp, udp);
            }
        }
    }
    panic!("no port is free for both protocols");
}

async fn accept_connections(listener: TcpListener, visits: VisitLog) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        visits.add("tcp: connected".to_owned());
        connections.spawn(answer_connection(stream, visits.clone()));
    }
}

async fn answer_connection(mut stream: TcpStream, visits: VisitLog) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        visits.add(format!("tcp: {}", escape_excerpt(&buffer[..count])));
        let length = CATCH_ALL_RESPONSE.len();
        let response =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{CATCH_ALL_RESPONSE}");
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer_datagrams(socket: Arc<UdpSocket>, visits: VisitLog) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // A response to a client that is gone causes an error on the next receive.
        if let Ok((count, peer)) = socket.recv_from(&mut buffer).await {
            visits.add(format!("udp: {}", escape_excerpt(&buffer[..count])));
            let response = CATCH_ALL_RESPONSE.as_bytes();
            drop(socket.send_to(response, peer).await);
        }
    }
}

#[cfg(target_os = "linux")]
async fn accept_abstract_connections(name: String, visits: VisitLog) {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net;
    let address = net::SocketAddr::from_abstract_name(name).expect("a short name");
    let listener = net::UnixListener::bind_addr(&address).expect("a name that is free");
    listener.set_nonblocking(true).expect("a listener");
    let listener = tokio::net::UnixListener::from_std(listener).expect("a runtime");
    while listener.accept().await.is_ok() {
        visits.add("unix: connected".to_owned());
    }
}

fn escape_excerpt(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 120;
    bytes[..bytes.len().min(MAX_BYTES)]
        .escape_ascii()
        .to_string()
}
