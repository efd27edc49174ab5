use std::path::PathBuf;

use ralph_core::ports::{OutputSink as _, OutputStream};
use ralph_core::secret::Secret;
use tempfile::TempDir;

use super::*;
use crate::capture::Capture;
use crate::store::StateDir;

const SECRET: &str = "hunter2-0123456789";

/// A run with an open iteration.
struct LiveFixture {
    dir: RunDir,
    _home: TempDir,
}

impl LiveFixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().join("state")).unwrap();
        let dir = state.run(&ralph_core::id::RunId::parse("260301-100000-0001").unwrap());
        dir.create().unwrap();
        dir.reopen_iteration(1).unwrap();
        Self { dir, _home: home }
    }

    fn path(&self) -> PathBuf {
        self.dir.live_output(1)
    }

    fn start(&self, source: LiveSource<'_>) -> LiveOutput {
        LiveOutput::append_section(&self.path(), &redactor(), source).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

fn redactor() -> Redactor {
    Redactor::new(vec![("token".to_owned(), Secret::new(SECRET.to_owned()))])
}

fn line(kind: LiveLineKind, text: &str) -> LiveLine {
    LiveLine {
        kind,
        text: text.to_owned(),
    }
}

#[test]
fn a_line_is_in_the_file_before_the_command_ends() {
    let fixture = LiveFixture::new();
    let live = fixture.start(LiveSource::Command("make test\nmake lint"));
    let mut capture = Capture::new(&redactor()).with_live(live);
    capture.chunk(OutputStream::Stdout, b"one\n");
    capture.chunk(OutputStream::Stderr, b"$ not a heading\n");
    assert_eq!(
        fixture.text(),
        "$ make test ⏎ make lint\n  one\n  $ not a heading\n"
    );
    capture.chunk(OutputStream::Stdout, b"no line end");
    assert_eq!(
        capture.finish().both,
        "one\n$ not a heading\nno line end",
        "the live output changes nothing in the captured one"
    );
    assert!(fixture.text().ends_with("  no line end"));
}

#[test]
fn a_secret_is_masked_however_it_is_split() {
    for split in 1..SECRET.len() {
        let fixture = LiveFixture::new();
        let live = fixture.start(LiveSource::Command(&format!("echo {SECRET}")));
        let mut capture = Capture::new(&redactor()).with_live(live);
        let (first, second) = SECRET.split_at(split);
        capture.chunk(OutputStream::Stdout, format!("key {first}").as_bytes());
        assert!(!fixture.text().contains(first) || split < 4, "{first}");
        capture.chunk(OutputStream::Stdout, format!("{second}\n").as_bytes());
        capture.finish();
        let masked = "[REDACTED:token]";
        assert_eq!(
            fixture.text(),
            format!("$ echo {masked}\n  key {masked}\n"),
            "{split}"
        );
    }
}

#[test]
fn the_size_of_an_iteration_is_limited_across_restarts() {
    let fixture = LiveFixture::new();
    let mut first = fixture.start(LiveSource::Command("yes"));
    let line = [vec![b'y'; 1000], b"\n".to_vec()].concat();
    for _ in 0..100 {
        first.write_redacted(&line.repeat(1000));
    }
    let full = fixture.text();
    assert!(full.ends_with(&format!("\n{LIMIT_NOTICE}")));
    assert_eq!(full.len() as u64, MAX_BYTES + 1 + LIMIT_NOTICE.len() as u64);
    first.write_redacted(b"more\n");
    let mut resumed = fixture.start(LiveSource::Command("yes"));
    resumed.write_redacted(b"more\n");
    assert_eq!(fixture.text().len(), full.len());
    let lines = LiveFollower::new(&fixture.dir).read_new().unwrap();
    assert!(
        (4000..5000).contains(&lines.len()),
        "only the end of a long output: {}",
        lines.len()
    );
    assert!(lines[0].text.len() == 1000, "it starts with a whole line");
    let notices = lines
        .iter()
        .filter(|line| line.kind == LiveLineKind::Notice)
        .count();
    assert_eq!(notices, 1);
}

#[test]
fn a_resumed_iteration_appends_to_its_output() {
    let fixture = LiveFixture::new();
    let mut crashed = fixture.start(LiveSource::Command("make"));
    crashed.write_redacted(b"half a li");
    drop(crashed);
    let mut resumed = fixture.start(LiveSource::Agent("claude"));
    resumed.write_event(&AgentEvent::Text {
        text: format!("two\nlines with {SECRET}\n"),
    });
    resumed.write_event(&AgentEvent::ToolDone {
        id: "1".into(),
        ok: false,
    });
    assert_eq!(
        fixture.text(),
        "$ make\n  half a li\n> claude\n  two\n  lines with [REDACTED:token]\n  → failed\n"
    );
    remove(&fixture.path()).unwrap();
    remove(&fixture.path()).unwrap();
    assert!(!fixture.path().exists());
}

#[test]
fn a_follower_reads_sections_as_they_grow() {
    use LiveLineKind::{Agent, AgentOutput, Command, CommandOutput};
    let fixture = LiveFixture::new();
    let mut follower = LiveFollower::new(&fixture.dir);
    assert_eq!(follower.read_new().unwrap(), []);
    let mut output = fixture.start(LiveSource::Command("make"));
    output.write_redacted(b"one\n\n10 %\r20 %\rdo");
    assert_eq!(
        follower.read_new().unwrap(),
        [
            line(Command, "make"),
            line(CommandOutput, "one"),
            line(CommandOutput, ""),
            line(CommandOutput, "10 %"),
            line(CommandOutput, "20 %"),
        ]
    );
    output.write_redacted(b"ne\r\n> fake\n");
    let mut session = fixture.start(LiveSource::Agent("claude"));
    session.write_event(&AgentEvent::Tool {
        id: "1".into(),
        tool: "Bash".into(),
        label: "ls".into(),
    });
    assert_eq!(
        follower.read_new().unwrap(),
        [
            line(CommandOutput, "done"),
            line(CommandOutput, "> fake"),
            line(Agent, "claude"),
            line(AgentOutput, "Bash ls"),
        ]
    );
}

#[test]
fn a_follower_returns_the_line_that_a_crash_left_incomplete() {
    let fixture = LiveFixture::new();
    let mut follower = LiveFollower::new(&fixture.dir);
    let mut output = fixture.start(LiveSource::Command("make"));
    output.write_redacted(b"one\nhalf");
    assert_eq!(
        follower.read_new().unwrap().last(),
        Some(&line(LiveLineKind::CommandOutput, "one"))
    );
    assert_eq!(
        follower.take_incomplete_line(),
        Some(line(LiveLineKind::CommandOutput, "half"))
    );
    assert_eq!(follower.take_incomplete_line(), None);
}

#[test]
fn a_follower_continues_with_the_next_iteration() {
    let fixture = LiveFixture::new();
    let mut follower = LiveFollower::new(&fixture.dir);
    let mut output = fixture.start(LiveSource::Command("first"));
    assert_eq!(follower.read_new().unwrap().len(), 1);
    // The last lines are written after the last call, and then the iteration is closed.
    output.write_redacted(b"last words");
    remove(&fixture.path()).unwrap();
    fs::rename(fixture.dir.open_iteration(1), fixture.dir.iteration(1)).unwrap();
    fixture.dir.reopen_iteration(2).unwrap();
    let path = fixture.dir.live_output(2);
    let second = LiveSource::Command("second");
    drop(LiveOutput::append_section(&path, &redactor(), second).unwrap());
    assert_eq!(
        follower.read_new().unwrap(),
        [
            line(LiveLineKind::CommandOutput, "last words"),
            line(LiveLineKind::Command, "second"),
        ]
    );
}
