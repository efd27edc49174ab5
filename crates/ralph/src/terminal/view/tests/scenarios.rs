//! The events of a run that covers all cases.

use ralph_core::budget::{Budget, BudgetLimits};
use ralph_core::event::{
    ActionResult, AgentSessionEvent, CommandEvent, DeliveryEvent, DiffSize, EgressEvent, Event,
    IterationEvent, IterationOutcome, MessageState, ModelEvent, RunEvent, SandboxEvent,
    SandboxPurpose, VerificationEvent,
};
use ralph_core::id::Digest;
use ralph_core::net::{ProviderTool, ProviderToolAction};
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReport, PullState, SandboxId};
use ralph_core::run::{Command, RunStatus};

use super::events::{
    asked, check, commit, counted, created, finished, iteration_finished, pull, ran, replied,
    started, status,
};

/// Returns all chapters.
pub(super) fn chapters() -> [Vec<Event>; 5] {
    [beginning(), actions(), checks(), steering(), verdict()]
}

/// The start of a run, up to the model's first usable response.
pub(super) fn beginning() -> Vec<Event> {
    let sandbox = SandboxId("local-1".into());
    vec![
        created(),
        Event::Run(RunEvent::RunOpened {
            epoch: 1,
            pid: 42,
            ralph: None,
        }),
        status(RunStatus::Preparing),
        Event::Sandbox(SandboxEvent::SandboxCreated {
            sandbox,
            purpose: SandboxPurpose::Work,
        }),
        Event::Sandbox(SandboxEvent::WorkspaceReady {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("a"),
        }),
        status(RunStatus::Running),
        Event::Iteration(IterationEvent::IterationStarted {
            iteration: 1,
            head: commit("a"),
        }),
        asked(1),
        Event::Model(ModelEvent::ModelFailed {
            iteration: 1,
            attempt: 1,
            error: "model `x` is not available at the moment: status 429".into(),
            retry_in_ms: Some(2_000),
        }),
        asked(2),
        replied(2),
        Event::Model(ModelEvent::ReplyRejected {
            iteration: 1,
            attempt: 2,
            errors: "actions[0]: unknown action `fly`\nclaims: missing".into(),
        }),
        asked(3),
        replied(3),
        Event::Model(ModelEvent::ReplyAccepted {
            iteration: 1,
            summary: "Write the greeting, then see whether the tests like it; they are strict \
                      about the comma"
                .into(),
            actions: 6,
            repaired: true,
        }),
    ]
}

/// The results of actions.
pub(super) fn actions() -> Vec<Event> {
    vec![
        started(0, "write", "src/hello.txt"),
        finished(
            0,
            "write",
            "src/hello.txt",
            ActionResult::Done {
                detail: "13 bytes".into(),
            },
            "",
        ),
        started(1, "run", "make test"),
        finished(1, "run", "make test", ran(2), "one\ntwo: \u{1b}[31mred\u{1b}[0m\n"),
        finished(2, "run", "run true", ran(0), "not shown"),
        finished(
            3,
            "patch",
            "src/other.txt",
            ActionResult::Failed {
                why: "hunk 1 does not fit: line 3 of the file is not the line the patch expects there"
                    .into(),
            },
            "",
        ),
        finished(
            4,
            "write",
            ".git/config",
            ActionResult::Refused {
                why: "`.git` is the runner's".into(),
            },
            "",
        ),
        finished(
            5,
            "commit",
            "Say hello",
            ActionResult::Skipped {
                why: "action 4 failed".into(),
            },
            "",
        ),
        finished(6, "run", "sleep 100", ActionResult::Interrupted, ""),
    ]
}

/// The runner's checks of an iteration.
pub(super) fn checks() -> Vec<Event> {
    vec![
        Event::Iteration(IterationEvent::ClaimChecked {
            iteration: 1,
            checkbox: "M1.1".into(),
            verified: true,
            why: String::new(),
            checks: vec![check("M1.1", 0, None)],
        }),
        Event::Iteration(IterationEvent::ClaimChecked {
            iteration: 1,
            checkbox: "M1.2".into(),
            verified: false,
            why: "its verify command is red".into(),
            checks: vec![check("M1.2", 1, None)],
        }),
        Event::Iteration(IterationEvent::BoxesTicked {
            ticked: vec!["M1.1".into()],
        }),
        Event::Iteration(IterationEvent::TestsRun {
            iteration: 1,
            check: check("tests", 1, Some(counted(3, 1, 2))),
        }),
        Event::Sandbox(SandboxEvent::Tamper {
            iteration: 1,
            path: ".ralph/guardrails.md".into(),
            finding: "was shortened".into(),
        }),
        Event::Run(RunEvent::BudgetWarning {
            budget: Budget::Tokens,
            percent: 80,
        }),
        iteration_finished(
            IterationOutcome::ActionFailed { index: 3 },
            DiffSize {
                files: 1,
                added: 10,
                removed: 2,
            },
        ),
    ]
}

