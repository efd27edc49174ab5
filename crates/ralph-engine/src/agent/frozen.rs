//! A paused run with an agent in a sandbox that can be frozen: its session continues after the pause.

use std::time::Duration;

use ralph_core::event::RunEvent;
use ralph_core::ports::{Clock, Freezer};
use ralph_core::run::{PauseReason, RunStatus};

use crate::controls::{Controls, PendingRequest, TimedLine};
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::journal::Journal;
use crate::worker_wait::{enter_status, wait_for_worker};

/// The longest time that a session stays frozen. After it the session ends as in a sandbox that
/// cannot be frozen: by then the provider has dropped the cache of the conversation, and the memory
/// of the container is of use to others.
pub(crate) const FREEZE_LIMIT: Duration = Duration::from_mins(30);

/// How often a process checks whether it still owns the run, and whether the time is up.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How a pause of a frozen agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FreezeEnd {
    /// The user resumed the run, and the agent works again.
    Resumed,
    /// The session must end: the time is up, or the sandbox could not be frozen.
    Expired,
}

/// Freezes the agent's sandbox and waits until the user resumes the run. The pause is recorded like
/// any other, so its time does not count. A stop and an interrupt are returned as errors.
pub(super) async fn hold_frozen(
    journal: &mut Journal,
    control: &mut Controls,
    freezer: &dyn Freezer,
    (clock, limit): (&dyn Clock, Duration),
) -> Result<FreezeEnd, RunError> {
    if let Err(error) = freezer.freeze().await {
        tracing::warn!(%error, "cannot freeze the sandbox");
        return Ok(FreezeEnd::Expired);
    }
    let before = journal.state().status.clone();
    control.unlogged.push(TimedLine {
        at: clock.now(),
        text: "paused by the user: the agent is frozen".to_owned(),
    });
    let paused = RunStatus::Paused(PauseReason::Person);
    let held = match enter_status(journal, control, paused).await {
        Ok(()) => wait_for_resume(journal, control, clock, limit).await,
        Err(error) => Err(error),
    };
    // However the pause ends: a frozen process cannot be ended.
    let thawed = freezer.thaw().await;
    let end = held?;
    match end {
        FreezeEnd::Resumed => enter_status(journal, control, before).await?,
        // The session ends and the pause continues, so it needs no worker.
        FreezeEnd::Expired => drop(journal.append(RunEvent::StatusChanged { status: before })?),
    }
    thawed?;
    let line = match end {
        FreezeEnd::Resumed => "resumed by the user: the agent continues",
        FreezeEnd::Expired => "the agent was frozen for too long: its session ends",
    };
    control.unlogged.push(TimedLine {
        at: clock.now(),
        text: line.to_owned(),
    });
    Ok(end)
}

async fn wait_for_resume(
    journal: &mut Journal,
    control: &mut Controls,
    clock: &dyn Clock,
    limit: Duration,
) -> Result<FreezeEnd, RunError> {
    let end = clock.monotonic().saturating_add(limit);
    while control.pending == Some(PendingRequest::Pause) {
        let left = end.saturating_sub(clock.monotonic());
        if left.is_zero() {
            return Ok(FreezeEnd::Expired);
        }
        let next = tokio::time::timeout(left.min(CHECK_INTERVAL), control.next());
        if let Ok(event) = next.await {
            handle_control_event(journal, control, event)?;
        } else {
            journal.check_owner()?;
            journal.report_suspension()?;
        }
    }
    // The agent works as soon as it is thawed.
    wait_for_worker(journal, control).await?;
    Ok(FreezeEnd::Resumed)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use ralph_core::ports::{ProviderProblem, SandboxError};
    use ralph_core::run::Command;
    use serde_json::Value;

    use super::*;
    use crate::mailbox::Mailbox;
    use crate::run_fixture::RunFixture;

    /// Records its calls; fails to freeze if it cannot.
    struct RecordingFreezer {
        calls: Mutex<Vec<&'static str>>,
        can_freeze: bool,
    }

    impl RecordingFreezer {
        fn new(can_freeze: bool) -> Self {
            Self {
                calls: Mutex::default(),
                can_freeze,
            }
        }

        fn calls(&self) -> Vec<&'static str> {
            self.calls.lock().unwrap().clone()
        }
    }

    #[async_trait]
    impl Freezer for RecordingFreezer {
        async fn freeze(&self) -> Result<(), SandboxError> {
            self.calls.lock().unwrap().push("freeze");
            if self.can_freeze {
                return Ok(());
            }
            Err(SandboxError::Provider(ProviderProblem {
                what: "no freezer".into(),
                fix: "none".into(),
            }))
        }

        async fn thaw(&self) -> Result<(), SandboxError> {
            self.calls.lock().unwrap().push("thaw");
            Ok(())
        }
    }

    /// Pauses a run with these commands in its mailbox.
    async fn pause(
        freezer: &RecordingFreezer,
        commands: &[Command],
        limit: Duration,
    ) -> (Result<FreezeEnd, RunError>, Vec<Value>) {
        let mut fixture = RunFixture::new("").await;
        let mailbox = Mailbox::new(fixture.run.recorder.dir.commands());
        for (number, command) in commands.iter().enumerate() {
            mailbox.send(&format!("{number}"), command.clone()).unwrap();
        }
        let run = &mut fixture.run;
        run.controls.pending = Some(PendingRequest::Pause);
        let clock = run.recorder.clock.clone();
        let held = hold_frozen(
            &mut run.recorder.journal,
            &mut run.controls,
            freezer,
            (&*clock, limit),
        )
        .await;
        let statuses = fixture.events_of(&["status_changed"]);
        let statuses = statuses.iter().map(|event| event["status"].clone());
        (held, statuses.collect())
    }

    #[tokio::test]
    async fn a_frozen_agent_continues_when_the_run_is_resumed() {
        let freezer = RecordingFreezer::new(true);
        let (held, statuses) = Box::pin(pause(&freezer, &[Command::Resume], FREEZE_LIMIT)).await;
        assert_eq!(held.unwrap(), FreezeEnd::Resumed);
        assert_eq!(freezer.calls(), ["freeze", "thaw"]);
        assert_eq!(statuses[statuses.len() - 2..], ["paused", "running"]);
    }

    #[tokio::test]
    async fn a_session_ends_after_the_limit_or_without_a_freezer() {
        let freezer = RecordingFreezer::new(true);
        let (held, statuses) = Box::pin(pause(&freezer, &[], Duration::from_millis(300))).await;
        assert_eq!(held.unwrap(), FreezeEnd::Expired);
        assert_eq!(freezer.calls(), ["freeze", "thaw"]);
        assert_eq!(statuses[statuses.len() - 2..], ["paused", "running"]);
        let freezer = RecordingFreezer::new(false);
        let (held, statuses) = Box::pin(pause(&freezer, &[], FREEZE_LIMIT)).await;
        assert_eq!(held.unwrap(), FreezeEnd::Expired);
        assert_eq!(freezer.calls(), ["freeze"]);
        assert!(!statuses.contains(&"paused".into()), "{statuses:?}");
    }

    #[tokio::test]
    async fn a_stopped_run_thaws_its_agent() {
        let freezer = RecordingFreezer::new(true);
        let (held, _) = Box::pin(pause(&freezer, &[Command::Stop], FREEZE_LIMIT)).await;
        assert!(matches!(held, Err(RunError::Stopped)), "{held:?}");
        assert_eq!(freezer.calls(), ["freeze", "thaw"]);
    }
}
