use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ralph_core::budget::{Budget, Limits};
use ralph_core::event::{
    ActionResult, DiffSize, Event, IterationOutcome, Metrics, Purpose, Record, VERSION,
};
use ralph_core::id::{CommitId, Digest, RunId, TaskId};
use ralph_core::money::Usd;
use ralph_core::plan::{Delivery, Engine, RunPlan};
use ralph_core::ports::{Ended, Isolation, PullRequest, PullState, SandboxId, Usage};
use ralph_core::run::{Command, FailReason, PauseReason, RunStatus};
use ralph_core::state::RunState;
use ralph_core::verdict::{CheckResult, TestCount};
use snapbox::{assert_data_eq, str};

use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Shows events as they would be in a journal, and returns what was written.
fn shown(events: Vec<Event>, mode: Mode) -> String {
    let kept = Kept::default();
    let mut view = View::new(Box::new(kept.clone()), mode);
    let mut state: Option<RunState> = None;
    for (seq, event) in (1..).zip(events) {
        let record = Record {
            v: VERSION,
            seq,
            prev: Digest::of(b""),
            at: "2026-03-01T10:00:00Z".parse().unwrap(),
            active_ms: seq * 1_000,
            epoch: 1,
            event,
        };
        match &mut state {
            Some(state) => state.apply(&record),
            None => state = RunState::begin(&record),
        }
        view.show(&record, state.as_ref().unwrap());
    }
    drop(view);
    String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
}

/// Makes escape sequences visible: `\x1b[32m` becomes `<32>`, its end `</>`.
fn rich(events: Vec<Event>) -> String {
    let text = shown(events, Mode::Rich(Width::Fixed(80), Progress::Hidden));
    let text = text.replace("\u{1b}[0m", "</>");
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (code, rest) = part.split_once('m').unwrap();
        format!("{text}<{code}>{rest}")
    })
}

fn commit(digit: &str) -> CommitId {
    CommitId::parse(&digit.repeat(40)).unwrap()
}

fn created() -> Event {
    let plan = RunPlan {
        run: RunId::parse("260301-100000-0001").unwrap(),
        task_id: TaskId::parse("task-001").unwrap(),
        title: "Say hello".into(),
        task_file: "/home/me/hello/ralph_task.md".into(),
        contract: Digest::of(b"contract"),
        repo: "/home/me/hello".into(),
        base_branch: "main".into(),
        base: commit("a"),
        branch: "ralph/task-001/say-hello".into(),
        engine: Engine::Actions,
        sandbox: "local".into(),
        isolation: Isolation::None,
        model: "scripted:replies.jsonl".into(),
        scm: "local".into(),
        delivery: Delivery::PullRequest,
        limits: Limits {
            max_iterations: Some(10),
            max_wall_time: Some(Duration::from_hours(1)),
            max_cost: Usd::from_dollars(1.0),
            max_tokens: Some(20_000),
        },
        test_command: "make test".into(),
        checkboxes: 2,
    };
    Event::RunCreated {
        plan: Box::new(plan),
    }
}

fn status(status: RunStatus) -> Event {
    Event::StatusChanged { status }
}

fn check(name: &str, code: i32, tests: Option<TestCount>) -> CheckResult {
    CheckResult {
        name: name.into(),
        command: "make test".into(),
        ended: Ended::Exited(code),
        duration_ms: 1_500,
        tests,
    }
}

fn counted(passed: u64, failed: u64, skipped: u64) -> Option<TestCount> {
    Some(TestCount {
        passed,
        failed,
        skipped,
    })
}

fn started(index: usize, action: &str, label: &str) -> Event {
    Event::ActionStarted {
        iteration: 1,
        index,
        action: action.into(),
        label: label.into(),
        after: None,
    }
}

fn finished(index: usize, action: &str, label: &str, result: ActionResult, tail: &str) -> Event {
    Event::ActionFinished {
        iteration: 1,
        index,
        action: action.into(),
        label: label.into(),
        result,
        duration_ms: 12,
        tail: tail.into(),
    }
}

fn ran(code: i32) -> ActionResult {
    ActionResult::Ran {
        ended: Ended::Exited(code),
        stdout_bytes: 10,
        stderr_bytes: 0,
    }
}

fn replied(attempt: u32) -> Event {
    Event::ModelReplied {
        iteration: 1,
        attempt,
        response: Digest::of(b"response"),
        usage: Usage {
            input_tokens: 8_200,
            output_tokens: 345,
            ..Usage::default()
        },
        cost_usd: Usd::from_dollars(0.05).unwrap(),
        duration_ms: 2_300,
        source: None,
    }
}

