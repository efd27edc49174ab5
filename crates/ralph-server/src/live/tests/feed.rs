//! The stream of all runs: every event arrives once, and a client learns when it has to load everything.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::thread;

use futures_util::future::join_all;
use ralph_core::id::RunId;
use ralph_core::secret::Redactor;
use ralph_engine::journal::Journal;
use ralph_test::TestClock;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Executor as _};

use super::fixture::{
    Dice, Received, SECRET, StreamClient, StreamFixture, StreamServer, notice, numbers,
    small_limits,
};
use crate::live::StreamLimits;

/// A client that reconnects, and the numbers of the events that it received of each run.
#[derive(Default)]
struct FeedClient {
    cursor: String,
    seen: BTreeMap<String, Vec<u64>>,
}

impl FeedClient {
    /// Opens the stream behind the last frame.
    async fn open(&mut self, server: &StreamServer) -> StreamClient {
        let cursor = Some(self.cursor.as_str()).filter(|cursor| !cursor.is_empty());
        let mut client = server.open_feed(cursor).await;
        let hello = client.frame().await;
        assert_eq!(
            (&hello["type"], &hello["reset"]),
            (&json!("hello"), &json!(false))
        );
        if cursor.is_some() {
            assert_eq!(
                hello["cursor"], self.cursor,
                "the stream starts behind the cursor"
            );
        }
        self.receive(&hello);
        client
    }

    fn receive(&mut self, frame: &Value) {
        frame["cursor"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.cursor);
        if let Some(seq) = frame["seq"].as_u64() {
            let run = frame["run"].as_str().unwrap().to_owned();
            self.seen.entry(run).or_default().push(seq);
        }
    }

    fn has(&self, runs: &[RunId], last: u64) -> bool {
        let last_of = |run: &RunId| self.seen.get(run.as_str())?.last().copied();
        runs.iter().all(|run| last_of(run) == Some(last))
    }

    /// Reads in pieces until each run's last event is this one, with a new connection for each.
    async fn read_until(&mut self, server: &StreamServer, dice: u64, runs: &[RunId], last: u64) {
        let mut dice = Dice(dice);
        while !self.has(runs, last) {
            let mut client = self.open(server).await;
            for _ in 0..dice.below(200) {
                if self.has(runs, last) {
                    break;
                }
                let frame = client.frame().await;
                self.receive(&frame);
            }
        }
    }
}

fn run_ids(count: u32) -> Vec<RunId> {
    let id = |number: u32| RunId::parse(&format!("260301-{:06}-{number:04x}", 100_000 + number));
    (1..=count).map(|number| id(number).unwrap()).collect()
}

