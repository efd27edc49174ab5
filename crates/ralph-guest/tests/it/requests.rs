//! Requests to the guest and their replies.

use std::time::Duration;

use ralph_guest::command::{CommandEnd, CommandLine};
use ralph_guest::wire::{
    ConnectRequest, ExecRequest, FileWriteMode, Flow, GuestFailure, GuestReply, GuestRequest,
    GuestStream, HostHello, ListenKind, PROTOCOL_VERSION, PathStat, SignalRequest,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::test_guest::{TestGuest, collect_reply, shell_request};

fn command_end(reply: &GuestReply) -> CommandEnd {
    let GuestReply::Ended(outcome) = reply else {
        panic!("{reply:?}")
    };
    outcome.ended
}

#[tokio::test]
async fn the_handshake_reports_the_protocol_version() {
    let guest = TestGuest::start();
    let (reply, _, _) = guest
        .request(&GuestRequest::Hello(HostHello {
            protocol: PROTOCOL_VERSION,
        }))
        .await;
    let GuestReply::Welcome(welcome) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(welcome.protocol, PROTOCOL_VERSION);
    assert_eq!(guest.request(&GuestRequest::Ping).await.0, GuestReply::Done);
}

#[tokio::test]
async fn commands_run_in_the_images_environment() {
    let guest = TestGuest::start();
    let line = "echo \"$FROM_IMAGE $EXTRA ${HOME##*/} ${PWD##*/}\"; echo problem >&2; exit 3";
    let request = ExecRequest {
        env: [("EXTRA".to_owned(), "more".to_owned())].into(),
        ..shell_request(line)
    };
    let (reply, stdout, stderr) = guest.request(&GuestRequest::Exec(request)).await;
    assert_eq!(command_end(&reply), CommandEnd::Exited(3));
    assert_eq!(String::from_utf8_lossy(&stdout), "yes more home repo\n");
    assert_eq!(stderr, b"problem\n");
}

#[tokio::test]
async fn input_of_any_size_is_echoed() {
    let guest = TestGuest::start();
    let request = ExecRequest {
        input: true,
        program: CommandLine::Argv(vec!["cat".into()]),
        ..shell_request("")
    };
    let stream = guest.open(&GuestRequest::Exec(request));
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(5_000_000).collect();
    let sender = &stream.sender;
    let (mut data, mut messages) = (stream.data, stream.messages);
    let send = async {
        sender.send_all(Flow::Main, &bytes).await;
        sender.finish();
    };
    let take = async {
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            received.extend(data.next().await.expect("more bytes").1);
        }
        received
    };
    let ((), received) = tokio::join!(send, take);
    assert!(received == bytes, "{} bytes were returned", received.len());
    let reply = messages.next().await.unwrap();
    assert_eq!(
        command_end(&serde_json::from_slice(&reply).unwrap()),
        CommandEnd::Exited(0)
    );
}

#[tokio::test]
async fn a_slow_reader_delays_only_its_own_stream() {
    let guest = TestGuest::start();
    let flood = guest.open(&GuestRequest::Exec(shell_request(
        "exec head -c 20000000 /dev/zero",
    )));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (reply, stdout, _) = guest
        .request(&GuestRequest::Exec(shell_request("echo through")))
        .await;
    assert_eq!(
        (command_end(&reply), stdout),
        (CommandEnd::Exited(0), b"through\n".to_vec())
    );
    let mut flood = flood;
    let (reply, stdout, _) = collect_reply(&mut flood).await;
    assert_eq!(
        (command_end(&reply), stdout.len()),
        (CommandEnd::Exited(0), 20_000_000)
    );
}

#[tokio::test]
async fn signals_reach_the_command() {
    let guest = TestGuest::start();
    let line = "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done";
    let mut stream = guest.open(&GuestRequest::Exec(shell_request(line)));
    let first = stream.data.next().await.unwrap();
    assert_eq!(first.1, b"ready\n");
    stream.sender.send_message(&SignalRequest { signal: 10 });
    let (reply, stdout, _) = collect_reply(&mut stream).await;
    assert_eq!(
        (command_end(&reply), stdout),
        (CommandEnd::Exited(7), b"caught\n".to_vec())
    );
}

