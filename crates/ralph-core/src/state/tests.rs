mod steering;

use std::collections::BTreeMap;

use super::*;
use crate::budget::BudgetLimits;
use crate::event::{
    ActionResult, DiffSize, IterationEvent, IterationOutcome, ModelEvent, RunEvent, SandboxEvent,
    VerificationEvent,
};
use crate::gutter::OutputProblems;
use crate::id::{RunId, TaskId};
use crate::plan::{Delivery, EngineKind};
use crate::ports::{ExecStatus, Isolation};
use crate::run::PauseReason;

fn commit(digit: char) -> CommitId {
    CommitId::parse(&digit.to_string().repeat(40)).unwrap()
}

fn plan() -> RunPlan {
    RunPlan {
        run: RunId::parse("260301-100000-0001").unwrap(),
        task_id: TaskId::parse("task-001").unwrap(),
        title: "Foo".into(),
        task_file: "/t/ralph_task.md".into(),
        contract: Digest::compute(b"contract"),
        repo: "/t".into(),
        base_branch: "main".into(),
        base: commit('a'),
        branch: "ralph/task-001/foo".into(),
        engine: EngineKind::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:x".into(),
        model_key: None,
        scm: "local".into(),
        scm_credential: None,
        submodules: Vec::new(),
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits::default(),
        setup: None,
        test_command: "true".into(),
        checkboxes: 2,
        mode: RunMode::Autonomous,
        settings: None,
    }
}

fn metrics(iteration: u32, loop_score: Option<f64>) -> IterationMetrics {
    IterationMetrics {
        iteration,
        duration_ms: 0,
        model_ms: 0,
        command_ms: 0,
        model_calls: 1,
        usage: TokenUsage::default(),
        cost_usd: Usd::ZERO,
        repaired: false,
        actions: 0,
        actions_ok: 0,
        prompt_bytes: 0,
        diff: DiffSize::default(),
        test_exit_code: None,
        tests: None,
        boxes_ticked: 0,
        boxes_total: 2,
        loop_score,
        gutter: None,
        head: commit('a'),
    }
}

fn finished(iteration: u32, loop_score: Option<f64>) -> Event {
    Event::Iteration(IterationEvent::IterationFinished {
        iteration,
        summary: String::new(),
        outcome: IterationOutcome::Completed,
        metrics: Box::new(metrics(iteration, loop_score)),
        files: BTreeMap::new(),
        logs: BTreeMap::new(),
        then: None,
    })
}

fn replied(attempt: u32, source: &str) -> Event {
    Event::Model(ModelEvent::ModelReplied {
        iteration: 1,
        attempt,
        response: Digest::compute(source.as_bytes()),
        usage: TokenUsage {
            input_tokens: 100,
            output_tokens: 10,
            ..TokenUsage::default()
        },
        cost_usd: Usd::from_nanos(500),
        duration_ms: 7,
        source: Some(source.into()),
    })
}

fn asked(attempt: u32) -> Event {
    Event::Model(ModelEvent::ModelAsked {
        iteration: 1,
        attempt,
        prompt: Digest::compute(b"p"),
        prompt_bytes: 9,
        reserved: None,
    })
}

fn action(index: usize, result: ActionResult) -> Event {
    Event::Iteration(IterationEvent::ActionFinished {
        iteration: 1,
        index,
        action: "run".into(),
        label: "true".into(),
        result,
        duration_ms: 20,
        tail: String::new(),
    })
}

fn started(index: usize, after: Option<Digest>) -> Event {
    Event::Iteration(IterationEvent::ActionStarted {
        iteration: 1,
        index,
        action: "run".into(),
        label: "true".into(),
        after,
    })
}

/// Folds events as the records of a journal, one second of activity each.
fn after(events: impl IntoIterator<Item = Event>) -> RunState {
    let first = Event::Run(RunEvent::RunCreated {
        plan: Box::new(plan()),
    });
    let records: Vec<JournalRecord> = std::iter::once(first)
        .chain(events)
        .zip(1..)
        .map(|(event, seq)| JournalRecord {
            v: 1,
            seq,
            prev: Digest::compute(b""),
            at: jiff::Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
            active_ms: seq * 1000,
            epoch: 1,
            event,
        })
        .collect();
    RunState::from_records(&records).unwrap()
}

