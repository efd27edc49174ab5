//! Hosts that the user allows, and messages of the user.

use super::*;
use crate::advice::{Note, NoteKind};
use crate::budget::Budget;
use crate::event::{CommandEvent, EgressEvent, MessageState};
use crate::run::{FailReason, PauseReason};

fn blocked(host: &str, port: u16) -> Event {
    Event::Egress(EgressEvent::HostBlocked {
        host: host.into(),
        port,
        reason: "not on the list".into(),
        command: None,
    })
}

fn moved(id: &str, text: &str, to: MessageState) -> Event {
    Event::Command(CommandEvent::MessageMoved {
        id: id.into(),
        text: text.into(),
        to,
    })
}

fn guided() -> RunState {
    let mut state = after([]);
    state.mode = RunMode::Guided;
    state.plan.isolation = Isolation::Container;
    state
}

#[test]
fn an_allowed_host_is_no_longer_blocked() {
    let seen = [
        blocked("a.example", 443),
        blocked("a.example", 80),
        blocked("a.example", 5432),
        blocked("x.b.example", 443),
        blocked("[::1]", 9),
    ];
    for (allowed, left) in [
        (
            "c.example",
            vec!["[::1]:9", "a.example", "a.example:5432", "x.b.example"],
        ),
        (
            "a.example",
            vec!["[::1]:9", "a.example:5432", "x.b.example"],
        ),
        (
            "a.example:5432",
            vec!["[::1]:9", "a.example", "x.b.example"],
        ),
        (
            "*.b.example",
            vec!["[::1]:9", "a.example", "a.example:5432"],
        ),
        (
            "[::1]:9",
            vec!["a.example", "a.example:5432", "x.b.example"],
        ),
    ] {
        let host = allowed.to_owned();
        let state = after(
            seen.clone()
                .into_iter()
                .chain([Event::Command(CommandEvent::HostAllowed { host })]),
        );
        assert_eq!(Vec::from_iter(&state.blocked_hosts), left, "{allowed}");
        assert_eq!(Vec::from_iter(&state.allowed_hosts), [allowed]);
        assert!(!state.is_blocked("c.example", 443));
    }
    assert!(after(seen.clone()).is_blocked("a.example", 80));
    assert!(!after(seen).is_blocked("a.example", 22));
}

#[test]
fn hosts_are_rejected_without_a_gate_and_beyond_the_limit() {
    let allow = |host: &str| Command::AllowHost { host: host.into() };
    assert_eq!(guided().rejection_reason(&allow("a.example:8443")), None);
    assert_eq!(
        after([]).rejection_reason(&allow("a.example")).as_deref(),
        Some("its sandbox `local` does not restrict network access")
    );
    assert_eq!(
        guided().rejection_reason(&allow("*.com")).as_deref(),
        Some(
            "`*.com` has a `*` that is not followed by at least two labels, as in `*.example.com`"
        )
    );
    let many = (0..2_000).map(|number| {
        Event::Command(CommandEvent::HostAllowed {
            host: format!("h{number}.example"),
        })
    });
    let mut state = after(many);
    state.plan = guided().plan;
    assert_eq!(
        state.rejection_reason(&allow("a.example")).as_deref(),
        Some("1000 hosts are already allowed")
    );
    let many = (0..2_000).map(|number| blocked(&format!("h{number}.example"), 443));
    let state = after(many);
    assert_eq!(state.blocked_hosts.len(), 1_000);
    assert_eq!(state.further_blocked, 1_000, "the others are counted");
    assert!(
        state.is_blocked("h1999.example", 443),
        "the newest are kept"
    );
    assert!(!state.is_blocked("h0.example", 443), "and announced again");
}

