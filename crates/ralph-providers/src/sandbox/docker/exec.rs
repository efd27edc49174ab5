//! Runs a command in a Docker sandbox.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecOutcome, InputSource, OutputSink, Program, SandboxError};
use ralph_guest::command::{self, Source as _};
use ralph_guest::files::Refusal;
use ralph_guest::running_time::{self, timeout_at};
use ralph_guest::wire::{
    Data, ExecRequest, Flow, Messages, NotOpened, Reply, Request, Sender, Stream,
};
use tokio::time::Instant;

use super::sandbox::DockerSandbox;
use super::trouble::Symptom;
use crate::sandbox::convert::{self, Fed};

/// How long the guest may take to tell of a timeout: it asks a command to end before it kills it.
const AFTER_THE_TIMEOUT: Duration = Duration::from_secs(15);

/// Longer than any command is waited for.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Runs a command to its end. Dropping the future closes the stream, and the guest kills the command.
pub(super) async fn exec(
    sandbox: &DockerSandbox,
    exec: Exec,
    later: Option<&mut dyn InputSource>,
    output: &mut dyn OutputSink,
) -> Result<ExecOutcome, SandboxError> {
    let started = Instant::now();
    let line = sandbox.line().await?;
    let what = program_of(&exec.program);
    let cwd = exec.cwd.to_string();
    let patience = exec.timeout.saturating_add(AFTER_THE_TIMEOUT).min(FOREVER);
    let deadline = running_time::now() + patience;
    let request = Request::Exec(ExecRequest {
        program: convert::program(exec.program),
        cwd: cwd.clone(),
        env: sandbox.env().iter().chain(&exec.env).map(own).collect(),
        input: !exec.stdin.is_empty() || later.is_some(),
        timeout_ms: u64::try_from(exec.timeout.as_millis()).unwrap_or(u64::MAX),
        output_limit: exec.output_limit,
    });
    let input = Fed::new(exec.stdin, later);
    let symptom = match line.link().open(&request) {
        Ok(stream) => match timeout_at(deadline, attend(stream, input, output)).await {
            Ok(Some(reply)) => return judged(reply, what, &cwd, started),
            Ok(None) => Symptom::HungUp,
            Err(_) => Symptom::Silent,
        },
        Err(NotOpened::Over) => Symptom::HungUp,
        Err(NotOpened::TooLong) => {
            // Longer than anything that a system would start.
            let source = rustix::io::Errno::TOOBIG.into();
            return Err(SandboxError::Spawn {
                program: what,
                source,
            });
        }
    };
    Err(sandbox.interrupted(&line, symptom).await)
}

fn own((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

fn program_of(program: &Program) -> String {
    match program {
        Program::Shell(_) => "sh".to_owned(),
        Program::Argv(argv) => argv.first().cloned().unwrap_or_default(),
    }
}

/// Feeds a command and takes its output; none if the line ended before the command.
async fn attend(stream: Stream, input: Fed<'_>, output: &mut dyn OutputSink) -> Option<Reply> {
    let Stream {
        sender,
        mut messages,
        mut data,
    } = stream;
    let mut fed = std::pin::pin!(feed(&sender, input));
    let mut is_fed = false;
    let reply = loop {
        tokio::select! {
            biased;
            Some(piece) = data.next() => hand_on(output, &piece),
            message = next(&mut messages) => break message?,
            () = &mut fed, if !is_fed => is_fed = true,
        }
    };
    drain(&mut data, output);
    serde_json::from_slice(&reply).ok()
}

async fn next(messages: &mut Messages) -> Option<Vec<u8>> {
    messages.next().await
}

async fn feed(sender: &Sender, mut input: Fed<'_>) {
    while let Some(bytes) = input.next().await {
        sender.all(Flow::Main, &bytes).await;
    }
    sender.end();
}

/// Takes what came before the answer but was not looked at yet.
fn drain(data: &mut Data, output: &mut dyn OutputSink) {
    while let Some(piece) = data.ready() {
        hand_on(output, &piece);
    }
}

fn hand_on(output: &mut dyn OutputSink, (flow, bytes): &(Flow, Vec<u8>)) {
    let stream = match flow {
        Flow::Main => command::Stream::Stdout,
        Flow::Side => command::Stream::Stderr,
    };
    output.chunk(convert::stream(stream), bytes);
}

fn judged(
    reply: Reply,
    program: String,
    cwd: &str,
    started: Instant,
) -> Result<ExecOutcome, SandboxError> {
    match reply {
        Reply::Ended(outcome) => Ok(ExecOutcome {
            duration: started.elapsed(),
            ..convert::outcome(outcome)
        }),
        Reply::NotStarted(failure) => Err(match Refusal::from(failure) {
            Refusal::Io(source) => SandboxError::Spawn { program, source },
            refusal @ (Refusal::Escapes | Refusal::NotRegular | Refusal::NotFound) => {
                convert::refused("start", &program, refusal)
            }
        }),
        Reply::Failed(failure) => Err(convert::refused("enter", cwd, failure.into())),
        Reply::Welcome(_) | Reply::Done | Reply::Stat(_) | Reply::TooLarge { .. } => {
            let source = std::io::Error::other("the guest answered something else");
            Err(convert::failed("run", &program, source))
        }
    }
}