fn asked(attempt: u32) -> Event {
    Event::ModelAsked {
        iteration: 1,
        attempt,
        prompt: Digest::of(b"prompt"),
        prompt_bytes: 12_345,
    }
}

fn iteration_finished(outcome: IterationOutcome, diff: DiffSize) -> Event {
    Event::IterationFinished {
        iteration: 1,
        summary: "Write the greeting".into(),
        outcome,
        metrics: Metrics {
            iteration: 1,
            duration_ms: 65_000,
            model_ms: 0,
            command_ms: 0,
            model_calls: 2,
            usage: Usage::default(),
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
            head: commit("b"),
        },
        files: BTreeMap::new(),
        logs: BTreeMap::new(),
    }
}

fn pull(state: PullState, opened: bool) -> Event {
    Event::PullRequestUpdated {
        pull: PullRequest {
            number: 7,
            url: "file:///home/me/pulls/7".into(),
            state,
            head: commit("b"),
        },
        opened,
    }
}

/// The beginning of a run, up to the model's first usable answer.
fn beginning() -> Vec<Event> {
    let sandbox = SandboxId("local-1".into());
    vec![
        created(),
        Event::RunOpened { epoch: 1, pid: 42 },
        status(RunStatus::Preparing),
        Event::SandboxCreated {
            sandbox,
            purpose: Purpose::Work,
        },
        Event::WorkspaceReady {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("a"),
        },
        status(RunStatus::Running),
        Event::IterationStarted {
            iteration: 1,
            head: commit("a"),
        },
        asked(1),
        Event::ModelFailed {
            iteration: 1,
            attempt: 1,
            error: "model `x` is not available at the moment: status 429".into(),
            retry_in_ms: Some(2_000),
        },
        asked(2),
        replied(2),
        Event::ReplyRejected {
            iteration: 1,
            attempt: 2,
            errors: "actions[0]: unknown action `fly`\nclaims: missing".into(),
        },
        asked(3),
        replied(3),
        Event::ReplyAccepted {
            iteration: 1,
            summary: "Write the greeting, then see whether the tests like it; they are strict \
                      about the comma"
                .into(),
            actions: 6,
            repaired: true,
        },
    ]
}

