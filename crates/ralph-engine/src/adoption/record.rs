//! Records the adoption in the journal.

use ralph_core::event::{Adoption, DeliveryEvent, Event, IterationEvent, RunEvent};
use ralph_core::run::{PauseReason, RunStatus};

use super::commits::AdoptedCommits;
use crate::file_digests;
use crate::journal::{Journal, JournalError};
use crate::store::RunDir;

/// Records the origin and the imported commits, reopens all boxes and pauses the run.
pub fn record_adoption(
    dir: &RunDir,
    journal: &mut Journal,
    adoption: Adoption,
    commits: Option<AdoptedCommits>,
) -> Result<(), JournalError> {
    let notice = |message: String| Event::Run(RunEvent::Notice { message });
    let mut events = vec![
        notice(adoption.to_string()),
        Event::Run(RunEvent::RunAdopted {
            adoption: Box::new(adoption),
        }),
        Event::Iteration(IterationEvent::BoxesTicked { ticked: Vec::new() }),
    ];
    if let Some(AdoptedCommits {
        head,
        commits,
        refused,
    }) = commits
    {
        match refused {
            Some(why) => events.push(notice(format!(
                "the commits of the sandbox were not imported, their changes count as uncommitted: {why}"
            ))),
            None if commits > 0 => {
                events.push(Event::Delivery(DeliveryEvent::CommitsImported { head, commits }));
            }
            None => {}
        }
    }
    journal.append_all(events)?;
    let files = file_digests::files_event(dir, journal.state());
    let paused = Event::Run(RunEvent::StatusChanged {
        status: RunStatus::Paused(PauseReason::Person),
    });
    journal.append_all(files.into_iter().chain([paused]))?;
    Ok(())
}
