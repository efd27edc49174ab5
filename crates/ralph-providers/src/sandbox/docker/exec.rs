//! Runs a command in a Docker sandbox.

use std::time::Duration;

use ralph_core::ports::{Exec, ExecOutcome, ExecProgram, InputSource, OutputSink, SandboxError};
use ralph_guest::command::{self, CommandInputSource as _};
use ralph_guest::files::ConfinedFileError;
use ralph_guest::wire::{
    ExecRequest, Flow, GuestReply, GuestRequest, GuestStream, OpenStreamError, StreamData,
    StreamMessages, StreamSender,
};
use tokio::time::Instant;

use super::recovery::ConnectionFailure;
use super::sandbox::DockerSandbox;
use crate::logged::logged;
use crate::sandbox::convert::{self, CommandInput};

/// Time for the guest to report a timeout: it asks a command to end before it kills it.
const TIMEOUT_GRACE: Duration = Duration::from_secs(15);

/// Caps timeouts, so that the deadline cannot overflow.
const MAX_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// Runs a command to completion. Dropping the future closes the stream, and the guest kills the
/// command.
pub(super) async fn exec(
    sandbox: &DockerSandbox,
    exec: Exec,
    later: Option<&mut dyn InputSource>,
    output: &mut dyn OutputSink,
) -> Result<ExecOutcome, SandboxError> {
    let started = Instant::now();
    let connection = sandbox.connection().await?;
    let program = program_name(&exec.program);
    let cwd = exec.cwd.to_string();
    let limit = exec.timeout.saturating_add(TIMEOUT_GRACE).min(MAX_TIMEOUT);
    let request = GuestRequest::Exec(ExecRequest {
        program: convert::program(exec.program),
        cwd: cwd.clone(),
        env: sandbox
            .env()
            .iter()
            .chain(&exec.env)
            .map(owned_pair)
            .collect(),
        input: !exec.stdin.is_empty() || later.is_some(),
        timeout_ms: u64::try_from(exec.timeout.as_millis()).unwrap_or(u64::MAX),
        output_limit: exec.output_limit,
    });
    let input = CommandInput::new(exec.stdin, later);
    let failure = match connection.link().open(&request) {
        Ok(stream) => match sandbox
            .frozen()
            .timeout(limit, stream_command(stream, input, output))
            .await
        {
            Ok(Some(reply)) => return into_outcome(reply, program, &cwd, started),
            Ok(None) => ConnectionFailure::Closed,
            Err(_) => ConnectionFailure::Silent,
        },
        Err(OpenStreamError::Closed) => ConnectionFailure::Closed,
        Err(OpenStreamError::TooLong) => {
            // A command line of this length exceeds the limit of any system.
            let source = rustix::io::Errno::TOOBIG.into();
            return Err(SandboxError::Spawn { program, source });
        }
    };
    Err(sandbox.reconnect_after(&connection, failure).await)
}

fn owned_pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

fn program_name(program: &ExecProgram) -> String {
    match program {
        ExecProgram::Shell(_) => "sh".to_owned(),
        ExecProgram::Argv(argv) => argv.first().cloned().unwrap_or_default(),
    }
}

/// Exchanges input and output with a command; `None` if the connection ended first.
async fn stream_command(
    stream: GuestStream,
    input: CommandInput<'_>,
    output: &mut dyn OutputSink,
) -> Option<GuestReply> {
    let GuestStream {
        sender,
        mut messages,
        mut data,
    } = stream;
    let mut feeding = std::pin::pin!(feed(&sender, input));
    let mut is_fed = false;
    let reply = loop {
        tokio::select! {
            biased;
            Some(chunk) = data.next() => forward_chunk(output, &chunk),
            message = next(&mut messages) => break message?,
            () = &mut feeding, if !is_fed => is_fed = true,
        }
    };
    drain(&mut data, output);
    logged("read the reply of a guest", serde_json::from_slice(&reply))
}

async fn next(messages: &mut StreamMessages) -> Option<Vec<u8>> {
    messages.next().await
}

async fn feed(sender: &StreamSender, mut input: CommandInput<'_>) {
    while let Some(bytes) = input.next_chunk().await {
        sender.send_all(Flow::Main, &bytes).await;
    }
    sender.finish();
}

/// Processes output that arrived before the reply but was not read yet.
fn drain(data: &mut StreamData, output: &mut dyn OutputSink) {
    while let Some(chunk) = data.try_next() {
        forward_chunk(output, &chunk);
    }
}

fn forward_chunk(output: &mut dyn OutputSink, (flow, bytes): &(Flow, Vec<u8>)) {
    let stream = match flow {
        Flow::Main => command::CommandStream::Stdout,
        Flow::Side => command::CommandStream::Stderr,
    };
    output.chunk(convert::stream(stream), bytes);
}

fn into_outcome(
    reply: GuestReply,
    program: String,
    cwd: &str,
    started: Instant,
) -> Result<ExecOutcome, SandboxError> {
    match reply {
        GuestReply::Ended(outcome) => Ok(ExecOutcome {
            duration: started.elapsed(),
            ..convert::outcome(outcome)
        }),
        GuestReply::NotStarted(failure) => Err(match ConfinedFileError::from(failure) {
            ConfinedFileError::Io(source) => SandboxError::Spawn { program, source },
            error @ (ConfinedFileError::Escapes
            | ConfinedFileError::NotRegular
            | ConfinedFileError::NotFound) => convert::file_error("start", &program, error),
        }),
        GuestReply::Failed(failure) => Err(convert::file_error("enter", cwd, failure.into())),
        GuestReply::Welcome(_)
        | GuestReply::Done
        | GuestReply::Stat(_)
        | GuestReply::TooLarge { .. } => {
            let source = std::io::Error::other("unexpected reply from the guest");
            Err(convert::io_failure("run", &program, source))
        }
    }
}
