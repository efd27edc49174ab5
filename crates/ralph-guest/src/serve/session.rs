//! One conversation with the host.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::guest::Guest;
use super::listen::Listener;
use super::{exec, transfer};
use crate::wire::{
    Failure, FrameError, Link, Listening, Opened, PROTOCOL, Reply, Request, Side, Stream, Welcome,
};

/// Answers the host until the connection ends; then nothing runs any more.
pub async fn converse<R, W>(guest: Arc<Guest>, reader: R, writer: W) -> Result<(), FrameError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (link, mut incoming, carry) = Link::new(Side::Guest, reader, writer);
    // Dropped at the end, which drops what each task has started.
    let mut tasks = JoinSet::new();
    let mut carry = std::pin::pin!(carry);
    loop {
        tokio::select! {
            ended = &mut carry => return ended,
            Some(opened) = incoming.recv() => {
                tasks.spawn(answer(guest.clone(), link.clone(), opened));
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn answer(guest: Arc<Guest>, link: Link, opened: Opened) {
    let Opened {
        message,
        mut stream,
    } = opened;
    let request = match serde_json::from_slice(&message) {
        Ok(request) => request,
        Err(error) => return stream.sender.message(&unknown(&error.to_string())),
    };
    let reply = match request {
        Request::Exec(request) => return exec::exec(&guest, request, stream).await,
        Request::Listen {
            name,
            address,
            listening,
        } => return listened(name, (&address, listening), link, stream).await,
        Request::Hello(_) => Reply::Welcome(Welcome {
            protocol: PROTOCOL,
            user: guest.user.map_or_else(own_user, |user| user.user),
        }),
        Request::Ping => Reply::Done,
        Request::Read { path, limit } => transfer::read(&guest, &path, limit, &stream).await,
        Request::Write { path, way } => transfer::write(&guest, &path, way, &mut stream).await,
        Request::List { path } => transfer::list(&guest, &path, &stream).await,
        Request::MakeDirectory { path } => transfer::make_directory(&guest, &path),
        Request::Stat { path } => transfer::stat(&guest, &path),
        Request::Delete { path } => transfer::delete(&guest, &path),
        Request::Sync => transfer::sync(guest.clone()).await,
    };
    stream.sender.message(&reply);
}

/// Listens until the host closes the stream.
async fn listened(
    name: String,
    (address, listening): (&str, Listening),
    link: Link,
    mut stream: Stream,
) {
    let listener = match Listener::bind(address, listening).await {
        Ok(listener) => listener,
        Err(error) => return stream.sender.message(&Reply::Failed(error.into())),
    };
    stream.sender.message(&Reply::Done);
    tokio::select! {
        () = listener.relay(name, link) => {}
        _ = stream.messages.next() => {}
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn unknown(text: &str) -> Reply {
    Reply::Failed(Failure::System {
        number: None,
        text: format!("the request is not understood: {text}"),
    })
}