#[tokio::test]
async fn a_command_that_cannot_start_is_reported() {
    let guest = TestGuest::start();
    let missing = ExecRequest {
        program: CommandLine::Argv(vec!["no-such-program".into()]),
        ..shell_request("")
    };
    let (reply, _, _) = guest.request(&GuestRequest::Exec(missing)).await;
    let GuestReply::NotStarted(GuestFailure::System { number, .. }) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(number, Some(2));
    let outside = ExecRequest {
        cwd: "../..".into(),
        ..shell_request("pwd")
    };
    let (reply, _, _) = guest.request(&GuestRequest::Exec(outside)).await;
    assert_eq!(reply, GuestReply::Failed(GuestFailure::Escapes));
}

#[tokio::test]
async fn files_of_any_size_round_trip() {
    let guest = TestGuest::start();
    for size in [0, 1, 131_072, 131_073, 3_000_000] {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
        let path = "repo/a/b/file".to_owned();
        let way = FileWriteMode::Replace;
        let mut stream = guest.open(&GuestRequest::Write {
            path: path.clone(),
            way,
        });
        stream.sender.send_all(Flow::Main, &bytes).await;
        stream.sender.finish();
        assert_eq!(collect_reply(&mut stream).await.0, GuestReply::Done);
        let limit = bytes.len() as u64;
        let (reply, read, _) = guest
            .request(&GuestRequest::Read {
                path: path.clone(),
                limit,
            })
            .await;
        assert_eq!(reply, GuestReply::Done);
        assert!(read == bytes, "{size} bytes became {}", read.len());
        if limit > 0 {
            let too_small = GuestRequest::Read {
                path: path.clone(),
                limit: limit - 1,
            };
            assert_eq!(
                guest.request(&too_small).await.0,
                GuestReply::TooLarge { size: limit }
            );
        }
        let reply = guest.request(&GuestRequest::Stat { path }).await.0;
        let kind = ralph_guest::files::GuestEntryKind::File;
        assert_eq!(reply, GuestReply::Stat(PathStat { kind, size: limit }));
    }
}

