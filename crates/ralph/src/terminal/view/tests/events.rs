//! Single events for the scenarios of the tests.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph_core::budget::BudgetLimits;
use ralph_core::event::{
    ActionResult, DeliveryEvent, DiffSize, Event, IterationEvent, IterationMetrics,
    IterationOutcome, ModelEvent, RunEvent,
};
use ralph_core::gutter::OutputProblems;
use ralph_core::id::{CommitId, Digest, RunId, TaskId};
use ralph_core::money::Usd;
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::{ExecStatus, Isolation, PullRequest, PullState, TokenUsage};
use ralph_core::run::RunStatus;
use ralph_core::verdict::{CheckResult, TestCount};

pub(super) fn commit(digit: &str) -> CommitId {
    CommitId::parse(&digit.repeat(40)).unwrap()
}

pub(super) fn created() -> Event {
    let plan = RunPlan {
        run: RunId::parse("260301-100000-0001").unwrap(),
        task_id: TaskId::parse("task-001").unwrap(),
        title: "Say hello".into(),
        task_file: "/home/me/hello/ralph_task.md".into(),
        contract: Digest::compute(b"contract"),
        repo: "/home/me/hello".into(),
        base_branch: "main".into(),
        base: commit("a"),
        branch: "ralph/task-001/say-hello".into(),
        engine: EngineKind::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        local: None,
        container: None,
        network: None,
        agent: None,
        model: "scripted:replies.jsonl".into(),
        model_key: None,
        scm: "local".into(),
        scm_credential: None,
        submodules: Vec::new(),
        delivery: Delivery::PullRequest,
        issue: None,
        limits: BudgetLimits {
            max_iterations: Some(10),
            max_wall_time: Some(Duration::from_hours(1)),
            max_cost: Usd::from_dollars(1.0),
            max_tokens: Some(20_000),
        },
        setup: None,
        test_command: "make test".into(),
        checkboxes: 2,
        mode: ralph_core::task::RunMode::Autonomous,
        settings: None,
    };
    Event::Run(RunEvent::RunCreated {
        plan: Box::new(plan),
    })
}

pub(super) fn status(status: RunStatus) -> Event {
    Event::Run(RunEvent::StatusChanged { status })
}

pub(super) fn check(name: &str, code: i32, tests: Option<TestCount>) -> CheckResult {
    CheckResult {
        name: name.into(),
        command: "make test".into(),
        ended: ExecStatus::Exited(code),
        duration_ms: 1_500,
        tests,
        failure: None,
        problems: OutputProblems::default(),
    }
}

pub(super) fn counted(passed: u64, failed: u64, skipped: u64) -> TestCount {
    TestCount {
        xfailed: 0,
        passed,
        failed,
        skipped,
    }
}

pub(super) fn started(index: usize, action: &str, label: &str) -> Event {
    Event::Iteration(IterationEvent::ActionStarted {
        iteration: 1,
        index,
        action: action.into(),
        label: label.into(),
        after: None,
    })
}

pub(super) fn finished(
    index: usize,
    action: &str,
    label: &str,
    result: ActionResult,
    tail: &str,
) -> Event {
    Event::Iteration(IterationEvent::ActionFinished {
        iteration: 1,
        index,
        action: action.into(),
        label: label.into(),
        result,
        duration_ms: 12,
        tail: tail.into(),
    })
}

pub(super) fn ran(code: i32) -> ActionResult {
    ActionResult::Ran {
        ended: ExecStatus::Exited(code),
        stdout_bytes: 10,
        stderr_bytes: 0,
        failure: None,
        problems: OutputProblems::default(),
    }
}

pub(super) fn replied(attempt: u32) -> Event {
    Event::Model(ModelEvent::ModelReplied {
        iteration: 1,
        attempt,
        response: Digest::compute(b"response"),
        usage: TokenUsage {
            input_tokens: 8_200,
            output_tokens: 345,
            ..TokenUsage::default()
        },
        cost_usd: Usd::from_dollars(0.05).unwrap(),
        duration_ms: 2_300,
        source: None,
    })
}

pub(super) fn asked(attempt: u32) -> Event {
    Event::Model(ModelEvent::ModelAsked {
        iteration: 1,
        attempt,
        prompt: Digest::compute(b"prompt"),
        prompt_bytes: 12_345,
        reserved: None,
    })
}

pub(super) fn iteration_finished(outcome: IterationOutcome, diff: DiffSize) -> Event {
    Event::Iteration(IterationEvent::IterationFinished {
        iteration: 1,
        summary: "Write the greeting".into(),
        outcome,
        metrics: Box::new(IterationMetrics {
            iteration: 1,
            duration_ms: 65_000,
            model_ms: 0,
            command_ms: 0,
            model_calls: 2,
            usage: TokenUsage::default(),
            cost_usd: Usd::ZERO,
            repaired: false,
            actions: 3,
            actions_ok: 1,
            prompt_bytes: 0,
            diff,
            test_exit_code: None,
            tests: None,
            boxes_ticked: 0,
            boxes_total: 2,
            loop_score: Some(0.3),
            gutter: None,
            head: commit("b"),
        }),
        files: BTreeMap::new(),
        logs: BTreeMap::new(),
        then: None,
    })
}

pub(super) fn pull(state: PullState, opened: bool) -> Event {
    Event::Delivery(DeliveryEvent::PullRequestUpdated {
        pull: PullRequest {
            number: 7,
            url: "file:///home/me/pulls/7".into(),
            state,
            head: commit("b"),
        },
        opened,
    })
}
