//! The live output of the running command.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use serde_json::Value;

use super::fixture::{StreamClient, StreamFixture, notice};
use crate::live::StreamLimits;

impl StreamFixture {
    pub(super) fn write_output(&self, iteration: u32, bytes: &[u8]) {
        self.dir.reopen_iteration(iteration).unwrap();
        let path = self.dir.live_output(iteration);
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(bytes).unwrap();
    }
}

/// Returns the output up to this byte; its frames have no gaps.
async fn output_until(client: &mut StreamClient, from: u64, to: u64) -> (String, Vec<Value>) {
    let (mut at, mut text, mut frames) = (from, String::new(), Vec::new());
    while at < to {
        let frame = client.frame().await;
        if frame["type"] == "output" {
            assert_eq!(frame["from"], at, "no gap and nothing twice");
            at = frame["to"].as_u64().unwrap();
            text.push_str(frame["text"].as_str().unwrap());
            frames.push(frame);
        }
    }
    assert_eq!(at, to);
    (text, frames)
}

#[tokio::test(flavor = "multi_thread")]
async fn output_arrives_in_order_however_its_characters_are_split() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    let text = "$ make\n  grün ✓ 🦀 done\n".repeat(40);
    for part in text.as_bytes().chunks(7) {
        fixture.write_output(1, part);
        tokio::task::yield_now().await;
    }
    let (received, frames) = output_until(&mut client, 0, text.len() as u64).await;
    assert_eq!(received, text);
    assert!(
        frames
            .iter()
            .all(|frame| frame["iteration"] == 1 && frame["run"] == super::fixture::RUN)
    );
    // A client that comes back continues at any byte that it received.
    let middle = text.find("done").unwrap() as u64;
    let mut client = server.open(&format!("after=1&output=1:{middle}")).await;
    let (rest, _) = output_until(&mut client, middle, text.len() as u64).await;
    assert_eq!(rest, text[usize::try_from(middle).unwrap()..]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_split_and_hostile_bytes_are_replaced() {
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    assert_eq!(client.frame().await["type"], "hello");
    let mut bytes = b"$ cat /bin/sh\n".to_vec();
    bytes.extend("\u{1b}[31m\u{202e}\"\\\0".bytes());
    bytes.extend((0..=255).cycle().take(200_000));
    bytes.extend(vec![b'x'; 200_000]);
    bytes.push(b'\n');
    fixture.write_output(1, &bytes);
    let (text, frames) = output_until(&mut client, 0, bytes.len() as u64).await;
    assert!(text.starts_with("$ cat /bin/sh\n\u{1b}[31m\u{202e}\"\\\0\0\u{1}"));
    assert!(text.contains('\u{fffd}') && text.ends_with("xx\n"));
    for frame in frames {
        let length = frame["to"].as_u64().unwrap() - frame["from"].as_u64().unwrap();
        assert!(length <= 64 << 10, "{length}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_gets_the_end_of_the_output_and_another_none() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let text = "  a line of output\n".repeat(20_000);
    fixture.write_output(3, text.as_bytes());
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    assert_eq!(client.frame().await["type"], "hello");
    let first = client.frame().await;
    let from = first["from"].as_u64().unwrap();
    let rest = text.len() as u64 - from;
    assert!((1..=(64 << 10) + 19).contains(&rest), "{rest}");
    assert_eq!(from % 19, 0, "starts with a line");
    let mut without = server.open("output=none").await;
    let mut other = server.open("output=2:500").await;
    journal.append(notice("end")).unwrap();
    let frames = without.frames_until(2).await;
    assert!(frames.iter().all(|frame| frame["type"] != "output"));
    output_until(&mut other, 0, text.len() as u64).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_precedes_the_record_that_follows_it_and_the_last_bytes_are_not_lost() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    for iteration in 1..=20 {
        fixture.write_output(iteration, b"first\n");
        journal.append(notice("begins")).unwrap();
        let before = journal.state().seq;
        let mut frames = client.frames_until(before).await;
        if !frames.iter().any(|frame| frame["type"] == "output") {
            frames.push(client.frame().await);
        }
        // As when an iteration is closed: output, the file is removed, the directory renamed, a record.
        fixture.write_output(iteration, b"last words");
        fs::remove_file(fixture.dir.live_output(iteration)).unwrap();
        fs::rename(
            fixture.dir.open_iteration(iteration),
            fixture.dir.iteration(iteration),
        )
        .unwrap();
        journal.append(notice("ended")).unwrap();
        let last = client.frames_until(before + 1).await;
        let texts: Vec<&str> = last
            .iter()
            .filter_map(|frame| frame["text"].as_str())
            .collect();
        let ended = texts.concat();
        assert!(ended.ends_with("last words"), "{iteration}: {last:?}");
        assert_eq!(last.last().unwrap()["data"]["message"], "ended");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_is_truncated_while_it_is_followed_starts_again() {
    const BYTES: u64 = 24 << 20;
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    fixture.write_output(1, b"$ flood\n");
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("output=1:0").await;
    let mut behind = server.open("output=1:0").await;
    assert_eq!(behind.frame().await["type"], "hello");
    // More than what sockets and the server keep for a client that does not read.
    fixture.write_output(1, &vec![b'x'; usize::try_from(BYTES - 8).unwrap()]);
    let mut at = 0;
    while at < BYTES {
        let frame = client.frame().await;
        at = frame["to"].as_u64().unwrap_or(at);
    }
    let file = OpenOptions::new()
        .write(true)
        .open(fixture.dir.live_output(1));
    file.unwrap().set_len(0).unwrap();
    fixture.write_output(1, b"$ again\n");
    let (text, _) = output_until(&mut client, 0, 8).await;
    assert_eq!(text, "$ again\n");
    // A client that is far behind misses what is gone, and continues with the new output.
    let mut at = 0;
    let last = loop {
        let frame = behind.frame().await;
        if frame["type"] != "output" {
            continue;
        }
        if frame["from"] == 0 && at > 0 {
            break frame;
        }
        assert_eq!(frame["from"], at, "no gap and nothing twice");
        at = frame["to"].as_u64().unwrap();
    };
    assert!(at < BYTES, "the client was behind");
    assert_eq!(last["text"], "$ again\n");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lines_arrives_in_order_beside_clients_that_never_read() {
    const LINES: usize = 600_000;
    let fixture = StreamFixture::new();
    let _journal = fixture.create();
    fixture.write_output(1, b"$ flood\n");
    let server = fixture.serve(StreamLimits::default()).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(server.open("").await);
    }
    let mut clients = [server.open("").await, server.open("").await];
    let path = fixture.dir.live_output(1);
    let writer = std::thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        for start in (0..LINES).step_by(100) {
            let lines = (start..start + 100).map(|n| format!("  line {n:06}\n"));
            let lines: String = lines.collect();
            file.write_all(lines.as_bytes()).unwrap();
        }
    });
    let end = 8 + 14 * LINES as u64;
    for client in &mut clients {
        let (text, _) = output_until(client, 0, end).await;
        let lines = text.lines().skip(1).enumerate();
        let mut wrong = lines.filter(|(n, line)| *line != format!("  line {n:06}"));
        assert_eq!(wrong.next(), None);
    }
    writer.join().unwrap();
    assert_eq!(fixture.dir.live_output(1).metadata().unwrap().len(), end);
    drop(silent);
    server.stop().await;
}
