use super::*;
use crate::advice::{Guardrail, Note, NoteKind};

fn all_statuses() -> Vec<RunStatus> {
    vec![
        RunStatus::Created,
        RunStatus::Preparing,
        RunStatus::Running,
        RunStatus::Paused(PauseReason::Person),
        RunStatus::Paused(PauseReason::Model {
            question: "which port?".into(),
        }),
        RunStatus::WaitingQuota(QuotaWait {
            until: jiff::Timestamp::UNIX_EPOCH,
            why: "the weekly limit is reached".into(),
        }),
        RunStatus::WaitingProvider(ProviderWait {
            until: jiff::Timestamp::UNIX_EPOCH,
            why: "status 503".into(),
        }),
        RunStatus::WaitingCi(CiWait {
            commit: CommitId::parse(&"a".repeat(40)).unwrap(),
            round: 1,
            until: jiff::Timestamp::UNIX_EPOCH,
        }),
        RunStatus::WaitingHost(HostWait {
            until: jiff::Timestamp::UNIX_EPOCH,
            why: "rate limited".into(),
        }),
        RunStatus::Verifying,
        RunStatus::Succeeded,
        RunStatus::Failed(FailReason::Budget {
            budget: Budget::Cost,
        }),
        RunStatus::Stopped,
        RunStatus::SandboxLost,
    ]
}

fn all_commands() -> Vec<Command> {
    let text = String::new;
    vec![
        Command::Pause,
        Command::Resume,
        Command::Rotate,
        Command::Stop,
        Command::Profile { name: text() },
        Command::Task {
            contract: Digest::compute(b""),
        },
        Command::Guardrail(Guardrail {
            name: text(),
            trigger: text(),
            instruction: text(),
            evidence: text(),
        }),
        Command::Diagnose,
        Command::Apply,
        Command::Note(Note {
            kind: NoteKind::Clarify,
            text: text(),
            author: text(),
        }),
        Command::Debug { id: text() },
        Command::AllowHost { host: text() },
        Command::Message { text: text() },
        Command::Answer { text: text() },
        Command::Mode {
            mode: RunMode::Guided,
        },
        Command::Limits(crate::budget::BudgetLimits::default()),
        Command::Edit(FileEdit {
            path: crate::path::WorkspacePath::parse("src/a.rs").unwrap(),
            content: Digest::compute(b""),
            replaces: None,
        }),
    ]
}

#[test]
#[expect(clippy::too_many_lines, reason = "the whole table is compared")]
fn the_table_of_commands() {
    let mut table = String::new();
    for mode in [RunMode::Autonomous, RunMode::Guided, RunMode::Debug] {
        for status in all_statuses() {
            use std::fmt::Write as _;
            let commands = all_commands();
            let accepted: Vec<&str> = commands
                .iter()
                .filter(|command| legal(&status, mode, command).is_ok())
                .map(Command::verb)
                .collect();
            let asks = matches!(&status, RunStatus::Paused(reason) if reason.question().is_some());
            let asks = if asks { " (asks)" } else { "" };
            let line = format!(
                "{} {}{asks}: {}",
                mode.as_str(),
                status.as_str(),
                accepted.join(" ")
            );
            writeln!(table, "{}", line.trim_end()).unwrap();
        }
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r"
autonomous created: pause stop profile task guardrail allow mode continue
autonomous preparing: pause stop profile task guardrail allow mode continue
autonomous running: pause rotate stop profile task guardrail diagnose apply allow mode continue
autonomous paused: resume stop profile task guardrail diagnose apply allow mode continue
autonomous paused (asks): resume stop profile task guardrail diagnose apply note allow message answer mode continue
autonomous waiting_quota: pause resume stop profile task guardrail diagnose apply allow mode continue
autonomous waiting_provider: pause resume stop profile task guardrail diagnose apply allow mode continue
autonomous waiting_ci: pause resume rotate stop profile task guardrail diagnose apply allow mode continue
autonomous waiting_host: pause resume stop profile task guardrail diagnose apply allow mode continue
autonomous verifying: pause stop profile task guardrail diagnose apply allow mode continue
autonomous succeeded:
autonomous failed: continue
autonomous stopped:
autonomous sandbox_lost: resume stop profile task guardrail diagnose apply allow mode continue
guided created: pause stop profile task guardrail note allow message mode continue
guided preparing: pause stop profile task guardrail note allow message mode continue
guided running: pause rotate stop profile task guardrail diagnose apply note allow message mode continue edit
guided paused: resume stop profile task guardrail diagnose apply note allow message mode continue edit
guided paused (asks): resume stop profile task guardrail diagnose apply note allow message answer mode continue edit
guided waiting_quota: pause resume stop profile task guardrail diagnose apply note allow message mode continue edit
guided waiting_provider: pause resume stop profile task guardrail diagnose apply note allow message mode continue edit
guided waiting_ci: pause resume rotate stop profile task guardrail diagnose apply note allow message mode continue edit
guided waiting_host: pause resume stop profile task guardrail diagnose apply note allow message mode continue edit
guided verifying: pause stop profile task guardrail diagnose apply note allow message mode continue edit
guided succeeded:
guided failed: continue
guided stopped:
guided sandbox_lost: resume stop profile task guardrail diagnose apply note allow message mode continue
debug created: pause stop profile task guardrail note allow message mode continue
debug preparing: pause stop profile task guardrail note allow message mode continue
debug running: pause rotate stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug paused: resume stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug paused (asks): resume stop profile task guardrail diagnose apply note debug allow message answer mode continue edit
debug waiting_quota: pause resume stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug waiting_provider: pause resume stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug waiting_ci: pause resume rotate stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug waiting_host: pause resume stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug verifying: pause stop profile task guardrail diagnose apply note debug allow message mode continue edit
debug succeeded:
debug failed: continue
debug stopped:
debug sandbox_lost: resume stop profile task guardrail diagnose apply note allow message mode continue

"]]
    );
}

