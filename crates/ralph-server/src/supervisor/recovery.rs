//! Continues the runs of the last server.
//!
//! A run whose opening coincided with the end of the last two servers may be the cause, so such runs are
//! opened one at a time and after the others. After the third time the run is paused.

use std::time::Duration;

use ralph_app::AppError;
use ralph_app::runs::continues_unattended;

use super::pool_supervisor::Supervisor;
use super::registry::StoredRun;
use super::run_work::{quarantine, spawn_recovered, spawn_thread};

/// The number of crashes from which a run is opened alone.
const SUSPECT_CRASHES: u32 = 2;
/// The number of crashes after which a run is paused.
const MAX_CRASHES: u32 = 3;
/// How often the opening of a suspected run is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Continues the runs of the last server, on threads of their own. The order of the queue is kept.
pub(super) fn resume_runs(supervisor: &Supervisor) -> Result<(), AppError> {
    let stored = supervisor.registry().load();
    // Registered before the first write of the file, which would otherwise forget the others.
    let mut kept = Vec::new();
    for stored in stored {
        if supervisor.registry().adopt(&stored) {
            kept.push(stored);
        } else {
            tracing::debug!(run = %stored.run, "the run is registered already");
        }
    }
    let supervisor = supervisor.clone();
    spawn_thread("recovery", move || {
        let mut suspects = Vec::new();
        for stored in kept {
            match judge(&stored, &supervisor) {
                Verdict::Continue => open(&supervisor, &stored),
                Verdict::Suspect => suspects.push(stored),
                Verdict::Pause => {
                    quarantine(&stored.run, stored.crashes(), supervisor.app());
                    supervisor.registry().finish(&stored.run, false);
                }
                Verdict::Forget => supervisor.registry().finish(&stored.run, false),
            }
        }
        suspects.sort_by_key(StoredRun::crashes);
        for suspect in suspects {
            open(&supervisor, &suspect);
            while !supervisor.registry().is_opened(&suspect.run) && !supervisor.is_stopping() {
                std::thread::sleep(CHECK_INTERVAL);
            }
        }
    })
}

/// What happens to a run of the last server.
enum Verdict {
    Continue,
    /// It continues after the others.
    Suspect,
    /// It is paused, because it crashes the server.
    Pause,
    /// It waits for the user or has ended.
    Forget,
}

fn judge(stored: &StoredRun, supervisor: &Supervisor) -> Verdict {
    let state = supervisor.app().state_dir();
    let state = state.and_then(|state| Ok(state.run(&stored.run).state()?));
    match state {
        Ok(state) if !continues_unattended(&state) => Verdict::Forget,
        Ok(_) if stored.crashes() >= MAX_CRASHES => Verdict::Pause,
        Ok(_) if stored.crashes() >= SUSPECT_CRASHES => Verdict::Suspect,
        Ok(_) => Verdict::Continue,
        Err(error) => {
            tracing::warn!(run = %stored.run, %error, "the run of the last server cannot continue");
            Verdict::Forget
        }
    }
}

fn open(supervisor: &Supervisor, stored: &StoredRun) {
    let slot = supervisor.enqueue(&stored.run);
    let spawned = spawn_recovered(supervisor.clone(), stored.run.clone(), slot);
    if let Err(error) = spawned {
        tracing::error!(run = %stored.run, %error, "the run cannot continue");
    }
}
