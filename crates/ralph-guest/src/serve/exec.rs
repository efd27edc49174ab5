//! Runs a command for the host.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal as ProcessSignal, kill_process_group};
use tokio::time::Instant;

use super::guest::Guest;
use crate::command::{
    self, Bounds, CHUNK_BYTES, Ended, Input, Invocation, Mark, Marking, Outcome, Source, Start,
    Tree,
};
use crate::wire::{Data, ExecRequest, Failure, Flow, Messages, Reply, Sender, Signal, Stream};

/// Runs a command and sends its output, then how it ended. When the host closes the stream, all of
/// the command is killed.
pub(super) async fn exec(guest: &Guest, request: ExecRequest, stream: Stream) {
    let started = Instant::now();
    let before = guest.cgroup.counters();
    let Stream {
        sender,
        mut messages,
        data,
    } = stream;
    let input = if request.input {
        Input::Piped
    } else {
        Input::Nothing
    };
    let invocation = Invocation::new(request.program, input, Marking::AtBirth);
    let tree = match start(guest, &invocation, &request.cwd, &request.env) {
        Ok(tree) => tree,
        Err(reply) => return sender.message(&reply),
    };
    let first = tree.first();
    prefer(first);
    let in_use = guest.memory.as_ref().map(|memory| (memory, memory.enter()));
    let bounds = Bounds {
        started,
        input: Fed(data),
        timeout: Duration::from_millis(request.timeout_ms),
        output_limit: request.output_limit,
        warden: guest.disk.over(),
    };
    let mut outlet = Outlet(&sender);
    let attended = command::attend(tree, bounds, &mut outlet);
    let reply = tokio::select! {
        outcome = attended => Some(match outcome {
            Ok(outcome) => {
                let outcome = guest.cgroup.counters().judge(outcome, before);
                Reply::Ended(explained(guest, outcome, &sender))
            }
            Err(error) => Reply::Failed(error.into()),
        }),
        () = until_closed(&mut messages, first) => None,
    };
    // Before the reply: after it, the next command may begin.
    if let Some((memory, in_use)) = in_use {
        memory.leave(in_use).await;
    }
    if let Some(reply) = reply {
        sender.message(&reply);
    }
}

/// Prints why a command was ended that filled the disk.
fn explained(guest: &Guest, mut outcome: Outcome, sender: &Sender) -> Outcome {
    let complaint = guest.disk.complaint();
    if let Some(complaint) = complaint.filter(|_| outcome.ended == Ended::DiskLimit) {
        outcome.stderr_bytes += complaint.len() as u64;
        sender.data(Flow::Side, complaint.into_bytes());
    }
    outcome
}

fn start(
    guest: &Guest,
    invocation: &Invocation,
    cwd: &str,
    env: &BTreeMap<String, String>,
) -> Result<Tree, Reply> {
    let entering = |refusal| Reply::Failed(Failure::from(refusal));
    guest.place.furnish().map_err(entering)?;
    let directory = guest.place.enter(cwd.as_ref()).map_err(entering)?;
    let mark = Mark::lower();
    let search_path = guest.image.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let variables = command::of_command(
        search_path.as_ref(),
        &guest.root,
        (guest.name, mark),
        [&guest.image, env, &BTreeMap::new()],
    );
    let path: PathBuf = guest.root.join(cwd);
    let start = Start {
        invocation,
        directory: (&directory, &path),
        variables: &variables,
        user: guest.user,
        setsid: None,
        marking: Marking::AtBirth,
    };
    start.tree(mark).map_err(|error| {
        if error.kind() == ErrorKind::PermissionDenied && !guest.may_enter(&directory) {
            return Reply::Failed(error.into());
        }
        Reply::NotStarted(error.into())
    })
}

/// Makes the kernel end commands before the guest when memory runs out. What they start inherits it.
fn prefer(first: Pid) {
    let file = format!("/proc/{}/oom_score_adj", first.as_raw_pid());
    // Without it the kernel chooses by size, and the guest is small.
    std::fs::write(file, "500").ok();
}

/// Where programs are when the image does not say.
pub(super) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Passes signals on until the host closes the stream.
async fn until_closed(messages: &mut Messages, first: Pid) {
    while let Some(message) = messages.next().await {
        let signal = serde_json::from_slice(&message)
            .ok()
            .and_then(|Signal { signal }| ProcessSignal::from_named_raw(signal));
        if let Some(signal) = signal {
            // A group that has ended has nobody to signal.
            kill_process_group(first, signal).ok();
        }
    }
}

/// The input of a command, from the wire.
struct Fed(Data);

impl Source for Fed {
    async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.next().await.map(|(_, bytes)| bytes)
    }
}

/// The output of a command, to the wire.
struct Outlet<'a>(&'a Sender);

impl command::Sink for Outlet<'_> {
    fn has_room(&self) -> bool {
        self.0.has_room(CHUNK_BYTES)
    }

    async fn room(&mut self) {
        self.0.room(CHUNK_BYTES).await;
    }

    fn chunk(&mut self, stream: command::Stream, bytes: &[u8]) {
        let flow = match stream {
            command::Stream::Stdout => Flow::Main,
            command::Stream::Stderr => Flow::Side,
        };
        self.0.data(flow, bytes.to_vec());
    }
}