#[test]
fn the_table_of_effects() {
    use std::fmt::Write as _;
    let mut table = String::new();
    for command in all_commands() {
        let CommandTraits {
            timing,
            offline,
            is_slow,
        } = command.traits();
        let slow = if is_slow { ", slow" } else { "" };
        let effect = command.effect(false);
        writeln!(table, "{timing:?}, {offline:?}{slow}: {effect}").unwrap();
        match timing {
            CommandTiming::Immediate => assert!(!effect.contains("next"), "{effect}"),
            CommandTiming::NextAction => assert!(effect.ends_with("at the next action")),
            CommandTiming::NextIteration => assert!(effect.contains("the next iteration")),
        }
    }
    snapbox::assert_data_eq!(
        table,
        snapbox::str![[r"
NextAction, NeedsProcess: pause accepted; the run pauses at the next action
Immediate, NeedsProcess: resume accepted; the run continues
NextAction, NeedsProcess: rotate accepted; a model call is cancelled, otherwise a fresh iteration starts at the next action
Immediate, EndsRun: stop accepted; the sandbox is kept for inspection
NextIteration, Recorded: profile accepted; its model is used from the next iteration on
NextIteration, Recorded: task accepted; it applies from the next iteration on
NextIteration, Executed: guardrail accepted; it takes effect before the next iteration
NextIteration, CallsModel, slow: diagnose accepted; the doctor is consulted before the next iteration
NextIteration, Executed: apply accepted; it takes effect before the next iteration
NextAction, Executed: note accepted; it takes effect at the next action
NextAction, Executed, slow: debug accepted; it takes effect at the next action
Immediate, Journaled: allow accepted; it takes effect immediately
Immediate, Journaled: message accepted; it takes effect immediately
Immediate, Journaled: answer accepted; the run continues with it
NextIteration, Recorded: mode accepted; it applies from the next iteration on
Immediate, Journaled: continue accepted; the budgets apply immediately
NextAction, Executed: edit accepted; it takes effect at the next action

"]]
    );
}

#[test]
fn every_status_round_trips_through_json() {
    for status in all_statuses() {
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<RunStatus>(&text).unwrap(), status);
    }
}

#[test]
fn commands_without_arguments_are_strings_and_the_others_objects() {
    let texts: Vec<String> = all_commands()
        .iter()
        .map(|command| serde_json::to_string(command).unwrap())
        .collect();
    assert_eq!(
        texts[..4],
        ["\"pause\"", "\"resume\"", "\"rotate\"", "\"stop\""]
    );
    assert_eq!(texts[4], r#"{"profile":{"name":""}}"#);
    assert!(
        texts[5].starts_with(r#"{"task":{"contract":""#),
        "{}",
        texts[5]
    );
    assert_eq!(texts[10], r#"{"debug":{"id":""}}"#);
    assert_eq!(texts[11], r#"{"allow_host":{"host":""}}"#);
    assert_eq!(texts[12], r#"{"message":{"text":""}}"#);
    assert_eq!(texts[13], r#"{"answer":{"text":""}}"#);
    assert_eq!(texts[14], r#"{"mode":{"mode":"guided"}}"#);
    assert!(texts[15].starts_with(r#"{"limits":{"max_iterations":null,"#));
    for (text, command) in texts.iter().zip(all_commands()) {
        assert_eq!(serde_json::from_str::<Command>(text).unwrap(), command);
    }
    assert!(serde_json::from_str::<Command>(r#"{"debug":{"command":"id"}}"#).is_err());
}

#[test]
fn an_answer_needs_a_pause_that_it_can_end() {
    let answer = Command::Answer { text: "a".into() };
    let after = |reason| legal(&RunStatus::Paused(reason), RunMode::Autonomous, &answer);
    let question = String::new();
    assert_eq!(after(PauseReason::Model { question }), Ok(()));
    let evidence = String::new();
    assert_eq!(
        after(PauseReason::Gutter {
            consecutive: 3,
            evidence
        }),
        Ok(())
    );
    assert_eq!(
        after(PauseReason::Person),
        Err("it does not ask a question")
    );
    assert_eq!(
        after(PauseReason::TestChanges {
            changes: Vec::new(),
            digest: Digest::compute(b"")
        }),
        Err("it asks for the approval of changed tests, which `ralph resume` gives")
    );
    assert_eq!(
        legal(&RunStatus::Running, RunMode::Debug, &answer),
        Err("it does not ask a question")
    );
}