fn open_one() -> Event {
    Event::Iteration(IterationEvent::IterationStarted {
        iteration: 1,
        head: commit('a'),
    })
}

fn ran() -> ActionResult {
    ActionResult::Ran {
        ended: ExecStatus::Exited(0),
        stdout_bytes: 0,
        stderr_bytes: 0,
        failure: None,
        problems: OutputProblems::default(),
    }
}

/// Opens a run that was active, as after a crash.
fn reopened(epoch: u32) -> Event {
    Event::Run(RunEvent::RunOpened {
        epoch,
        pid: 1,
        ralph: None,
    })
}

#[test]
fn crashes_at_the_same_command_are_counted_until_the_user_pauses_the_run() {
    let running = || {
        Event::Run(RunEvent::StatusChanged {
            status: RunStatus::Running,
        })
    };
    let check = |command: &str| {
        Event::Verification(VerificationEvent::CheckStarted {
            command: command.into(),
        })
    };
    let paused = Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Paused(PauseReason::Person),
    });
    let crashes = |events: &[Event]| {
        let state = after(events.to_vec());
        let crashed = state.crashed_command.clone();
        (
            crashed.map_or(0, |crashed| crashed.crashes),
            state.crash_loop().is_some(),
        )
    };
    let mut events = vec![reopened(1), running(), check("a"), reopened(2)];
    assert_eq!(crashes(&events), (1, false));
    events.extend([running(), check("a"), reopened(3)]);
    assert_eq!(crashes(&events), (2, true));
    let other = [&events[..], &[running(), check("b"), reopened(4)]].concat();
    assert_eq!(crashes(&other), (1, false));
    let decided = [&events[..], &[paused, reopened(4)]].concat();
    assert_eq!(crashes(&decided), (0, false));
}

#[test]
fn a_journal_must_start_with_the_creation_of_a_run() {
    assert!(RunState::from_records(&[]).is_none());
    let state = after([]);
    assert_eq!(state.status, RunStatus::Created);
    let record = JournalRecord {
        v: 1,
        seq: 1,
        prev: Digest::compute(b""),
        at: state.started_at,
        active_ms: 0,
        epoch: 0,
        event: Event::Run(RunEvent::Notice {
            message: "x".into(),
        }),
    };
    assert!(RunState::from_records(&[record]).is_none());
}

#[test]
fn every_reply_is_charged_and_its_line_of_the_script_recorded() {
    let state = after([
        open_one(),
        asked(1),
        replied(1, "line 1"),
        asked(2),
        replied(2, "line 2"),
    ]);
    assert_eq!(
        state.spent(),
        Spent {
            iterations: 1,
            wall_time: Duration::from_secs(6),
            cost: Usd::from_nanos(1000),
            tokens: 220,
        }
    );
    assert_eq!(state.used_script_lines, ["line 1", "line 2"]);
    let open = state.open.unwrap();
    assert_eq!((open.attempts, open.replies, open.model_ms), (2, 2, 14));
    assert_eq!(open.response, Some(Digest::compute(b"line 2")));
}

#[test]
fn a_call_without_a_reply_leaves_no_reply_to_use() {
    let rejected = Event::Model(ModelEvent::ReplyRejected {
        iteration: 1,
        attempt: 1,
        errors: "bad".into(),
    });
    let open = after([
        open_one(),
        asked(1),
        replied(1, "line 1"),
        rejected,
        asked(2),
    ])
    .open
    .unwrap();
    assert_eq!(
        (open.response, open.rejected, open.replies, open.attempts),
        (None, None, 1, 2)
    );
}