#[test]
fn messages_are_rejected_beyond_their_limits() {
    let message = |text: &str| Command::Message { text: text.into() };
    assert_eq!(guided().rejection_reason(&message(&"x".repeat(8192))), None);
    assert_eq!(
        guided()
            .rejection_reason(&message(&"x".repeat(8193)))
            .as_deref(),
        Some("the message has 8193 bytes, at most 8192 are allowed")
    );
    assert_eq!(
        guided().rejection_reason(&message(" \n")).as_deref(),
        Some("the message is empty")
    );
    assert_eq!(
        after([]).rejection_reason(&message("x")).as_deref(),
        Some("its mode is `autonomous`; messages need the mode `guided`, see `ralph mode`")
    );
    let many = (0..100).map(|number| moved(&format!("{number:03}"), "x", MessageState::Queued));
    let mut state = after(many.clone());
    state.mode = RunMode::Guided;
    assert_eq!(
        state.rejection_reason(&message("x")).as_deref(),
        Some("100 messages are already waiting")
    );
    let acknowledged =
        (0..100).map(|number| moved(&format!("{number:03}"), "x", MessageState::Acknowledged));
    let state = after(many.chain(acknowledged));
    let left: Vec<&str> = state
        .messages
        .iter()
        .map(|message| message.id.as_str())
        .collect();
    let expected: Vec<String> = (80..100).map(|number| format!("{number:03}")).collect();
    assert_eq!(left, expected, "the last twenty are remembered");
}

#[test]
fn a_prompt_has_the_oldest_messages_that_fit() {
    let long = "x".repeat(5_000);
    let mut events = vec![
        moved("1", "short", MessageState::Queued),
        moved("1", "short", MessageState::Delivered),
        moved("2", &long, MessageState::Queued),
        moved("2", &long, MessageState::Delivered),
        moved("3", &long, MessageState::Queued),
        moved("4", "later", MessageState::Queued),
    ];
    let shown = |state: &RunState| -> Vec<String> {
        let shown = state.messages_for_prompt();
        shown.map(|message| message.id.clone()).collect()
    };
    assert_eq!(shown(&after(events.clone())), ["1", "2"]);
    events.extend([open_one(), asked(1)]);
    let in_prompt = |state: &RunState| -> Vec<bool> {
        let messages = state.messages.iter();
        messages.map(|message| message.is_in_prompt).collect()
    };
    assert_eq!(
        in_prompt(&after(events.clone())),
        [true, true, false, false]
    );
    // A repair repeats the same prompt, without messages that arrived in between.
    events.extend([moved("2", &long, MessageState::Acknowledged), asked(2)]);
    let state = after(events);
    assert_eq!(in_prompt(&state), [true, false, false, false]);
    assert_eq!(shown(&state), ["1", "3", "4"]);
}

#[test]
fn input_is_unread_until_a_prompt_contains_it() {
    let sent = |id: &str, command: Command| {
        Event::Command(CommandEvent::CommandReceived {
            id: id.into(),
            command,
            refused: None,
        })
    };
    let note = Command::Note(Note {
        kind: NoteKind::Decision,
        text: "use one file".into(),
        author: String::new(),
    });
    let done = Event::Command(CommandEvent::CommandDone {
        id: "3".into(),
        done: true,
        detail: String::new(),
        output: String::new(),
    });
    let mut events = vec![open_one(), asked(1)];
    for (added, expected) in [
        (vec![], false),
        (vec![moved("1", "first", MessageState::Queued)], true),
        (vec![moved("1", "first", MessageState::Delivered)], true),
        (vec![asked(1)], false),
        (vec![moved("2", "later", MessageState::Queued)], true),
        (vec![moved("2", "later", MessageState::Acknowledged)], false),
        (vec![sent("3", note.clone()), done], true),
        (vec![open_one()], false),
        (vec![sent("4", note), open_one()], true),
    ] {
        events.extend(added);
        let state = after(events.clone());
        assert_eq!(state.has_unread_input(), expected, "{:?}", events.last());
    }
}

/// Returns a run that failed because its five iterations are used up.
fn out_of_iterations() -> RunState {
    let mut state = after([Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Failed(FailReason::Budget {
            budget: Budget::Iterations,
        }),
    })]);
    state.iteration = 5;
    state.limits.max_iterations = Some(5);
    state.limits.max_tokens = Some(1_000);
    state
}

fn limits(iterations: Option<u32>, tokens: Option<u64>) -> BudgetLimits {
    BudgetLimits {
        max_iterations: iterations,
        max_tokens: tokens,
        ..BudgetLimits::default()
    }
}

