mod events;
mod plain;
mod rich;
mod scenarios;

use std::io::Write;
use std::sync::{Arc, Mutex};

use ralph_app::runs::activity_label;
use ralph_core::event::{Event, JournalRecord, ModelEvent, RECORD_VERSION, RunEvent};
use ralph_core::id::Digest;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_core::state::RunState;

use super::*;

/// Records the output for a test.
#[derive(Clone, Default)]
struct RunViewOutput(Arc<Mutex<Vec<u8>>>);

impl RunViewOutput {
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}

impl Write for RunViewOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Shows the events as records of one run, and returns the output of each chapter.
fn show_chapters<const N: usize>(chapters: [Vec<Event>; N], mode: OutputMode) -> [String; N] {
    let output = RunViewOutput::default();
    let mut view = RunView::new(Box::new(output.clone()), mode);
    let mut state: Option<RunState> = None;
    let mut seq = 0;
    chapters.map(|events| {
        for event in events {
            seq += 1;
            let record = record(seq, event);
            match &mut state {
                Some(state) => state.apply(&record),
                None => state = RunState::from_first_record(&record),
            }
            view.show(&record, state.as_ref().unwrap());
        }
        output.take()
    })
}

fn record(seq: u64, event: Event) -> JournalRecord {
    JournalRecord {
        v: RECORD_VERSION,
        seq,
        prev: Digest::compute(b""),
        at: "2026-03-01T10:00:00Z".parse().unwrap(),
        active_ms: seq * 1_000,
        epoch: 1,
        event,
    }
}

#[test]
fn the_spinner_shows_the_pending_step() {
    let mut state: Option<RunState> = None;
    let mut labels: Vec<String> = Vec::new();
    for (seq, event) in (1..).zip(scenarios::chapters().concat()) {
        let record = record(seq, event);
        match &mut state {
            Some(state) => state.apply(&record),
            None => state = RunState::from_first_record(&record),
        }
        let label = activity_label(&record, state.as_ref().unwrap());
        labels.push(label.unwrap_or_else(|| "nothing".into()));
    }
    labels.dedup();
    snapbox::assert_data_eq!(
        labels.join("\n"),
        snapbox::str![[r"
preparing the sandbox
working
preparing the sandbox
copying the repository into the sandbox
working
preparing the prompt
asking the model
waiting to ask the model again
asking the model, attempt 2
working
asking the model, attempt 3
working
write src/hello.txt
checking
run make test
checking
working
checking
working
pushing `ralph/task-001/say-hello`
working
verifying bbbbbbbbbb in a clean room
verifying in a clean room
working
nothing
"]]
    );
}

#[test]
fn json_is_the_journals_record_line_by_line() {
    let text = show_chapters(scenarios::chapters(), OutputMode::Json).concat();
    let events: Vec<Event> = text
        .lines()
        .map(|line| serde_json::from_str::<JournalRecord>(line).unwrap().event)
        .collect();
    assert_eq!(events, scenarios::chapters().concat());
}

#[test]
fn nothing_from_outside_reaches_the_terminal_as_an_escape() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2Jx\r\u{202e}y";
    let events = vec![
        events::created(),
        Event::Model(ModelEvent::ReplyAccepted {
            iteration: 1,
            summary: evil.into(),
            actions: 0,
            repaired: false,
        }),
        events::finished(0, "run", evil, events::ran(1), evil),
        Event::Run(RunEvent::Notice {
            message: evil.into(),
        }),
        events::status(RunStatus::Paused(PauseReason::Model {
            question: evil.into(),
        })),
    ];
    let [plain] = show_chapters([events.clone()], OutputMode::Plain);
    assert!(
        !plain.contains(['\u{1b}', '\r', '\u{7}', '\u{202e}']),
        "{plain:?}"
    );
    assert_eq!(plain.matches("x �y").count(), 5, "{plain}");
    let [rich] = show_chapters(
        [events],
        OutputMode::Rich(Width::Fixed(80), SpinnerVisibility::Hidden),
    );
    assert!(!rich.contains(['\r', '\u{7}', '\u{202e}']));
    let own = ["1", "2", "31", "32", "33", "36", "0"].map(|code| format!("{code}m"));
    for rest in rich.split('\u{1b}').skip(1) {
        let rest = rest.strip_prefix('[').unwrap_or("not a colour");
        assert!(own.iter().any(|code| rest.starts_with(code)), "{rest:?}");
    }
}
