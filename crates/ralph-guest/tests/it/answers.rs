//! What the guest answers.

use std::time::Duration;

use ralph_guest::command::{Ended, Program};
use ralph_guest::wire::{
    Connect, ExecRequest, Failure, Flow, Hello, Listening, PROTOCOL, Reply, Request, Signal, Stat,
    Stream, WriteWay,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::conversation::{Conversation, answer, shell};

fn ended(reply: &Reply) -> Ended {
    let Reply::Ended(outcome) = reply else {
        panic!("{reply:?}")
    };
    outcome.ended
}

#[tokio::test]
async fn it_greets_with_its_version() {
    let guest = Conversation::begin();
    let (reply, _, _) = guest
        .ask(&Request::Hello(Hello { protocol: PROTOCOL }))
        .await;
    let Reply::Welcome(welcome) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(welcome.protocol, PROTOCOL);
    assert_eq!(guest.ask(&Request::Ping).await.0, Reply::Done);
}

#[tokio::test]
async fn commands_run_in_the_images_environment() {
    let guest = Conversation::begin();
    let line = "echo \"$FROM_IMAGE $EXTRA ${HOME##*/} ${PWD##*/}\"; echo problem >&2; exit 3";
    let request = ExecRequest {
        env: [("EXTRA".to_owned(), "more".to_owned())].into(),
        ..shell(line)
    };
    let (reply, stdout, stderr) = guest.ask(&Request::Exec(request)).await;
    assert_eq!(ended(&reply), Ended::Exited(3));
    assert_eq!(String::from_utf8_lossy(&stdout), "yes more home repo\n");
    assert_eq!(stderr, b"problem\n");
}

#[tokio::test]
async fn input_of_any_size_comes_back() {
    let guest = Conversation::begin();
    let request = ExecRequest {
        input: true,
        program: Program::Argv(vec!["cat".into()]),
        ..shell("")
    };
    let stream = guest.open(&Request::Exec(request));
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(5_000_000).collect();
    let sender = &stream.sender;
    let (mut data, mut messages) = (stream.data, stream.messages);
    let send = async {
        sender.all(Flow::Main, &bytes).await;
        sender.end();
    };
    let take = async {
        let mut taken = Vec::new();
        while taken.len() < bytes.len() {
            taken.extend(data.next().await.expect("more bytes").1);
        }
        taken
    };
    let ((), taken) = tokio::join!(send, take);
    assert!(taken == bytes, "{} bytes came back", taken.len());
    let reply = messages.next().await.unwrap();
    assert_eq!(
        ended(&serde_json::from_slice(&reply).unwrap()),
        Ended::Exited(0)
    );
}

#[tokio::test]
async fn a_slow_reader_holds_up_only_itself() {
    let guest = Conversation::begin();
    let flood = guest.open(&Request::Exec(shell("exec head -c 20000000 /dev/zero")));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (reply, stdout, _) = guest.ask(&Request::Exec(shell("echo through"))).await;
    assert_eq!(
        (ended(&reply), stdout),
        (Ended::Exited(0), b"through\n".to_vec())
    );
    let mut flood = flood;
    let (reply, stdout, _) = answer(&mut flood).await;
    assert_eq!(
        (ended(&reply), stdout.len()),
        (Ended::Exited(0), 20_000_000)
    );
}

#[tokio::test]
async fn signals_reach_the_command() {
    let guest = Conversation::begin();
    let line = "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.01; done";
    let mut stream = guest.open(&Request::Exec(shell(line)));
    let first = stream.data.next().await.unwrap();
    assert_eq!(first.1, b"ready\n");
    stream.sender.message(&Signal { signal: 10 });
    let (reply, stdout, _) = answer(&mut stream).await;
    assert_eq!(
        (ended(&reply), stdout),
        (Ended::Exited(7), b"caught\n".to_vec())
    );
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let guest = Conversation::begin();
    let missing = ExecRequest {
        program: Program::Argv(vec!["no-such-program".into()]),
        ..shell("")
    };
    let (reply, _, _) = guest.ask(&Request::Exec(missing)).await;
    let Reply::NotStarted(Failure::System { number, .. }) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(number, Some(2));
    let nowhere = ExecRequest {
        cwd: "../..".into(),
        ..shell("pwd")
    };
    let (reply, _, _) = guest.ask(&Request::Exec(nowhere)).await;
    assert_eq!(reply, Reply::Failed(Failure::Escapes));
}

#[tokio::test]
async fn files_come_back_whatever_their_size() {
    let guest = Conversation::begin();
    for size in [0, 1, 131_072, 131_073, 3_000_000] {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
        let path = "repo/a/b/file".to_owned();
        let way = WriteWay::Replace;
        let mut stream = guest.open(&Request::Write {
            path: path.clone(),
            way,
        });
        stream.sender.all(Flow::Main, &bytes).await;
        stream.sender.end();
        assert_eq!(answer(&mut stream).await.0, Reply::Done);
        let limit = bytes.len() as u64;
        let (reply, read, _) = guest
            .ask(&Request::Read {
                path: path.clone(),
                limit,
            })
            .await;
        assert_eq!(reply, Reply::Done);
        assert!(read == bytes, "{size} bytes became {}", read.len());
        if limit > 0 {
            let too_small = Request::Read {
                path: path.clone(),
                limit: limit - 1,
            };
            assert_eq!(
                guest.ask(&too_small).await.0,
                Reply::TooLarge { size: limit }
            );
        }
        let told = guest.ask(&Request::Stat { path }).await.0;
        let kind = ralph_guest::files::EntryKind::File;
        assert_eq!(told, Reply::Stat(Stat { kind, size: limit }));
    }
}

#[tokio::test]
async fn a_file_that_is_cut_off_never_appears() {
    let guest = Conversation::begin();
    let request = Request::Write {
        path: "repo/file".into(),
        way: WriteWay::Replace,
    };
    let stream = guest.open(&request);
    stream.sender.all(Flow::Main, b"half of it").await;
    drop(stream);
    guest.ask(&Request::Ping).await;
    let stat = Request::Stat {
        path: "repo/file".into(),
    };
    assert_eq!(guest.ask(&stat).await.0, Reply::Failed(Failure::NotFound));
    let left: Vec<_> = std::fs::read_dir(guest.root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn directories_are_made_listed_and_deleted() {
    let guest = Conversation::begin();
    let path = |path: &str| path.to_owned();
    let made = guest
        .ask(&Request::MakeDirectory {
            path: path("repo/x/y"),
        })
        .await;
    assert_eq!(made.0, Reply::Done);
    let (reply, lines, _) = guest
        .ask(&Request::List {
            path: path("repo/x"),
        })
        .await;
    assert_eq!(reply, Reply::Done);
    let entry: ralph_guest::files::Entry = serde_json::from_slice(&lines).unwrap();
    assert_eq!(entry.name, "y");
    assert_eq!(
        guest
            .ask(&Request::Delete {
                path: path("repo/x")
            })
            .await
            .0,
        Reply::Done
    );
    let listed = guest
        .ask(&Request::List {
            path: path("repo/x"),
        })
        .await
        .0;
    assert_eq!(listed, Reply::Failed(Failure::NotFound));
    assert_eq!(guest.ask(&Request::Sync).await.0, Reply::Done);
}

#[tokio::test]
async fn hanging_up_ends_what_runs() {
    let mut guest = Conversation::begin();
    let line = "while :; do echo . >> beat; sleep 0.02; done";
    let stream = guest.open(&Request::Exec(shell(line)));
    let beat = guest.root.path().join("repo/beat");
    while !beat.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    guest.hang_up().await;
    let before = std::fs::read(&beat).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(std::fs::read(&beat).unwrap().len(), before.len());
    drop(stream);
}

/// Has the guest listen at a free address.
async fn listening(guest: &Conversation) -> (Stream, String) {
    let port = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap().port()
    };
    let address = format!("127.0.0.1:{port}");
    let listen = Request::Listen {
        name: "door".into(),
        address: address.clone(),
        listening: Listening::Connections,
    };
    let mut listening = guest.open(&listen);
    assert_eq!(answer(&mut listening).await.0, Reply::Done);
    (listening, address)
}

#[tokio::test]
async fn an_answer_reaches_whoever_is_still_sending() {
    let mut guest = Conversation::begin();
    let (_listening, address) = listening(&guest).await;
    let mut inside = tokio::net::TcpStream::connect(&address).await.unwrap();
    inside.write_all(b"question").await.unwrap();
    let opened = guest.incoming.recv().await.unwrap();
    let long = vec![b'a'; 100_000];
    opened.stream.sender.all(Flow::Main, &long).await;
    drop(opened);
    for _ in 0..10 {
        inside.write_all(&[b'q'; 10_000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut got = Vec::new();
    inside.read_to_end(&mut got).await.unwrap();
    assert_eq!(got.len(), long.len());
}

#[tokio::test]
async fn connections_inside_become_streams() {
    let mut guest = Conversation::begin();
    let (listening, address) = listening(&guest).await;
    let mut inside = tokio::net::TcpStream::connect(&address).await.unwrap();
    inside.write_all(b"question").await.unwrap();
    inside.shutdown().await.unwrap();
    let mut opened = guest.incoming.recv().await.unwrap();
    let connect: Connect = serde_json::from_slice(&opened.message).unwrap();
    assert_eq!(connect.listener, "door");
    assert_eq!(connect.local.to_string(), address);
    assert_eq!(connect.peer, inside.local_addr().unwrap());
    assert_eq!(
        opened.stream.data.next().await,
        Some((Flow::Main, b"question".to_vec()))
    );
    assert_eq!(opened.stream.data.next().await, None);
    opened.stream.sender.all(Flow::Main, b"answer").await;
    opened.stream.sender.end();
    let mut got = Vec::new();
    inside.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"answer");
    drop(listening);
    guest.ask(&Request::Ping).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(tokio::net::TcpStream::connect(&address).await.is_err());
}

#[tokio::test]
async fn what_is_not_understood_is_said() {
    let guest = Conversation::begin();
    let mut stream = guest.link.open(&serde_json::json!({"dance": {}})).unwrap();
    let (reply, _, _) = answer(&mut stream).await;
    let Reply::Failed(Failure::System { number, text }) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(number, None);
    assert!(
        text.starts_with("the request is not understood: unknown variant `dance`"),
        "{text}"
    );
}

#[tokio::test]
async fn datagrams_inside_become_streams() {
    let mut guest = Conversation::begin();
    let free = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let listen = Request::Listen {
        name: "names".into(),
        address: address.clone(),
        listening: Listening::Datagrams,
    };
    let mut listening = guest.open(&listen);
    assert_eq!(answer(&mut listening).await.0, Reply::Done);
    let inside = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    inside.send_to(b"who?", &address).await.unwrap();
    let opened = guest.incoming.recv().await.unwrap();
    let mut stream = ralph_guest::wire::Duplex::from(opened.stream);
    let mut question = [0; 6];
    stream.read_exact(&mut question).await.unwrap();
    assert_eq!(&question, b"\0\x04who?");
    stream.write_all(b"\0\x03me!").await.unwrap();
    let mut got = [0; 16];
    let (count, from) = inside.recv_from(&mut got).await.unwrap();
    assert_eq!((&got[..count], from.to_string()), (&b"me!"[..], address));
}