#[tokio::test]
async fn an_incomplete_file_never_appears() {
    let guest = TestGuest::start();
    let request = GuestRequest::Write {
        path: "repo/file".into(),
        way: FileWriteMode::Replace,
    };
    let stream = guest.open(&request);
    stream.sender.send_all(Flow::Main, b"half of it").await;
    drop(stream);
    guest.request(&GuestRequest::Ping).await;
    let stat = GuestRequest::Stat {
        path: "repo/file".into(),
    };
    assert_eq!(
        guest.request(&stat).await.0,
        GuestReply::Failed(GuestFailure::NotFound)
    );
    let left: Vec<_> = std::fs::read_dir(guest.root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn directories_are_created_listed_and_deleted() {
    let guest = TestGuest::start();
    let path = |path: &str| path.to_owned();
    let made = guest
        .request(&GuestRequest::MakeDirectory {
            path: path("repo/x/y"),
        })
        .await;
    assert_eq!(made.0, GuestReply::Done);
    let (reply, lines, _) = guest
        .request(&GuestRequest::List {
            path: path("repo/x"),
        })
        .await;
    assert_eq!(reply, GuestReply::Done);
    let entry: ralph_guest::files::GuestDirEntry = serde_json::from_slice(&lines).unwrap();
    assert_eq!(entry.name, "y");
    assert_eq!(
        guest
            .request(&GuestRequest::Delete {
                path: path("repo/x")
            })
            .await
            .0,
        GuestReply::Done
    );
    let listed = guest
        .request(&GuestRequest::List {
            path: path("repo/x"),
        })
        .await
        .0;
    assert_eq!(listed, GuestReply::Failed(GuestFailure::NotFound));
    assert_eq!(guest.request(&GuestRequest::Sync).await.0, GuestReply::Done);
}

#[tokio::test]
async fn disconnecting_kills_running_commands() {
    let mut guest = TestGuest::start();
    let line = "while :; do echo . >> beat; sleep 0.02; done";
    let stream = guest.open(&GuestRequest::Exec(shell_request(line)));
    let beat = guest.root.path().join("repo/beat");
    while !beat.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    guest.disconnect().await;
    let before = std::fs::read(&beat).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(std::fs::read(&beat).unwrap().len(), before.len());
    drop(stream);
}

/// Starts a listener of the guest on a free address.
async fn listen(guest: &TestGuest) -> (GuestStream, String) {
    let port = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap().port()
    };
    let address = format!("127.0.0.1:{port}");
    let listen = GuestRequest::Listen {
        name: "listener".into(),
        address: address.clone(),
        listening: ListenKind::Connections,
    };
    let mut listening = guest.open(&listen);
    assert_eq!(collect_reply(&mut listening).await.0, GuestReply::Done);
    (listening, address)
}

#[tokio::test]
async fn a_response_reaches_a_client_that_is_still_sending() {
    let mut guest = TestGuest::start();
    let (_listening, address) = listen(&guest).await;
    let mut client = tokio::net::TcpStream::connect(&address).await.unwrap();
    client.write_all(b"question").await.unwrap();
    let opened = guest.incoming.recv().await.unwrap();
    let long = vec![b'a'; 100_000];
    opened.stream.sender.send_all(Flow::Main, &long).await;
    drop(opened);
    for _ in 0..10 {
        client.write_all(&[b'q'; 10_000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    assert_eq!(received.len(), long.len());
}

#[tokio::test]
async fn connections_inside_become_streams() {
    let mut guest = TestGuest::start();
    let (listening, address) = listen(&guest).await;
    let mut client = tokio::net::TcpStream::connect(&address).await.unwrap();
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut opened = guest.incoming.recv().await.unwrap();
    let connect: ConnectRequest = serde_json::from_slice(&opened.message).unwrap();
    assert_eq!(connect.listener, "listener");
    assert_eq!(connect.local.to_string(), address);
    assert_eq!(connect.peer, client.local_addr().unwrap());
    assert_eq!(
        opened.stream.data.next().await,
        Some((Flow::Main, b"question".to_vec()))
    );
    assert_eq!(opened.stream.data.next().await, None);
    opened.stream.sender.send_all(Flow::Main, b"answer").await;
    opened.stream.sender.finish();
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    assert_eq!(received, b"answer");
    drop(listening);
    guest.request(&GuestRequest::Ping).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(tokio::net::TcpStream::connect(&address).await.is_err());
}

#[tokio::test]
async fn an_unknown_request_is_rejected() {
    let guest = TestGuest::start();
    let mut stream = guest.link.open(&serde_json::json!({"dance": {}})).unwrap();
    let (reply, _, _) = collect_reply(&mut stream).await;
    let GuestReply::Failed(GuestFailure::System { number, text }) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(number, None);
    assert!(
        text.starts_with("invalid request: unknown variant `dance`"),
        "{text}"
    );
}

#[tokio::test]
async fn datagrams_inside_become_streams() {
    let mut guest = TestGuest::start();
    let free = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let listen = GuestRequest::Listen {
        name: "names".into(),
        address: address.clone(),
        listening: ListenKind::Datagrams,
    };
    let mut listening = guest.open(&listen);
    assert_eq!(collect_reply(&mut listening).await.0, GuestReply::Done);
    let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.send_to(b"who?", &address).await.unwrap();
    let opened = guest.incoming.recv().await.unwrap();
    let mut stream = ralph_guest::wire::Duplex::from(opened.stream);
    let mut question = [0; 6];
    stream.read_exact(&mut question).await.unwrap();
    assert_eq!(&question, b"\0\x04who?");
    stream.write_all(b"\0\x03me!").await.unwrap();
    let mut received = [0; 16];
    let (count, from) = client.recv_from(&mut received).await.unwrap();
    assert_eq!(
        (&received[..count], from.to_string()),
        (&b"me!"[..], address)
    );
}
