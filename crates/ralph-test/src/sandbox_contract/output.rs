//! Standard input and output of commands.

use std::time::Duration;

use async_trait::async_trait;
use ralph_core::ports::{ExecStatus, InputSource, OutputSink, OutputStream};
use tokio::sync::Notify;

use super::contract_sandbox::{AMPLE_TIMEOUT, ContractSandbox, shell};
use crate::CollectedOutput;

/// The maximum size of an output chunk, which bounds the memory of the receiver.
const MAX_CHUNK_BYTES: usize = 1 << 20;

/// Counts output without storing it.
#[derive(Debug, Default)]
struct OutputTotals {
    bytes: u64,
    largest: usize,
}

impl OutputSink for OutputTotals {
    fn chunk(&mut self, _stream: OutputStream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.largest = self.largest.max(bytes.len());
    }
}

/// Notifies about the first output.
struct FirstOutputNotifier<'a>(&'a Notify);

impl OutputSink for FirstOutputNotifier<'_> {
    fn chunk(&mut self, _stream: OutputStream, _bytes: &[u8]) {
        self.0.notify_one();
    }
}

pub(super) async fn streams_are_separate(fixture: &ContractSandbox<'_>) {
    let line = "echo out; echo err >&2; echo more";
    let (outcome, output) = fixture.exec(shell(line)).await;
    let expected = CollectedOutput {
        stdout: b"out\nmore\n".into(),
        stderr: b"err\n".into(),
    };
    assert_eq!(output, expected);
    assert_eq!((outcome.stdout_bytes, outcome.stderr_bytes), (9, 4));
}

pub(super) async fn standard_streams_can_be_opened_again(fixture: &ContractSandbox<'_>) {
    let mut lines = vec![
        ("echo text > /dev/stdout", "text\n", ""),
        ("echo text > /dev/stderr", "", "text\n"),
        ("echo text >> /dev/stderr", "", "text\n"),
        ("echo text | tee /dev/stderr", "text\n", "text\n"),
        ("cat /dev/stdin", "input", ""),
        ("sh -c 'echo text > /dev/stdout' 2>&1", "text\n", ""),
    ];
    // Not every Unix has these.
    if fixture
        .sh("ls /proc/self/fd 2>/dev/null | wc -l")
        .await
        .trim()
        != "0"
    {
        lines.push(("echo text > /proc/self/fd/1", "text\n", ""));
        lines.push(("echo text > /proc/self/fd/2", "", "text\n"));
        lines.push(("cat /proc/self/fd/0", "input", ""));
    }
    for (line, stdout, stderr) in lines {
        let (outcome, output) = fixture.exec(shell(line).with_stdin("input")).await;
        let found = (output.stdout_text(), output.stderr_text());
        assert_eq!(found, (stdout.to_owned(), stderr.to_owned()), "{line}");
        assert_eq!(outcome.ended, ExecStatus::Exited(0), "{line}");
    }
}

pub(super) async fn bytes_are_exact(fixture: &ContractSandbox<'_>) {
    let line = r"printf '\377\000\r\033[31m\033]52;c;eA==\007\303'";
    let (_, output) = fixture.exec(shell(line)).await;
    assert_eq!(output.stdout, b"\xff\0\r\x1b[31m\x1b]52;c;eA==\x07\xc3");
}

pub(super) async fn output_arrives_while_the_command_runs(fixture: &ContractSandbox<'_>) {
    // The command exits only after its first line has arrived here.
    let arrived = Notify::new();
    let mut first = FirstOutputNotifier(&arrived);
    let exec = shell("echo first; while ! [ -e seen ]; do sleep 0.05; done; echo second");
    let confirm = async {
        arrived.notified().await;
        fixture.write("seen", b"").await;
    };
    let (outcome, ()) = tokio::join!(fixture.sandbox.exec(exec, None, &mut first), confirm);
    assert_eq!(
        outcome.expect("the command runs").ended,
        ExecStatus::Exited(0)
    );
}

pub(super) async fn input_is_passed_through(fixture: &ContractSandbox<'_>) {
    let input: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
    let (outcome, output) = fixture.exec(shell("cat").with_stdin(input.clone())).await;
    assert_eq!(outcome.ended, ExecStatus::Exited(0));
    assert_eq!(outcome.stdout_bytes, 1 << 20);
    assert!(output.stdout == input, "the echoed input differs");
}

pub(super) async fn input_may_be_ignored(fixture: &ContractSandbox<'_>) {
    for line in ["true", "exec 0<&-; sleep 0.1", "head -c 1 >/dev/null"] {
        let exec = shell(line).with_stdin(vec![b'x'; 1 << 20]);
        let (outcome, output) = fixture.exec(exec).await;
        assert_eq!(outcome.ended, ExecStatus::Exited(0), "{line}");
        assert_eq!(output, CollectedOutput::default(), "{line}");
    }
}

pub(super) async fn input_ends(fixture: &ContractSandbox<'_>) {
    for (input, expected) in [("", "end\n"), ("text", "textend\n")] {
        let (_, output) = fixture.exec(shell("cat; echo end").with_stdin(input)).await;
        assert_eq!(output.stdout_text(), expected);
    }
}

/// Provides one chunk after another, each after a short delay.
struct DelayedInput(Vec<&'static str>);

#[async_trait]
impl InputSource for DelayedInput {
    async fn next(&mut self) -> Option<Vec<u8>> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.0.pop().map(Into::into)
    }
}

pub(super) async fn input_may_arrive_later(fixture: &ContractSandbox<'_>) {
    let mut output = CollectedOutput::default();
    let exec =
        shell("while read -r line; do echo \"got $line\"; done; echo end").with_stdin("one\n");
    let mut later = DelayedInput(vec!["ree\n", "two\nth"]);
    let outcome = fixture
        .sandbox
        .exec(exec, Some(&mut later), &mut output)
        .await;
    assert_eq!(
        outcome.expect("the command runs").ended,
        ExecStatus::Exited(0)
    );
    assert_eq!(output.stdout_text(), "got one\ngot two\ngot three\nend\n");
}

pub(super) async fn a_flood_is_counted_and_split_into_chunks(fixture: &ContractSandbox<'_>) {
    let size = 100 << 20;
    let mut totals = OutputTotals::default();
    let exec = shell(&format!("head -c {size} /dev/zero; echo >&2; exit 3"));
    let outcome = fixture.sandbox.exec(exec, None, &mut totals).await;
    let outcome = outcome.expect("the command runs");
    assert_eq!(outcome.ended, ExecStatus::Exited(3));
    assert_eq!((outcome.stdout_bytes, outcome.stderr_bytes), (size, 1));
    assert_eq!(totals.bytes, size + 1);
    assert!(
        totals.largest <= MAX_CHUNK_BYTES,
        "a chunk has {} bytes",
        totals.largest
    );
    assert!(outcome.duration < AMPLE_TIMEOUT);
}

pub(super) async fn the_last_bytes_are_never_lost(fixture: &ContractSandbox<'_>) {
    for _ in 0..20 {
        let line = "printf out; printf err >&2; kill -9 $$";
        let (outcome, output) = fixture.exec(shell(line)).await;
        assert_eq!(outcome.ended, ExecStatus::Signalled(9));
        assert_eq!(output.stdout_text() + &output.stderr_text(), "outerr");
    }
}
