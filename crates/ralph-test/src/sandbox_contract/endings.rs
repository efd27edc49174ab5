//! Exit statuses of commands.

use ralph_core::ports::{Exec, ExecStatus, SandboxError};

use super::contract_sandbox::{AMPLE_TIMEOUT, ContractSandbox, shell};

pub(super) async fn exit_codes_are_exact(fixture: &ContractSandbox<'_>) {
    for code in [0, 1, 3, 124, 128, 137, 255] {
        let (outcome, _) = fixture.exec(shell(&format!("exit {code}"))).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(code));
    }
}

pub(super) async fn commands_that_cannot_run_exit_with_126_or_127(fixture: &ContractSandbox<'_>) {
    fixture.write("plain", b"not a program").await;
    for (line, code) in [("./plain", 126), ("no-such-program-here", 127)] {
        let (outcome, output) = fixture.exec(shell(line)).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(code), "{line}");
        assert!(!output.stderr.is_empty(), "`{line}` prints no error");
    }
}

pub(super) async fn signals_are_distinguished(fixture: &ContractSandbox<'_>) {
    for (signal, code) in [(9, 137), (15, 143)] {
        let (outcome, _) = fixture.exec(shell(&format!("kill -{signal} $$"))).await;
        assert_eq!(outcome.ended, ExecStatus::Signalled(signal));
        assert_eq!(outcome.ended.exit_code(), code);
    }
}

pub(super) async fn argv_needs_no_shell(fixture: &ContractSandbox<'_>) {
    let argv = ["printf", "%s|", "a b", "$HOME", "*", "", "'\"\\"];
    let (outcome, output) = fixture.exec(Exec::argv(argv, AMPLE_TIMEOUT)).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert_eq!(output.stdout_text(), "a b|$HOME|*||'\"\\|");
}

pub(super) async fn a_missing_program_is_an_error(fixture: &ContractSandbox<'_>) {
    let error = fixture
        .exec_error(Exec::argv(["no-such-program-here"], AMPLE_TIMEOUT))
        .await;
    assert!(
        matches!(&error, SandboxError::Spawn { program, .. } if program == "no-such-program-here"),
        "{error:?}"
    );
}
