//! One session with the host.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::guest::Guest;
use super::listen::GuestListener;
use super::{exec, transfer};
use crate::wire::{
    FrameError, GuestFailure, GuestReply, GuestRequest, GuestStream, GuestWelcome, Link, LinkSide,
    ListenKind, OpenedStream, PROTOCOL_VERSION,
};

/// Answers the requests of the host until the connection ends; then all commands are stopped.
pub async fn serve_connection<R, W>(
    guest: Arc<Guest>,
    reader: R,
    writer: W,
) -> Result<(), FrameError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (link, mut incoming, transfer_frames) = Link::new(LinkSide::Guest, reader, writer);
    // Dropped at the end, which also stops the work of each task.
    let mut tasks = JoinSet::new();
    let mut transfer_frames = std::pin::pin!(transfer_frames);
    loop {
        tokio::select! {
            result = &mut transfer_frames => return result,
            Some(opened) = incoming.recv() => {
                tasks.spawn(handle_request(guest.clone(), link.clone(), opened));
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn handle_request(guest: Arc<Guest>, link: Link, opened: OpenedStream) {
    let OpenedStream {
        message,
        mut stream,
    } = opened;
    let request = match serde_json::from_slice(&message) {
        Ok(request) => request,
        Err(error) => {
            return stream
                .sender
                .send_message(&invalid_request(&error.to_string()));
        }
    };
    let reply = match request {
        GuestRequest::Exec(request) => return exec::exec(&guest, request, stream).await,
        GuestRequest::Listen {
            name,
            address,
            listening,
        } => return handle_listen(name, (&address, listening), link, stream).await,
        GuestRequest::Hello(_) => GuestReply::Welcome(GuestWelcome {
            protocol: PROTOCOL_VERSION,
            user: guest.user.map_or_else(current_uid, |user| user.user),
        }),
        GuestRequest::Ping => GuestReply::Done,
        GuestRequest::Read { path, limit } => transfer::read(&guest, &path, limit, &stream).await,
        GuestRequest::Write { path, way } => transfer::write(&guest, &path, way, &mut stream).await,
        GuestRequest::List { path } => transfer::list(&guest, &path, &stream).await,
        GuestRequest::MakeDirectory { path } => transfer::create_directory(&guest, &path),
        GuestRequest::Stat { path } => transfer::stat(&guest, &path),
        GuestRequest::Delete { path } => transfer::delete(&guest, &path),
        GuestRequest::Sync => transfer::sync(guest.clone()).await,
    };
    stream.sender.send_message(&reply);
}

/// Listens until the host closes the stream.
async fn handle_listen(
    name: String,
    (address, listening): (&str, ListenKind),
    link: Link,
    mut stream: GuestStream,
) {
    let listener = match GuestListener::bind(address, listening).await {
        Ok(listener) => listener,
        Err(error) => {
            return stream
                .sender
                .send_message(&GuestReply::Failed(error.into()));
        }
    };
    stream.sender.send_message(&GuestReply::Done);
    tokio::select! {
        () = listener.relay(name, link) => {}
        _ = stream.messages.next() => {}
    }
}

fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn invalid_request(text: &str) -> GuestReply {
    GuestReply::Failed(GuestFailure::System {
        number: None,
        text: format!("invalid request: {text}"),
    })
}
