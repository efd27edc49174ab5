//! Taking connections until nobody needs them any more.

use std::future::Future;
use std::io;
use std::net;
use std::pin::pin;
use std::time::Duration;

use ralph_gate::{Arrival, Gate, Listener};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::workers::Workers;

/// How long requests may go on once it was told to end.
const LAST_TIME: Duration = Duration::from_secs(3);

/// How long it waits when the machine has no room for a connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Without an idle time, far enough away.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nobody sent a request for the idle time.
    Idle,
    /// It was told to.
    Told,
}

/// Serves the credential port of a gate. An idle time of zero never passes.
pub async fn serve(
    sockets: TcpListener,
    gate: Gate,
    idle: Duration,
    told: impl Future<Output = ()>,
) -> io::Result<Ended> {
    let mut workers = Workers::start()?;
    let idle = if idle.is_zero() { NEVER } else { idle };
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
                    connections.spawn_on(connection(gate.clone(), stream), workers.next());
                }
                Err(_) => sleep(NO_ROOM).await,
            },
            Some(_) = connections.join_next() => last = Instant::now(),
            () = sleep_until(last + idle), if connections.is_empty() => break Ended::Idle,
            () = &mut told => break Ended::Told,
        }
    };
    drop(sockets);
    let rest = async { while connections.join_next().await.is_some() {} };
    // Those that did not come to an end by then are cut off.
    timeout(LAST_TIME, rest).await.ok();
    connections.shutdown().await;
    Ok(ended)
}

/// Serves a connection on the thread that it is given to.
async fn connection(gate: Gate, stream: io::Result<net::TcpStream>) {
    // One that cannot be had here is closed, which its other end sees.
    if let Ok(stream) = stream.and_then(TcpStream::from_std) {
        let arrival = Arrival::through(Listener::Credentials);
        gate.serve(arrival, stream).await;
    }
}