/// What the actions of an iteration come to.
fn middle() -> Vec<Event> {
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
        Event::ClaimChecked {
            iteration: 1,
            checkbox: "M1.1".into(),
            verified: true,
            why: String::new(),
            checks: vec![check("M1.1", 0, None)],
        },
        Event::ClaimChecked {
            iteration: 1,
            checkbox: "M1.2".into(),
            verified: false,
            why: "its verify command is red".into(),
            checks: vec![check("M1.2", 1, None)],
        },
        Event::BoxesTicked {
            ticked: vec!["M1.1".into()],
        },
        Event::TestsRun {
            iteration: 1,
            check: check("tests", 1, counted(3, 1, 2)),
        },
        Event::Tamper {
            iteration: 1,
            path: ".ralph/guardrails.md".into(),
            finding: "was shortened".into(),
        },
        Event::BudgetWarning {
            budget: Budget::Tokens,
            percent: 80,
        },
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

/// From people's commands to the verdict.
fn end() -> Vec<Event> {
    let room = SandboxId("local-2".into());
    vec![
        Event::CommandReceived {
            id: "1".into(),
            command: Command::Rotate,
            refused: None,
        },
        Event::CommandReceived {
            id: "2".into(),
            command: Command::Resume,
            refused: Some("it is not paused".into()),
        },
        Event::ContractChanged {
            contract: Digest::of(b"new"),
            changes: vec!["max_iterations: 10 → 20".into(), "a box was added".into()],
        },
        Event::ContractRejected {
            why: "`max_iterations` is missing".into(),
        },
        Event::Notice {
            message: "the working tree has changes that were not taken along".into(),
        },
        Event::CommitsImported {
            head: commit("b"),
            commits: 2,
        },
        Event::ImportRefused {
            why: "branch `main` was moved".into(),
        },
        Event::PushStarted {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("b"),
        },
        Event::Pushed {
            branch: "ralph/task-001/say-hello".into(),
            head: commit("b"),
        },
        pull(PullState::Draft, true),
        Event::StateSaved {
            reference: "refs/ralph/task-001".into(),
            commit: commit("c"),
        },
        Event::SuccessRefused {
            iteration: 1,
            reasons: vec!["box M1.2 is not ticked".into()],
        },
        status(RunStatus::Verifying),
        Event::VerifyStarted { head: commit("b") },
        Event::SandboxCreated {
            sandbox: room.clone(),
            purpose: Purpose::CleanRoom,
        },
        Event::VerifyFinished {
            head: commit("b"),
            contract: Digest::of(b"contract"),
            green: false,
            checks: vec![check("tests", 0, counted(0, 0, 0))],
            reasons: vec!["no test was executed".into()],
        },
        Event::SandboxRemoved { sandbox: room },
        Event::RunOpened { epoch: 2, pid: 43 },
        Event::VerifyFinished {
            head: commit("b"),
            contract: Digest::of(b"contract"),
            green: true,
            checks: vec![check("tests", 0, counted(4, 0, 0)), check("M1.1", 0, None)],
            reasons: vec![],
        },
        pull(PullState::Open, false),
        status(RunStatus::Succeeded),
    ]
}

fn story() -> Vec<Event> {
    [beginning(), middle(), end()].concat()
}

#[test]
fn a_whole_run_in_plain_lines() {
    assert_data_eq!(
        shown(story(), Mode::Plain),
        str![[r#"
Say hello (task-001)
  run      260301-100000-0001
  task     /home/me/hello/ralph_task.md · 2 checkboxes
  repo     /home/me/hello · main at aaaaaaaaaa
  branch   ralph/task-001/say-hello · pull request
  sandbox  local · no isolation: commands run as you
  model    scripted:replies.jsonl · actions
  tests    make test
  budgets  10 iterations · 60m wall time · $1.00 cost · 20000 tokens
  … preparing
  sandbox `local-1` is made
  the repository is on `ralph/task-001/say-hello` at aaaaaaaaaa
  … running

── iteration 1 ──
  … asking the model (12.3 KB)
  ✗ model `x` is not available at the moment: status 429; asked again in 2.0s
  … asking the model, attempt 2 (12.3 KB)
  the model answered: 8,200 tokens in, 345 out, $0.05 (2.3s)
  ✗ the reply cannot be used
    - actions[0]: unknown action `fly`
    - claims: missing
  … asking the model, attempt 3 (12.3 KB)
  the model answered: 8,200 tokens in, 345 out, $0.05 (2.3s)
  Write the greeting, then see whether the tests like it; they are strict about the comma
  the reply had to be repaired before it could be read
  ✓ write src/hello.txt · 13 bytes (12ms)
  … run make test
  ✗ run make test · exit 2 (12ms)
    │ one
    │ two: red
  ✓ run true · exit 0 (12ms)
  ✗ patch src/other.txt (12ms)
    hunk 1 does not fit: line 3 of the file is not the line the patch expects there
  ⊘ write .git/config refused
    `.git` is the runner's
  ⊘ commit Say hello · skipped: action 4 failed
  ✗ run sleep 100 · the program died while it ran (12ms)
  ✓ M1.1 verified
  ✗ M1.2 not verified: its verify command is red
    ✗ M1.2 `make test` exit 1 (1.5s)
  boxes 1/2: M1.1
  ✗ tests `make test` exit 1, 3 passed, 1 failed, 2 skipped (1.5s)
  ⚠ tampering: `.ralph/guardrails.md` was shortened; it was put back
  ⚠ 80% of `max_tokens_total` is used
  iteration 1 ended at action 4 · +10 −2 in 1 file · loop score 0.3 (1m 05s)
  budgets: iterations 1/10 (10%), wall time 31s/60m (0%), cost $0.10/$1.00 (10%), tokens 17090/20000 (85%)
  » rotate accepted
  ⚠ resume refused: it is not paused
  » the task file has changed: max_iterations: 10 → 20, a box was added
  ⚠ the changed task file is not used: `max_iterations` is missing
  » the working tree has changes that were not taken along
  took 2 commits, now at bbbbbbbbbb
  ✗ the commits were not taken: branch `main` was moved
  pushed bbbbbbbbbb to `ralph/task-001/say-hello`
  pull request #7 opened (draft) file:///home/me/pulls/7
  ✗ not done yet
    - box M1.2 is not ticked
  … verifying

── verification of bbbbbbbbbb ──
  clean room `local-2` is made
  ✓ tests `make test` exit 0, 0 passed (1.5s)
  ✗ bbbbbbbbbb is not green
    - no test was executed
  `local-2` is removed
  taken over by process 43
  ✓ tests `make test` exit 0, 4 passed (1.5s)
  ✓ M1.1 `make test` exit 0 (1.5s)
  ✓ bbbbbbbbbb is green in a clean room
  pull request #7 updated (open) file:///home/me/pulls/7

✓ succeeded — Say hello
  pull request #7 (open) file:///home/me/pulls/7
  commit bbbbbbbbbb is verified in a clean room
  1 of 2 boxes checked off
  1 iteration · 52.0s · 17,090 tokens · $0.10

"#]]
    );
}

#[test]
fn a_whole_run_on_a_terminal() {
    assert_data_eq!(
        rich(story()),
        str![[r#"
<1>Say hello</><2> (task-001)</>
<2>  run      </>260301-100000-0001
<2>  task     </>/home/me/hello/ralph_task.md · 2 checkboxes
<2>  repo     </>/home/me/hello · main at aaaaaaaaaa
<2>  branch   </>ralph/task-001/say-hello · pull request
<2>  sandbox  </>local · no isolation: commands run as you
<2>  model    </>scripted:replies.jsonl · actions
<2>  tests    </>make test
<2>  budgets  </>10 iterations · 60m wall time · $1.00 cost · 20000 tokens
  <2>sandbox `local-1` is made</>
  <2>the repository is on `ralph/task-001/say-hello` at aaaaaaaaaa</>

<36>── </><1>iteration 1</><36> ─────────────────────────────────────────────────────────────────</>
  <31>✗</> model `x` is not available at the moment: status 429; asked again in 2.0s
  <2>the model answered: 8,200 tokens in, 345 out, $0.05</>                       <2>2.3s</>
  <31>✗</> the reply cannot be used
    <2>- </>actions[0]: unknown action `fly`
    <2>- </>claims: missing
  <2>the model answered: 8,200 tokens in, 345 out, $0.05</>                       <2>2.3s</>
  <1>Write the greeting, then see whether the tests like it; they are strict about</>
  <1>the comma</>
  <2>the reply had to be repaired before it could be read</>
  <32>✓</> write src/hello.txt<2> · 13 bytes</>                                          <2>12ms</>
  <31>✗</> run make test<2> · exit 2</>                                                  <2>12ms</>
    <2>│ </><2>one</>
    <2>│ </><2>two: red</>
  <32>✓</> run true<2> · exit 0</>                                                       <2>12ms</>
  <31>✗</> patch src/other.txt                                                     <2>12ms</>
    hunk 1 does not fit: line 3 of the file is not the line the patch expects
    there
  <33>⊘</> write .git/config refused
    `.git` is the runner's
  <2>⊘</> commit Say hello<2> · skipped: action 4 failed</>
  <31>✗</> run sleep 100 · the program died while it ran                           <2>12ms</>
  <32>✓</> <1>M1.1</> verified
  <31>✗</> <1>M1.2</> not verified: its verify command is red
    <31>✗</> M1.2<2> `make test`</> exit 1                                               <2>1.5s</>
  <2>boxes 1/2: M1.1</>
  <31>✗</> tests<2> `make test`</> exit 1, 3 passed, 1 failed, 2 skipped                 <2>1.5s</>
  <33>⚠</> <33>tampering: `.ralph/guardrails.md` was shortened; it was put back</>
  <33>⚠</> <33>80% of `max_tokens_total` is used</>
  <36>iteration 1 </>ended at action 4<2> · +10 −2 in 1 file · loop score 0.3</>       <2>1m 05s</>
  <2>iterations </><32>▮</><2>▯▯▯▯▯▯▯▯▯</>  10% 1/10         <2>wall time  </><2>▯▯▯▯▯▯▯▯▯▯</>   0% 31s/60m
  <2>cost       </><32>▮</><2>▯▯▯▯▯▯▯▯▯</>  10% $0.10/$1.00  <2>tokens     </><33>▮▮▮▮▮▮▮▮</><2>▯▯</>  85% 17090/20000
  » <1>rotate</> accepted
  <33>⚠</> <33>resume refused: it is not paused</>
  » the task file has changed: max_iterations: 10 → 20, a box was added
  <33>⚠</> <33>the changed task file is not used: `max_iterations` is missing</>
  » the working tree has changes that were not taken along
  <2>took 2 commits, now at bbbbbbbbbb</>
  <31>✗</> the commits were not taken: branch `main` was moved
  <2>pushed bbbbbbbbbb to `ralph/task-001/say-hello`</>
  <36>pull request #7</> opened (draft) <1>file:///home/me/pulls/7</>
  <33>✗</> not done yet
    <2>- </>box M1.2 is not ticked

<36>── </><1>verification of bbbbbbbbbb</><36> ──────────────────────────────────────────────────</>
  <2>clean room `local-2` is made</>
  <32>✓</> tests<2> `make test`</> exit 0, 0 passed                                      <2>1.5s</>
  <31>✗</> <1>bbbbbbbbbb is not green</>
    <2>- </>no test was executed
  <2>`local-2` is removed</>
  <2>taken over by process 43</>
  <32>✓</> tests<2> `make test`</> exit 0, 4 passed                                      <2>1.5s</>
  <32>✓</> M1.1<2> `make test`</> exit 0                                                 <2>1.5s</>
  <32>✓</> <1>bbbbbbbbbb is green in a clean room</>
  <36>pull request #7</> updated (open) <1>file:///home/me/pulls/7</>

<32>┃ </><32>✓ succeeded</><1> — Say hello</>
<32>┃ </>  pull request #7 (open) file:///home/me/pulls/7
<32>┃ </>  commit bbbbbbbbbb is verified in a clean room
<32>┃ </>  1 of 2 boxes checked off
<32>┃ </>  <2>1 iteration · 52.0s · 17,090 tokens · $0.10</>

"#]]
    );
}

#[test]
fn the_last_block_says_how_it_ended_and_what_to_do() {
    let endings = [
        RunStatus::Paused(PauseReason::Model {
            question: "Which of the two greetings should it be: the short one of the README, or \
                       the long one of the tests?"
                .into(),
        }),
        RunStatus::Failed(FailReason::Budget {
            budget: Budget::Cost,
        }),
        RunStatus::Stopped,
        RunStatus::SandboxLost,
    ];
    let text: String = endings
        .into_iter()
        .map(|ending| {
            let all = rich(vec![created(), status(ending)]);
            all.split_once("cost · 20000 tokens\n")
                .unwrap()
                .1
                .to_owned()
        })
        .collect();
    assert_data_eq!(
        text,
        str![[r#"

<33>┃ </><33>■ paused</> — the model asks: Which of the two greetings should it be: the short
<33>┃ </>           one of the README, or the long one of the tests?
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<33>┃ </>  <36>`ralph resume 260301-100000-0001` continues it</>

<31>┃ </><31>✗ failed</> — the budget `max_cost_usd_estimate` is used up
<31>┃ </>  0 of 2 boxes checked off
<31>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<31>┃ </>  <36>`ralph logs 260301-100000-0001` tells what it did</>

<33>┃ </><33>■ stopped</><1> — Say hello</>
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>

<33>┃ </><33>■ sandbox lost</> — the sandbox is gone; what was committed is kept
<33>┃ </>  0 of 2 boxes checked off
<33>┃ </>  <2>0 iterations · 2.0s · 0 tokens · $0.00</>
<33>┃ </>  <36>`ralph resume 260301-100000-0001` continues it</>

"#]]
    );
}

#[test]
fn json_is_the_journals_record_line_by_line() {
    let text = shown(story(), Mode::Json);
    let events: Vec<Event> = text
        .lines()
        .map(|line| serde_json::from_str::<Record>(line).unwrap().event)
        .collect();
    assert_eq!(events, story());
}

#[test]
fn nothing_from_outside_reaches_the_terminal_as_an_escape() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2Jx\r\u{202e}y";
    let events = vec![
        created(),
        Event::ReplyAccepted {
            iteration: 1,
            summary: evil.into(),
            actions: 0,
            repaired: false,
        },
        finished(0, "run", evil, ran(1), evil),
        Event::Notice {
            message: evil.into(),
        },
        status(RunStatus::Paused(PauseReason::Model {
            question: evil.into(),
        })),
    ];
    let plain = shown(events.clone(), Mode::Plain);
    assert!(
        !plain.contains(['\u{1b}', '\r', '\u{7}', '\u{202e}']),
        "{plain:?}"
    );
    assert_eq!(plain.matches("x �y").count(), 5, "{plain}");
    let rich = shown(events, Mode::Rich(Width::Fixed(80), Progress::Hidden));
    assert!(!rich.contains(['\r', '\u{7}', '\u{202e}']));
    let own = ["1", "2", "31", "32", "33", "36", "0"].map(|code| format!("{code}m"));
    for rest in rich.split("\u{1b}[").skip(1) {
        assert!(own.iter().any(|code| rest.starts_with(code)), "{rest:?}");
    }
    assert_eq!(
        rich.matches('\u{1b}').count(),
        rich.matches("\u{1b}[").count()
    );
}
