//! Accepts connections until they are no longer needed.

use std::future::Future;
use std::io;
use std::net;
use std::pin::pin;
use std::time::Duration;

use ralph_gate::{Arrival, Gate, SandboxListener};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::workers::ConnectionThreads;

/// The time limit for open requests after a request to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The delay after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Stands for no idle timeout.
const NO_IDLE_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// The reason why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyExit {
    /// No request arrived during the idle timeout.
    Idle,
    /// The end was requested.
    Requested,
}

/// Serves the credential port of a gate. An idle timeout of zero never expires.
pub async fn serve(
    sockets: TcpListener,
    gate: Gate,
    idle: Duration,
    end_requested: impl Future<Output = ()>,
) -> io::Result<ProxyExit> {
    let mut workers = ConnectionThreads::start()?;
    let idle = if idle.is_zero() {
        NO_IDLE_TIMEOUT
    } else {
        idle
    };
    let mut end_requested = pin!(end_requested);
    let mut connections = JoinSet::new();
    let mut last = Instant::now();
    let ended = loop {
        tokio::select! {
            accepted = sockets.accept() => match accepted {
                Ok((stream, _)) => {
                    // Without this option responses only arrive a little later.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot send small packets at once");
                    }
                    let stream = stream.into_std();
                    connections.spawn_on(serve_connection(gate.clone(), stream), workers.next_handle());
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => last = Instant::now(),
            () = sleep_until(last + idle), if connections.is_empty() => break ProxyExit::Idle,
            () = &mut end_requested => break ProxyExit::Requested,
        }
    };
    drop(sockets);
    let rest = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
        tracing::debug!("requests that did not end in time are aborted");
    }
    connections.shutdown().await;
    Ok(ended)
}

/// Serves a connection on its assigned thread.
async fn serve_connection(gate: Gate, stream: io::Result<net::TcpStream>) {
    match stream.and_then(TcpStream::from_std) {
        Ok(stream) => {
            let arrival = Arrival::new(SandboxListener::Credentials);
            gate.serve(arrival, stream).await;
        }
        // The connection is closed, which the client notices.
        Err(error) => tracing::warn!(%error, "cannot register a connection"),
    }
}
