//! Termination of commands and their processes.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecStatus};

use super::contract_sandbox::{AMPLE_TIMEOUT, ContractSandbox, shell, shell_for};
use crate::CollectedOutput;

/// Long enough to start a command on a busy machine.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn a_timeout_keeps_the_output(fixture: &ContractSandbox<'_>) {
    let exec = shell_for(
        "echo early; echo error >&2; sleep 600; echo late",
        SHORT_TIMEOUT,
    );
    let (outcome, output) = fixture.exec(exec).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    assert_eq!(outcome.ended.exit_code(), 124);
    assert_eq!(
        output.stdout_text() + &output.stderr_text(),
        "early\nerror\n"
    );
    assert!(
        outcome.duration >= SHORT_TIMEOUT,
        "it took {:?}",
        outcome.duration
    );
}

pub(super) async fn a_timeout_kills_commands_that_ignore_it(fixture: &ContractSandbox<'_>) {
    let (outcome, _) = fixture
        .exec(shell_for("trap '' TERM; eval \"$BEAT\"", SHORT_TIMEOUT))
        .await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    fixture.assert_no_heartbeat().await;
}

pub(super) async fn a_timeout_ends_other_sessions(fixture: &ContractSandbox<'_>) {
    let line = r#"(detached sh -c "trap '' TERM; $BEAT" >/dev/null 2>&1 &)
        (detached sh -c "trap '' TERM; (eval \"\$1\" &); sleep 60" - "$BEAT" &)
        sleep 60"#;
    let (outcome, _) = fixture.exec(shell_for(line, SHORT_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::TimedOut);
    fixture.assert_no_heartbeat().await;
}

pub(super) async fn an_output_limit_ends_a_flood(fixture: &ContractSandbox<'_>) {
    let limit = 100_000;
    let exec = Exec {
        output_limit: limit,
        ..shell(r#"eval "$BEAT" & exec yes"#)
    };
    let (outcome, output) = fixture.exec(exec).await;
    assert_eq!(outcome.ended, ExecStatus::OutputLimit);
    assert!(outcome.stdout_bytes > limit, "{outcome:?}");
    assert!(
        output.stdout.len() as u64 <= limit,
        "more output than allowed"
    );
    assert!(output.stdout.len() as u64 >= limit / 2, "too little output");

    let exec = Exec {
        output_limit: 4,
        ..shell("printf ab; printf cd >&2")
    };
    let (outcome, _) = fixture.exec(exec).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
}

pub(super) async fn a_background_process_does_not_delay_the_end(fixture: &ContractSandbox<'_>) {
    for line in ["(sleep 600 &); echo done", "detached sleep 600 & echo done"] {
        let (outcome, output) = fixture.exec(shell(line)).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(0));
        assert_eq!(output.stdout_text(), "done\n");
    }
}

pub(super) async fn nothing_outlives_a_command(fixture: &ContractSandbox<'_>) {
    let line = r#"eval "$BEAT" >/dev/null 2>&1 &
        while ! [ -f beat ]; do sleep 0.01; done"#;
    fixture.sh(line).await;
    fixture.assert_no_heartbeat().await;
}

pub(super) async fn dropping_ends_everything(fixture: &ContractSandbox<'_>) {
    let mut output = CollectedOutput::default();
    let line = r#"detached sh -c "$BEAT" & sleep 60"#;
    tokio::select! {
        outcome = fixture.sandbox.exec(shell(line), None, &mut output) => panic!("it ended: {outcome:?}"),
        () = fixture.wait_for_heartbeat() => {}
    }
    fixture.assert_no_heartbeat().await;
}

pub(super) async fn commands_do_not_affect_each_other(fixture: &ContractSandbox<'_>) {
    let mut output = CollectedOutput::default();
    let long = shell(
        "(detached sh -c 'touch begun; sleep 1; echo survived > late' >/dev/null 2>&1 &)
        while ! [ -f late ]; do sleep 0.05; done; cat late",
    );
    let short = async {
        while fixture.read("begun").await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for _ in 0..5 {
            fixture.sh("(sleep 60 >/dev/null 2>&1 &); true").await;
        }
    };
    let both = async { tokio::join!(fixture.sandbox.exec(long, None, &mut output), short) };
    let both = tokio::time::timeout(AMPLE_TIMEOUT, both).await;
    let (outcome, ()) = both.expect("both end");
    assert_eq!(
        outcome.expect("the command runs").ended,
        ExecStatus::Exited(0)
    );
    assert_eq!(output.stdout_text(), "survived\n");
}
