//! Taking connections until nobody needs them any more.

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

/// How long requests may go on once it was told to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long it waits when the machine has no room for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Without an idle time, far enough away.
const NO_IDLE_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyExit {
    /// Nobody sent a request for the idle time.
    Idle,
    /// It was told to.
    Requested,
}

/// Serves the credential port of a gate. An idle time of zero never passes.
pub async fn serve(
    sockets: TcpListener,
    gate: Gate,
    idle: Duration,
    told: impl Future<Output = ()>,
) -> io::Result<ProxyExit> {
    let mut workers = ConnectionThreads::start()?;
    let idle = if idle.is_zero() {
        NO_IDLE_TIMEOUT
    } else {
        idle
    };
    let mut told = pin!(told);
    let mut connections = JoinSet::new();
    let mut last = Instant::now();
    let ended = loop {
        tokio::select! {
            accepted = sockets.accept() => match accepted {
                Ok((stream, _)) => {
                    // Without it answers only come a little later.
                    stream.set_nodelay(true).ok();
                    let stream = stream.into_std();
                    connections.spawn_on(serve_connection(gate.clone(), stream), workers.next_handle());
                }
                Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
            },
            Some(_) = connections.join_next() => last = Instant::now(),
            () = sleep_until(last + idle), if connections.is_empty() => break ProxyExit::Idle,
            () = &mut told => break ProxyExit::Requested,
        }
    };
    drop(sockets);
    let rest = async { while connections.join_next().await.is_some() {} };
    // Those that did not come to an end by then are cut off.
    timeout(DRAIN_TIMEOUT, rest).await.ok();
    connections.shutdown().await;
    Ok(ended)
}

/// Serves a connection on the thread that it is given to.
async fn serve_connection(gate: Gate, stream: io::Result<net::TcpStream>) {
    // One that cannot be had here is closed, which its other end sees.
    if let Ok(stream) = stream.and_then(TcpStream::from_std) {
        let arrival = Arrival::new(SandboxListener::Credentials);
        gate.serve(arrival, stream).await;
    }
}
