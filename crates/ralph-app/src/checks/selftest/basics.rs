//! Checks that every provider passes: running commands, storing files and enforcing timeouts.

use std::time::Duration;

use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{Exec, ExecStatus, WriteMode};

use super::session::{QUICK_TIMEOUT, SelftestSession, sandbox_failure};
use crate::checks::CheckOutcome;
use crate::format;

/// The size of the file that is copied in and out.
const FILE_BYTES: usize = 1 << 20;
/// The timeout after which the process tree is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks that a command runs and returns its exit code.
pub(super) async fn check_exec(session: &SelftestSession<'_>) -> CheckOutcome {
    let exec = Exec::shell("echo ok; exit 7", QUICK_TIMEOUT);
    match session.run(exec).await {
        Ok(answer) if answer.text == "ok" && answer.outcome.ended == ExecStatus::Exited(7) => {
            let took = format::duration(answer.outcome.duration);
            CheckOutcome::Passed(format!("a command finished in {took}"))
        }
        Ok(answer) => CheckOutcome::failed(
            format!(
                "`echo ok; exit 7` printed `{}` and ended with {}",
                answer.text, answer.outcome.ended
            ),
            "check the shell of the image",
        ),
        Err(error) => sandbox_failure(error),
    }
}

/// Checks that a file is copied in, is visible to commands, and is copied out unchanged.
pub(super) async fn check_files(session: &SelftestSession<'_>) -> CheckOutcome {
    let bytes = pseudo_random_bytes(FILE_BYTES);
    let path = match WorkspacePath::parse("selftest") {
        Ok(path) => SandboxPath::in_scratch(&path),
        Err(error) => return CheckOutcome::failed(error.to_string(), "report the problem"),
    };
    let written = session.sandbox.write(&path, &bytes, WriteMode::Replace);
    if let Err(error) = written.await {
        return sandbox_failure(error);
    }
    let counted = session.run_successfully("wc -c <../scratch/selftest").await;
    match counted {
        Ok(count) if count == FILE_BYTES.to_string() => {}
        Ok(count) => {
            return CheckOutcome::failed(
                format!("a command sees {count} of {FILE_BYTES} bytes"),
                "check the disk of the sandbox",
            );
        }
        Err(outcome) => return outcome,
    }
    match session.sandbox.read(&path, FILE_BYTES as u64).await {
        Ok(read) if read == bytes => CheckOutcome::Passed(format!("{FILE_BYTES} bytes in and out")),
        Ok(read) => CheckOutcome::failed(
            format!(
                "the content changed: {FILE_BYTES} bytes were written, {} were read",
                read.len()
            ),
            "check the disk of the sandbox",
        ),
        Err(error) => sandbox_failure(error),
    }
}

/// Returns fixed bytes without a pattern.
fn pseudo_random_bytes(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Checks that a command with children, one of them in its own session, is killed at its timeout.
pub(super) async fn check_timeout(session: &SelftestSession<'_>) -> CheckOutcome {
    let tree = "rm -f ../scratch/pids
        sh -c 'echo $$ >>../scratch/pids; exec sleep 300' &
        if command -v setsid >/dev/null 2>&1; then
            setsid sh -c 'echo $$ >>../scratch/pids; exec sleep 300' &
        fi
        echo $$ >>../scratch/pids; sleep 300";
    match session.run(Exec::shell(tree, KILL_TIMEOUT)).await {
        Ok(answer) if answer.outcome.ended == ExecStatus::TimedOut => {}
        Ok(answer) => {
            return CheckOutcome::failed(
                format!(
                    "a command that sleeps ended with {} instead of a timeout",
                    answer.outcome.ended
                ),
                "check the shell of the image",
            );
        }
        Err(error) => return sandbox_failure(error),
    }
    let alive = "for pid in $(cat ../scratch/pids); do
            if kill -0 $pid 2>/dev/null && ! grep -q '^State:.Z' /proc/$pid/status 2>/dev/null; then
                echo $pid
            fi
        done";
    match session.run_successfully(alive).await {
        Ok(left) if left.is_empty() => CheckOutcome::Passed(format!(
            "a process tree was killed after {}s",
            KILL_TIMEOUT.as_secs()
        )),
        Ok(left) => CheckOutcome::failed(
            format!(
                "after the timeout these processes still run: {}",
                left.replace('\n', " ")
            ),
            "kill them by hand; commands of a run would also outlive their timeouts",
        ),
        Err(outcome) => outcome,
    }
}
