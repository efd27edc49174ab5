//! Commands to a run, with and without a live process.

use std::time::Duration;

use ralph_core::event::{CommandEvent, Event, RunEvent};
use ralph_core::run::{Command, RunStatus};
use ralph_engine::journal::{self, Journal};
use ralph_engine::mailbox::Mailbox;
use serde_json::json;

use crate::support::{TestRalph, status, succeeded, working};

const ONE: &str = "260301-100000-0001";

/// Answers the next command like the process of a live run.
fn answer(
    ralph: &TestRalph,
    mut journal: Journal,
    refused: Option<&str>,
) -> std::thread::JoinHandle<Command> {
    let mailbox = Mailbox::new(ralph.dir(ONE).commands());
    let refused = refused.map(str::to_owned);
    std::thread::spawn(move || {
        let letter = loop {
            match mailbox.next() {
                Some(letter) => break letter,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let event = Event::Command(CommandEvent::CommandReceived {
            id: letter.id.clone(),
            command: letter.command.clone(),
            refused,
        });
        journal.append(event).unwrap();
        mailbox.discard(&letter.id);
        letter.command
    })
}

#[test]
fn the_reply_of_a_live_process_is_reported() {
    for (verb, command, effect) in [
        (
            "pause",
            Command::Pause,
            "pause accepted; the run pauses at the next action",
        ),
        (
            "rotate",
            Command::Rotate,
            "rotate accepted; a model call is cancelled, otherwise a fresh iteration starts at the next action",
        ),
        (
            "stop",
            Command::Stop,
            "stop accepted; the sandbox is kept for inspection",
        ),
    ] {
        let ralph = TestRalph::new();
        let journal = ralph.held_run(ONE, "one", working());
        let process = answer(&ralph, journal, None);
        let output = ralph.run(&[verb, "one"]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert_eq!(output.stdout, format!("run {ONE}: {effect}\n"));
        assert_eq!(process.join().unwrap(), command);
    }
}

#[test]
fn a_refusal_is_reported() {
    let ralph = TestRalph::new();
    let journal = ralph.held_run(ONE, "one", working());
    let process = answer(&ralph, journal, Some("its commit is being verified"));
    let output = ralph.run(&["rotate", "one"]);
    assert_eq!(
        (output.code, output.stderr),
        (
            1,
            format!(
                "ralph: cannot rotate run `{ONE}` — its commit is being verified — check its \
                 status with `ralph show {ONE}`\n"
            )
        )
    );
    assert_eq!(process.join().unwrap(), Command::Rotate);
}

#[test]
fn an_idle_run_accepts_only_stop() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", working());
    for verb in ["pause", "rotate"] {
        let output = ralph.run(&[verb, "one"]);
        assert_eq!(
            (output.code, output.stderr),
            (
                1,
                format!(
                    "ralph: cannot {verb} run `{ONE}` — no process works on it — continue it with \
                     `ralph resume {ONE}`\n"
                )
            )
        );
    }
    let before = journal::read(&ralph.dir(ONE).journal()).unwrap().len();
    let output = ralph.run(&["stop", "one"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(
        ralph.json(&["show", "one", "--json"])["status"],
        json!("stopped")
    );
    let events: Vec<Event> = journal::read(&ralph.dir(ONE).journal())
        .unwrap()
        .into_iter()
        .skip(before)
        .map(|record| record.event)
        .collect();
    let [
        Event::Run(RunEvent::FilesRecorded { .. }),
        Event::Command(CommandEvent::CommandReceived {
            command, refused, ..
        }),
        last,
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!((command, refused), (&Command::Stop, &None));
    assert_eq!(*last, status(RunStatus::Stopped));
}

#[test]
fn a_run_that_has_ended_takes_no_command() {
    let ralph = TestRalph::new();
    ralph.create_run(ONE, "one", succeeded());
    for verb in ["pause", "rotate", "stop"] {
        let output = ralph.run(&[verb, "one"]);
        assert_eq!(
            (output.code, output.stderr),
            (
                1,
                format!(
                    "ralph: cannot {verb} run `{ONE}` — it has succeeded — check its status with \
                     `ralph show {ONE}`\n"
                )
            )
        );
    }
}

#[test]
fn a_process_that_dies_before_replying_releases_the_run() {
    let ralph = TestRalph::new();
    let journal = ralph.held_run(ONE, "one", working());
    let mailbox = Mailbox::new(ralph.dir(ONE).commands());
    let process = std::thread::spawn(move || {
        while mailbox.next().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(journal);
    });
    let output = ralph.run(&["stop", "one"]);
    process.join().unwrap();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(
        ralph.json(&["show", "one", "--json"])["status"],
        json!("stopped")
    );
    assert_eq!(Mailbox::new(ralph.dir(ONE).commands()).next(), None);
}