#[test]
fn a_failed_run_needs_more_of_the_budget_that_it_failed_on() {
    let state = out_of_iterations();
    let reason =
        |iterations, tokens| state.rejection_reason(&Command::Limits(limits(iterations, tokens)));
    assert_eq!(reason(Some(6), None), None);
    assert_eq!(
        reason(Some(5), None).unwrap(),
        "`max_iterations` would be used up: 5 of 5"
    );
    assert_eq!(
        reason(None, Some(9_000)).unwrap(),
        "it failed because `max_iterations` is used up, and no new limit is given for it"
    );
    assert_eq!(reason(None, None).unwrap(), "no budget is given");
    let mut stopped = out_of_iterations();
    stopped.status = RunStatus::Stopped;
    let refused = stopped.rejection_reason(&Command::Limits(limits(Some(6), None)));
    assert_eq!(refused.unwrap(), "it was stopped");
}

#[test]
fn a_running_run_accepts_budgets_above_its_spending() {
    let mut state = out_of_iterations();
    state.status = RunStatus::Running;
    state.usage.input_tokens = 500;
    let reason =
        |iterations, tokens| state.rejection_reason(&Command::Limits(limits(iterations, tokens)));
    // The fifth iteration is in progress.
    assert_eq!(reason(Some(5), Some(501)), None);
    assert_eq!(
        reason(Some(4), None).unwrap(),
        "`max_iterations` would be used up: 5 of 4"
    );
    assert_eq!(
        reason(None, Some(500)).unwrap(),
        "`max_tokens_total` would be used up: 500 of 500"
    );
}

#[test]
fn new_budgets_let_a_failed_run_continue_until_its_next_status() {
    let failed = || {
        Event::Run(RunEvent::StatusChanged {
            status: RunStatus::Failed(FailReason::Budget {
                budget: Budget::Cost,
            }),
        })
    };
    let raised = || {
        Event::Run(RunEvent::LimitsChanged {
            limits: limits(Some(9), None),
        })
    };
    let preparing = Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Preparing,
    });
    assert!(!after([failed()]).may_continue);
    let continued = after([failed(), raised()]);
    assert!(continued.may_continue);
    assert_eq!(continued.limits, limits(Some(9), None));
    assert!(!after([failed(), raised(), preparing]).may_continue);
    assert!(!after([raised()]).may_continue);
}

#[test]
fn an_answer_repeats_the_question_and_fits_into_a_prompt() {
    let paused = |reason| {
        Event::Run(RunEvent::StatusChanged {
            status: RunStatus::Paused(reason),
        })
    };
    let asks = |question: &str| {
        paused(PauseReason::Model {
            question: question.into(),
        })
    };
    let state = after([asks("which port?")]);
    assert_eq!(
        state.answer_message("8080"),
        "an earlier session asked: which port?\nthe answer: 8080"
    );
    let answer = |text: String| Command::Answer { text };
    assert_eq!(state.rejection_reason(&answer("x".repeat(6144))), None);
    assert_eq!(
        state.rejection_reason(&answer("x".repeat(6145))).as_deref(),
        Some("the answer has 6145 bytes, at most 6144 are allowed")
    );
    let long = after([asks(&"é".repeat(5_000))]);
    let message = long.answer_message(&"x".repeat(6144));
    assert!(message.len() <= MAX_MESSAGE_BYTES, "{}", message.len());
    let circling = after([
        asks("which port?"),
        paused(PauseReason::Gutter {
            consecutive: 3,
            evidence: String::new(),
        }),
    ]);
    assert_eq!(circling.answer_message("stop that"), "stop that");
}

#[test]
fn a_mode_is_wanted_until_it_is_in_force() {
    let mode = |mode| Command::Mode { mode };
    let received = |mode| {
        Event::Command(CommandEvent::CommandReceived {
            id: "1".into(),
            command: Command::Mode { mode },
            refused: None,
        })
    };
    assert_eq!(
        after([])
            .rejection_reason(&mode(RunMode::Autonomous))
            .as_deref(),
        Some("its mode is already `autonomous`")
    );
    let state = after([received(RunMode::Guided)]);
    assert_eq!(
        (state.mode, state.wanted_mode),
        (RunMode::Autonomous, Some(RunMode::Guided))
    );
    assert_eq!(state.rejection_reason(&mode(RunMode::Autonomous)), None);
    let state = after([
        received(RunMode::Guided),
        Event::Run(RunEvent::ModeChanged {
            mode: RunMode::Guided,
        }),
    ]);
    assert_eq!((state.mode, state.wanted_mode), (RunMode::Guided, None));
}