/// User commands, and the delivery of commits.
pub(super) fn steering() -> Vec<Event> {
    vec![
        Event::Command(CommandEvent::CommandReceived {
            id: "1".into(),
            command: Command::Rotate,
            refused: None,
        }),
        Event::Command(CommandEvent::CommandReceived {
            id: "2".into(),
            command: Command::Resume,
            refused: Some("it is not paused".into()),
        }),
        Event::Run(RunEvent::ContractChanged {
            contract: Digest::compute(b"new"),
            changes: vec!["max_iterations: 10 → 20".into(), "a box was added".into()],
            limits: BudgetLimits::default(),
            mode: None,
            checkboxes: None,
        }),
        Event::Run(RunEvent::ContractRejected {
            why: "`max_iterations` is missing".into(),
        }),
        Event::Run(RunEvent::Notice {
            message: "3 uncommitted changes in `repo` are not part of this run".into(),
        }),
        Event::Delivery(DeliveryEvent::CommitsImported {
            head: commit("b"),
            commits: 2,
        }),
        Event::Delivery(DeliveryEvent::ImportRefused {
            why: "branch `main` was moved".into(),
        }),
        Event::Delivery(DeliveryEvent::PushStarted {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("b"),
        }),
        Event::Delivery(DeliveryEvent::Pushed {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("b"),
        }),
        pull(PullState::Draft, true),
        Event::Delivery(DeliveryEvent::StateSaved {
            reference: "refs/ralph/task-001".into(),
            commit: commit("c"),
        }),
        Event::Verification(VerificationEvent::SuccessRefused {
            iteration: 1,
            reasons: vec!["box M1.2 is not ticked".into()],
        }),
    ]
}

/// Two verifications and the verdict.
pub(super) fn verdict() -> Vec<Event> {
    let room = SandboxId("local-2".into());
    vec![
        status(RunStatus::Verifying),
        Event::Verification(VerificationEvent::VerifyStarted { head: commit("b") }),
        Event::Sandbox(SandboxEvent::SandboxCreated {
            sandbox: room.clone(),
            purpose: SandboxPurpose::CleanRoom,
        }),
        Event::Verification(VerificationEvent::VerifyFinished {
            head: commit("b"),
            contract: Digest::compute(b"contract"),
            green: false,
            checks: vec![check("tests", 0, Some(counted(0, 0, 0)))],
            reasons: vec!["no test was executed".into()],
            findings: vec![],
        }),
        Event::Sandbox(SandboxEvent::SandboxRemoved { sandbox: room }),
        Event::Run(RunEvent::RunOpened {
            epoch: 2,
            pid: 43,
            ralph: None,
        }),
        Event::Verification(VerificationEvent::VerifyFinished {
            head: commit("b"),
            contract: Digest::compute(b"contract"),
            green: true,
            checks: vec![
                check("tests", 0, Some(counted(4, 0, 0))),
                check("M1.1", 0, None),
            ],
            reasons: vec![],
            findings: vec![],
        }),
        pull(PullState::Open, false),
        status(RunStatus::Succeeded),
    ]
}

/// Events of the gate other than single hosts.
pub(super) fn gate() -> Vec<Event> {
    vec![
        Event::Egress(EgressEvent::FurtherHostsBlocked {
            count: 12_345,
            examples: vec!["x1.evil.example".into(), "x2.evil.example".into()],
        }),
        Event::Egress(EgressEvent::ProviderToolScreened {
            provider: "api.anthropic.com".into(),
            what: "the tool `web_search_20250305`".into(),
            tool: Some(ProviderTool::WebSearch),
            action: ProviderToolAction::Removed,
        }),
        Event::Egress(EgressEvent::ProviderToolScreened {
            provider: "api.anthropic.com".into(),
            what: "a stored `prompt`".into(),
            tool: None,
            action: ProviderToolAction::Refused,
        }),
        Event::Egress(EgressEvent::ProviderToolScreened {
            provider: "api.anthropic.com".into(),
            what: "a URL at `pictures.example`".into(),
            tool: Some(ProviderTool::Urls),
            action: ProviderToolAction::Allowed,
        }),
    ]
}

fn blocked_host() -> Event {
    Event::Egress(EgressEvent::HostBlocked {
        host: "registry.example".into(),
        port: 443,
        reason: "it is not on the list".into(),
        command: None,
    })
}

/// Events of an agent, of the gate, and messages to the agent.
pub(super) fn agent() -> Vec<Event> {
    let did = |did| Event::Agent(AgentSessionEvent::AgentDid { iteration: 1, did });
    let moved = |to| {
        Event::Command(CommandEvent::MessageMoved {
            id: "3".into(),
            text: "use the\nold parser".into(),
            to,
        })
    };
    vec![
        Event::Agent(AgentSessionEvent::AgentStarted {
            iteration: 1,
            attempt: 1,
            agent: "claude".into(),
            prompt: Digest::compute(b""),
            prompt_bytes: 9,
        }),
        did(AgentEvent::Started {
            model: Some("opus".into()),
        }),
        did(AgentEvent::Tool {
            id: "t".into(),
            tool: "Bash".into(),
            label: "npm ci".into(),
        }),
        blocked_host(),
        Event::Command(CommandEvent::HostAllowed {
            host: "registry.example".into(),
        }),
        did(AgentEvent::ToolDone {
            id: "t".into(),
            ok: false,
        }),
        moved(MessageState::Queued),
        moved(MessageState::Delivered),
        did(AgentEvent::Acknowledged {
            text: "use the\nold parser".into(),
        }),
        moved(MessageState::Acknowledged),
        did(AgentEvent::Waiting {
            why: "busy".into(),
            wait: None,
        }),
        did(AgentEvent::Text {
            text: "It works.".into(),
        }),
        Event::Agent(AgentSessionEvent::AgentFinished {
            iteration: 1,
            attempt: 1,
            end: AgentEnd::Halted,
            report: AgentReport {
                summary: "It works.".into(),
                ..AgentReport::default()
            },
            duration_ms: 61_000,
        }),
    ]
}