#[test]
fn an_intent_stays_pending_until_its_outcome() {
    let digest = Digest::compute(b"file");
    let open = after([
        open_one(),
        started(0, None),
        action(0, ran()),
        started(1, Some(digest.clone())),
    ])
    .open
    .unwrap();
    assert_eq!(open.results, BTreeMap::from([(0, ran())]));
    assert_eq!(open.pending, Some((1, Some(digest))));
    assert_eq!(open.command_ms, 20);
}

#[test]
fn an_interrupted_action_has_no_result() {
    let events = [
        open_one(),
        started(0, None),
        action(0, ActionResult::Interrupted),
        started(0, None),
    ];
    let open = after(events).open.unwrap();
    assert_eq!(open.results, BTreeMap::new());
    assert_eq!(open.pending, Some((0, None)));
}

#[test]
fn a_finished_iteration_is_closed_and_only_five_scores_are_kept() {
    let state = after((1..=7).flat_map(|number| {
        let start = Event::Iteration(IterationEvent::IterationStarted {
            iteration: number,
            head: commit('a'),
        });
        [start, finished(number, Some(f64::from(number) / 10.0))]
    }));
    assert_eq!(state.iteration, 7);
    assert!(state.open.is_none());
    assert_eq!(state.loop_scores, [0.3, 0.4, 0.5, 0.6, 0.7]);
    assert_eq!(state.last_metrics.unwrap().iteration, 7);
}

#[test]
fn a_refusal_is_reported_to_exactly_one_iteration() {
    let refused = Event::Verification(VerificationEvent::SuccessRefused {
        iteration: 1,
        reasons: vec!["open boxes".into()],
    });
    let first = [open_one(), refused, finished(1, None)];
    assert_eq!(after(first.clone()).refusals, ["open boxes"]);
    let second = Event::Iteration(IterationEvent::IterationStarted {
        iteration: 2,
        head: commit('a'),
    });
    let both = first.into_iter().chain([second, finished(2, None)]);
    assert_eq!(after(both).refusals, Vec::<String>::new());
}

#[test]
fn sandboxes_are_recorded_until_they_are_removed() {
    let made = |name: &str, purpose| {
        Event::Sandbox(SandboxEvent::SandboxCreated {
            sandbox: SandboxId(name.into()),
            purpose,
        })
    };
    let gone = |name: &str| {
        Event::Sandbox(SandboxEvent::SandboxRemoved {
            sandbox: SandboxId(name.into()),
        })
    };
    let ready = Event::Sandbox(SandboxEvent::WorkspaceReady {
        branch: "b".into(),
        head: commit('b'),
    });
    let state = after([
        made("w", SandboxPurpose::Work),
        ready,
        made("c", SandboxPurpose::CleanRoom),
    ]);
    assert_eq!(state.sandbox, Some(SandboxId("w".into())));
    assert_eq!(state.clean_rooms, [SandboxId("c".into())]);
    assert!(state.workspace_ready);
    assert_eq!(state.head, commit('b'));
    let state = after([
        made("w", SandboxPurpose::Work),
        made("c", SandboxPurpose::CleanRoom),
        gone("c"),
        gone("w"),
    ]);
    assert_eq!(
        (state.sandbox, state.clean_rooms, state.workspace_ready),
        (None, vec![], false)
    );
}

#[test]
fn contracts_that_were_in_force_are_remembered() {
    let changed = Event::Run(RunEvent::ContractChanged {
        contract: Digest::compute(b"new"),
        changes: vec![],
        limits: BudgetLimits {
            max_iterations: Some(5),
            ..BudgetLimits::default()
        },
        mode: None,
        checkboxes: Some(7),
    });
    let state = after([
        changed,
        Event::Run(RunEvent::StatusChanged {
            status: RunStatus::Paused(PauseReason::Person),
        }),
    ]);
    assert_eq!(
        (state.contract, state.checkboxes),
        (Digest::compute(b"new"), 7)
    );
    assert_eq!(
        state.contracts,
        [Digest::compute(b"contract"), Digest::compute(b"new")]
    );
    assert_eq!(state.status.reason().as_deref(), Some("paused by the user"));
}
