//! Every record arrives once, whenever a client comes and goes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::thread;

use serde_json::json;

use super::fixture::{Dice, Received, SECRET, StreamFixture, StreamServer, notice, numbers};
use crate::live::StreamLimits;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_starts_with_its_head_and_has_the_recorded_events() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    journal.append(notice("one\u{2028}two")).unwrap();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    let hello = client.frame().await;
    assert_eq!(
        hello,
        json!({"type": "hello", "run": fixture.run, "head": 2, "after": 0, "reset": false})
    );
    let frames = client.frames_until(2).await;
    let text = std::fs::read_to_string(fixture.dir.journal()).unwrap();
    let records: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected: Vec<_> = records
        .iter()
        .map(|record| {
            json!({"seq": record["seq"], "ts": record["at"], "run": fixture.run,
                "type": record["event"]["type"], "data": record["event"]})
        })
        .collect();
    assert_eq!(frames, expected);
    journal.append(notice("three")).unwrap();
    assert_eq!(client.frame().await["data"]["message"], "three");
    server.stop().await;
}

/// Reads the stream in pieces until record `end`, with a new connection for each.
async fn read_in_pieces(server: &StreamServer, end: u64, start: u64) -> Vec<u64> {
    let mut dice = Dice(start);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| *last < end) {
        let after = seen.last().copied().unwrap_or(0);
        let mut client = server.open(&format!("after={after}")).await;
        let hello = client.frame().await;
        assert_eq!(
            (&hello["after"], &hello["reset"]),
            (&json!(after), &json!(false))
        );
        for _ in 0..dice.below(120) {
            if seen.last().is_some_and(|last| *last == end) {
                break;
            }
            seen.extend(client.frame().await["seq"].as_u64());
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_is_lost_or_doubled_over_many_reconnections_while_records_are_appended() {
    const RECORDS: u64 = 3000;
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let writer = thread::spawn(move || {
        let mut dice = Dice(7);
        while journal.state().seq < RECORDS {
            let rest = RECORDS - journal.state().seq;
            let count = (1 + dice.below(30)).min(rest);
            // Some records are longer than a part of the file that is encoded at once.
            let length = if dice.below(50) == 0 {
                150_000
            } else {
                dice.below(2000)
            };
            let message = "x".repeat(usize::try_from(length).unwrap());
            journal
                .append_all((0..count).map(|_| notice(&message)))
                .unwrap();
        }
    });
    let readers = (1..=6).map(|dice| read_in_pieces(&server, RECORDS, dice));
    let expected: Vec<u64> = (1..=RECORDS).collect();
    for seen in futures_util::future::join_all(readers).await {
        assert_eq!(seen, expected);
    }
    writer.join().unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_continues_after_a_restart_of_the_server() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    journal.append(notice("before")).unwrap();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    assert_eq!(numbers(&client.frames_until(2).await), [1, 2]);
    server.stop().await;
    assert_eq!(client.end().await, Received::Closed(1001));
    journal
        .append_all([notice("meanwhile"), notice("more")])
        .unwrap();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("after=2").await;
    assert_eq!(numbers(&client.frames_until(4).await), [3, 4]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_record_is_not_sent_and_the_next_one_follows_after_the_repair() {
    let fixture = StreamFixture::new();
    drop(fixture.create());
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    assert_eq!(numbers(&client.frames_until(1).await), [1]);
    let mut file = OpenOptions::new()
        .append(true)
        .open(fixture.dir.journal())
        .unwrap();
    file.write_all(b"{\"v\":1,\"seq\":2,\"prev\":\"").unwrap();
    let mut second = server.open("after=0").await;
    assert_eq!(second.frame().await["head"], 1);
    // The next process moves the torn part aside.
    let mut journal = fixture.open();
    journal.append(notice("whole")).unwrap();
    for client in [&mut client, &mut second] {
        let last = client.frames_until(2).await.pop().unwrap();
        assert_eq!(last["data"]["message"], "whole");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_starts_again_if_the_journal_is_another_one() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    journal.append_all((0..9).map(|_| notice("old"))).unwrap();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    client.frames_until(10).await;
    drop(journal);
    std::fs::remove_file(fixture.dir.journal()).unwrap();
    let mut journal = fixture.create();
    journal.append(notice("new")).unwrap();
    let ended = client.end().await;
    assert!(
        [Received::Closed(1001), Received::Closed(4004)].contains(&ended),
        "{ended:?}"
    );
    let mut client = server.open("after=10").await;
    let hello = client.frame().await;
    assert_eq!((&hello["head"], &hello["reset"]), (&json!(2), &json!(true)));
    assert_eq!(numbers(&client.frames_until(2).await), [1, 2]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_even_if_the_writer_did_not_know_them() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    journal.append(notice(&format!("said {SECRET}"))).unwrap();
    fixture.dir.reopen_iteration(1).unwrap();
    std::fs::write(
        fixture.dir.live_output(1),
        format!("$ env\n  KEY={SECRET}\n"),
    )
    .unwrap();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open("").await;
    let frames = client.frames_until(2).await;
    assert_eq!(
        frames[0]["text"],
        "$ env\n  KEY=[REDACTED:ANTHROPIC_API_KEY]\n"
    );
    assert_eq!(
        frames[2]["data"]["message"],
        "said [REDACTED:ANTHROPIC_API_KEY]"
    );
    server.stop().await;
}
