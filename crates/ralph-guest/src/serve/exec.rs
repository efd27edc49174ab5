//! Runs a command for the host.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal as ProcessSignal, kill_process_group};
use tokio::time::Instant;

use super::guest::Guest;
use crate::best_effort;
use crate::command::{
    self, CHUNK_BYTES, CommandBounds, CommandEnd, CommandInputSource, CommandMark, CommandOutcome,
    InputMode, Invocation, Marking, ProcessTree, SpawnOptions,
};
use crate::wire::{
    ExecRequest, Flow, GuestFailure, GuestReply, GuestStream, SignalRequest, StreamData,
    StreamMessages, StreamSender,
};

/// Runs a command and sends its output and outcome. When the host closes the stream, the whole
/// command is killed.
pub(super) async fn exec(guest: &Guest, request: ExecRequest, stream: GuestStream) {
    let started = Instant::now();
    let before = guest.cgroup.counters();
    let GuestStream {
        sender,
        mut messages,
        data,
    } = stream;
    let input = if request.input {
        InputMode::Piped
    } else {
        InputMode::Null
    };
    let invocation = Invocation::new(request.program, input, Marking::Inherited);
    let tree = match start_command(guest, &invocation, &request.cwd, &request.env) {
        Ok(tree) => tree,
        Err(reply) => return sender.send_message(&reply),
    };
    let leader = tree.leader();
    prefer_for_oom_kill(leader);
    let in_use = guest
        .memory
        .as_ref()
        .map(|memory| (memory, memory.begin_use()));
    let bounds = CommandBounds {
        started,
        input: WireInput(data),
        timeout: Duration::from_millis(request.timeout_ms),
        output_limit: request.output_limit,
        watchdog: guest.disk.wait_until_exceeded(),
    };
    let mut output = WireOutput(&sender);
    let supervised = command::supervise(tree, bounds, &mut output);
    let reply = tokio::select! {
        outcome = supervised => Some(match outcome {
            Ok(outcome) => {
                let outcome = guest.cgroup.counters().apply_to(outcome, before);
                GuestReply::Ended(explain_disk_limit(guest, outcome, &sender))
            }
            Err(error) => GuestReply::Failed(error.into()),
        }),
        () = forward_signals(&mut messages, leader) => None,
    };
    // Before the reply, because the next command may start after it.
    if let Some((memory, in_use)) = in_use {
        memory.end_use(in_use).await;
    }
    if let Some(reply) = reply {
        sender.send_message(&reply);
    }
}

/// Adds the reason to the standard error of a command that was killed because it filled the disk.
fn explain_disk_limit(
    guest: &Guest,
    mut outcome: CommandOutcome,
    sender: &StreamSender,
) -> CommandOutcome {
    let message = guest.disk.limit_message();
    if let Some(message) = message.filter(|_| outcome.ended == CommandEnd::DiskLimit) {
        outcome.stderr_bytes += message.len() as u64;
        sender.send_data(Flow::Side, message.into_bytes());
    }
    outcome
}

fn start_command(
    guest: &Guest,
    invocation: &Invocation,
    cwd: &str,
    env: &BTreeMap<String, String>,
) -> Result<ProcessTree, GuestReply> {
    let failed = |refusal| GuestReply::Failed(GuestFailure::from(refusal));
    guest.dir.ensure_layout().map_err(failed)?;
    let directory = guest.dir.open_directory(cwd.as_ref()).map_err(failed)?;
    let mark = CommandMark::next_lower();
    let search_path = guest
        .image_env
        .get("PATH")
        .map_or(DEFAULT_PATH, String::as_str);
    let variables = command::command_environment(
        search_path.as_ref(),
        &guest.root,
        (guest.name, mark),
        [&guest.image_env, env, &BTreeMap::new()],
    );
    let path: PathBuf = guest.root.join(cwd);
    let options = SpawnOptions {
        invocation,
        directory: (&directory, &path),
        variables: &variables,
        user: guest.user,
        setsid: None,
        marking: Marking::Inherited,
    };
    options.spawn(mark).map_err(|error| {
        if error.kind() == ErrorKind::PermissionDenied && !guest.may_enter(&directory) {
            return GuestReply::Failed(error.into());
        }
        GuestReply::NotStarted(error.into())
    })
}

/// Makes the kernel kill commands before the guest when memory runs out. Their children inherit it.
fn prefer_for_oom_kill(leader: Pid) {
    let file = format!("/proc/{}/oom_score_adj", leader.as_raw_pid());
    // Without it the kernel chooses by size, and the guest is small.
    best_effort(std::fs::write(file, "500"));
}

/// The search path if the image does not set one.
pub(super) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Forwards signals until the host closes the stream.
async fn forward_signals(messages: &mut StreamMessages, leader: Pid) {
    while let Some(message) = messages.next().await {
        // The host sends nothing else; a request that cannot be read names no signal.
        let Ok(SignalRequest { signal }) = serde_json::from_slice(&message) else {
            continue;
        };
        if let Some(signal) = ProcessSignal::from_named_raw(signal) {
            // The group may have ended.
            best_effort(kill_process_group(leader, signal));
        }
    }
}

/// Reads the input of a command from the wire.
struct WireInput(StreamData);

impl CommandInputSource for WireInput {
    async fn next_chunk(&mut self) -> Option<Vec<u8>> {
        self.0.next().await.map(|(_, bytes)| bytes)
    }
}

/// Writes the output of a command to the wire.
struct WireOutput<'a>(&'a StreamSender);

impl command::CommandOutputSink for WireOutput<'_> {
    fn has_room(&self) -> bool {
        self.0.has_room(CHUNK_BYTES)
    }

    async fn wait_for_room(&mut self) {
        self.0.wait_for_room(CHUNK_BYTES).await;
    }

    fn write_chunk(&mut self, stream: command::CommandStream, bytes: &[u8]) {
        let flow = match stream {
            command::CommandStream::Stdout => Flow::Main,
            command::CommandStream::Stderr => Flow::Side,
        };
        self.0.send_data(flow, bytes.to_vec());
    }
}