/// Appends records to several runs in turns, until each has the last one.
fn write_runs(fixture: &StreamFixture, runs: &[RunId], last: u64) {
    let open = |run: &RunId| {
        let dir = fixture.run_dir(run);
        if dir.journal().exists() {
            Journal::open(&dir, TestClock::running(), Redactor::default()).unwrap()
        } else {
            fixture.create_run(run)
        }
    };
    let mut journals: Vec<_> = runs.iter().map(open).collect();
    let mut dice = Dice(last);
    while journals.iter().any(|journal| journal.state().seq < last) {
        for journal in &mut journals {
            let rest = last - journal.state().seq;
            let count = dice.below(40).min(rest);
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
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_all_runs_has_new_events_with_their_cursors() {
    let fixture = StreamFixture::new();
    let mut old = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open_feed(None).await;
    let hello = client.frame().await;
    assert_eq!(
        hello,
        json!({"type": "hello", "cursor": hello["cursor"], "head": hello["cursor"], "reset": false})
    );
    old.append(notice(&format!("said {SECRET}"))).unwrap();
    let first = client.frame().await;
    let text = fs::read_to_string(fixture.dir.journal()).unwrap();
    let record: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut data = record["event"].clone();
    data["message"] = json!("said [REDACTED:ANTHROPIC_API_KEY]");
    assert_eq!(
        first,
        json!({"cursor": first["cursor"], "seq": 2, "ts": record["at"], "run": fixture.run,
            "type": "notice", "data": data})
    );
    let run = &run_ids(3)[2];
    let mut new = fixture.create_run(run);
    new.append(notice("new")).unwrap();
    let created = client.frame().await;
    assert_eq!((&created["run"], &created["seq"]), (&json!(run), &json!(1)));
    let second = client.frame().await;
    assert_eq!((&second["run"], &second["seq"]), (&json!(run), &json!(2)));
    // A client that comes back gets the same bytes.
    let mut again = server.open_feed(first["cursor"].as_str()).await;
    let hello = again.frame().await;
    assert_eq!(hello["cursor"], first["cursor"]);
    assert_eq!(
        [again.frame().await, again.frame().await],
        [created, second]
    );
    server.stop().await;
    assert_eq!(client.end().await, Received::Closed(1001));
}

#[derive(Clone, Copy)]
enum ServerEnd {
    Stopped,
    Killed,
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_several_runs_arrive_once_over_reconnections_and_ends_of_the_server() {
    let fixture = Arc::new(StreamFixture::new());
    let runs = run_ids(4);
    let mut clients: Vec<FeedClient> = (0..5).map(|_| FeedClient::default()).collect();
    let mut last = 0;
    for end in [ServerEnd::Stopped, ServerEnd::Killed, ServerEnd::Stopped] {
        // Some events are recorded while no server runs, others while it starts.
        if last > 0 {
            write_runs(&fixture, &runs[..2], last + 100);
        }
        last += 300;
        let server = fixture.serve(StreamLimits::default()).await;
        for client in &mut clients {
            client.open(&server).await;
        }
        let writer = thread::spawn({
            let (fixture, runs) = (fixture.clone(), runs.clone());
            move || write_runs(&fixture, &runs, last)
        });
        let reading = clients.iter_mut().zip(last..);
        let reading = reading.map(|(client, dice)| client.read_until(&server, dice, &runs, last));
        join_all(reading).await;
        writer.join().unwrap();
        let mut connected = clients[0].open(&server).await;
        match end {
            ServerEnd::Stopped => {
                server.stop().await;
                assert_eq!(connected.end().await, Received::Closed(1001));
            }
            ServerEnd::Killed => {
                server.kill().await;
                assert_eq!(connected.end().await, Received::Lost);
            }
        }
    }
    let expected: Vec<u64> = (1..=last).collect();
    for client in clients {
        for run in &runs {
            assert_eq!(client.seen[run.as_str()], expected, "{run}");
        }
    }
}

/// Returns the first frame of a stream behind a cursor.
async fn hello(server: &StreamServer, cursor: &str) -> Value {
    server.open_feed(Some(cursor)).await.frame().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_the_server_does_not_know_starts_with_new_events_and_says_so() {
    let fixture = StreamFixture::new();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open_feed(None).await;
    let start = client.frame().await["cursor"].as_str().unwrap().to_owned();
    let mut journal = fixture.create();
    for _ in 0..3 {
        let seq = journal.append(notice("x")).unwrap();
        client.frames_until(seq).await;
    }
    let known = hello(&server, &start).await;
    assert_eq!(
        (&known["cursor"], &known["reset"]),
        (&json!(start), &json!(false))
    );
    let head = known["head"].as_str().unwrap();
    let instance = start.split('.').next().unwrap();
    let ahead = format!("{instance}.999.0");
    for unknown in ["", "x", "0.0.0", "ffff.1.0", &ahead, "%F0%9F%A6%80"] {
        let hello = hello(&server, unknown).await;
        assert_eq!(
            (&hello["type"], &hello["cursor"], &hello["reset"]),
            (&json!("hello"), &json!(head), &json!(true)),
            "{unknown}"
        );
    }
    // The feed has a bounded number of entries.
    let url = format!("sqlite://{}", fixture.index_file().display());
    sqlx::any::install_default_drivers();
    let options: sqlx::any::AnyConnectOptions = url.parse().unwrap();
    let mut database = options.connect().await.unwrap();
    database
        .execute("DELETE FROM feed WHERE position <= 2")
        .await
        .unwrap();
    assert_eq!(hello(&server, &start).await["reset"], true);
    let mut client = server.open_feed(Some(&start)).await;
    assert_eq!(client.frame().await["cursor"], head);
    let seq = journal.append(notice("new")).unwrap();
    assert_eq!(client.frame().await["seq"], seq);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_built_again_while_clients_are_connected_resets_their_streams() {
    let fixture = StreamFixture::new();
    let mut journal = fixture.create();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open_feed(None).await;
    let before = client.frame().await["cursor"].as_str().unwrap().to_owned();
    journal.append(notice("before")).unwrap();
    client.frames_until(2).await;
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", fixture.index_file().display());
        fs::remove_file(path).unwrap();
    }
    let again = loop {
        let frame = client.frame().await;
        if frame["type"] == "hello" {
            break frame;
        }
    };
    assert_eq!(again["reset"], true);
    assert_ne!(again["cursor"], before);
    let seq = journal.append(notice("after")).unwrap();
    assert_eq!(client.frame().await["seq"], seq);
    assert_eq!(hello(&server, &before).await["reset"], true);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_changes_without_a_record_is_named() {
    let fixture = StreamFixture::new();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open_feed(None).await;
    let start = client.frame().await["cursor"].as_str().unwrap().to_owned();
    let mut journal = fixture.create();
    journal.append(notice("recorded")).unwrap();
    client.frames_until(2).await;
    drop(journal);
    fs::remove_dir_all(fixture.dir.root()).unwrap();
    let removed = client.frame().await;
    let expected = json!({"type": "changed", "run": fixture.run, "cursor": removed["cursor"]});
    assert_eq!(removed, expected);
    server.stop().await;
    // The records of a removed run are gone, but a client that comes back still learns of the run.
    let server = fixture.serve(StreamLimits::default()).await;
    let mut again = server.open_feed(Some(&start)).await;
    assert_eq!(again.frame().await["reset"], false);
    loop {
        let frame = again.frame().await;
        assert_eq!(
            (&frame["type"], &frame["run"]),
            (&json!("changed"), &json!(fixture.run))
        );
        if frame["cursor"] == removed["cursor"] {
            break;
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_does_not_end_the_stream_of_all_runs() {
    let fixture = StreamFixture::new();
    let server = fixture.serve(StreamLimits::default()).await;
    let mut client = server.open_feed(None).await;
    client.frame().await;
    drop(fixture.create());
    client.frames_until(1).await;
    // The records of the positions so far are gone, so the client has to load everything.
    fs::write(fixture.dir.journal(), "not a journal\n").unwrap();
    let mut frame = client.frame().await;
    while frame["type"] != "hello" {
        frame = client.frame().await;
    }
    assert_eq!(frame["reset"], true);
    let other = &run_ids(2)[1];
    let mut journal = fixture.create_run(other);
    let seq = journal.append(notice("fine")).unwrap();
    let fine = client.frames_until(seq).await.pop().unwrap();
    assert_eq!(fine["run"], json!(other));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_all_runs_that_never_reads_is_closed_and_continues_from_its_cursor() {
    const RECORDS: u64 = 20_000;
    let fixture = StreamFixture::new();
    let server = fixture.serve(small_limits()).await;
    let mut client = FeedClient::default();
    let mut slow = client.open(&server).await;
    let mut healthy = FeedClient::default().open(&server).await;
    let reader = tokio::spawn(async move { healthy.frames_until(RECORDS).await });
    let mut journal = fixture.create();
    let message = "x".repeat(1000);
    while journal.state().seq < RECORDS {
        let count = (RECORDS - journal.state().seq).min(500);
        journal
            .append_all((0..count).map(|_| notice(&message)))
            .unwrap();
    }
    server.wait_until(|streams| streams.too_slow() == 1).await;
    let expected: Vec<u64> = (1..=RECORDS).collect();
    assert_eq!(numbers(&reader.await.unwrap()), expected);
    loop {
        match slow.next().await {
            Received::Frame(frame) => client.receive(&frame),
            ended @ (Received::Closed(_) | Received::Lost) => {
                assert_eq!(ended, Received::Closed(4008));
                break;
            }
        }
    }
    let runs = [fixture.run.clone()];
    assert!(!client.has(&runs, RECORDS), "the client was behind");
    client.read_until(&server, 5, &runs, RECORDS).await;
    assert_eq!(client.seen[fixture.run.as_str()], expected);
    drop(slow);
    server.stop().await;
}
