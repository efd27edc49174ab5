//! The credential port of a gate on this machine, for agents that work without a container.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ralph_gate::{Arrival, Gate, SandboxListener};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// The delay after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A port of this machine that leads to a gate's credentials. Dropping it closes it.
#[derive(Debug)]
pub struct CredentialPort {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl CredentialPort {
    /// Opens a port that only programs on this machine can reach.
    pub async fn open(gate: Gate) -> io::Result<Self> {
        let sockets = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = sockets.local_addr()?;
        let serving = tokio::spawn(serve(sockets, gate));
        Ok(Self { address, serving })
    }

    /// Returns the address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for CredentialPort {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(sockets: TcpListener, gate: Gate) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = sockets.accept() => match accepted {
                Ok((stream, _)) => {
                    // Without this option responses only arrive a little later.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot send small packets at once");
                    }
                    let gate = gate.clone();
                    let arrival = Arrival::new(SandboxListener::Credentials);
                    connections.spawn(async move { gate.serve(arrival, stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
