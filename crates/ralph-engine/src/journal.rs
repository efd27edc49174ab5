//! The journal: a run's events, numbered, chained by hash, and synced before they are published.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ralph_core::event::{Event, JournalRecord, RECORD_VERSION, RunEvent};
use ralph_core::id::Digest;
use ralph_core::plan::RunPlan;
use ralph_core::ports::{Clock, SuspendedTime};
use ralph_core::run::RunStatus;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use tokio::sync::watch;

use crate::durable::{self, AppendLog, StoreError, SyncMode};
use crate::redaction;
use crate::run_lock::{JournalEnd, RunLock};
use crate::store::RunDir;
use crate::torn_lines;

mod format;
mod positions;
mod seal;

pub use format::{RALPH_VERSION, RunOutline, WorkingRepository};
pub use positions::{JournalPosition, offset_of_record, read_after};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The first record does not create a run.
    #[error("journal `{}` contains no run", path.display())]
    Empty { path: PathBuf },
    /// A record is damaged.
    #[error("journal `{}` is damaged at line {line}: {why}", path.display())]
    Damaged {
        path: PathBuf,
        line: usize,
        why: String,
    },
    /// A newer version of ralph wrote it, in a format unknown to this version.
    #[error(
        "run `{run}` was written by {}, this is ralph {RALPH_VERSION} (format {RECORD_VERSION})",
        format::written_by(ralph.as_deref(), *format)
    )]
    Newer {
        run: String,
        format: u64,
        /// The version of that ralph, if the journal records it.
        ralph: Option<String>,
    },
    /// A record of the known format contains an unknown event or value.
    #[error("journal `{}` has an {what} at line {line}, this is ralph {RALPH_VERSION}", path.display())]
    Unknown {
        path: PathBuf,
        line: usize,
        what: String,
    },
    /// Another process owns the run.
    #[error("run `{run}` is being worked on by another process{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Held {
        run: String,
        /// The other process, if it is known.
        pid: Option<u32>,
    },
    /// The journal is not the file that this process wrote.
    #[error("run `{run}` {}", lost_to(*pid))]
    Lost {
        run: String,
        /// The new owner of the run, if there is one.
        pid: Option<u32>,
    },
}

/// Describes the owner of a run that this process lost.
pub fn lost_to(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("was taken over by pid {pid}"),
        None => "no longer belongs to this process".to_owned(),
    }
}

/// A run's journal, open for writing. The process that has it open owns the run.
pub struct Journal {
    log: AppendLog,
    last_digest: Digest,
    state: RunState,
    active_time: ActiveTime,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    latest: watch::Sender<u64>,
    lock: RunLock,
    end: JournalEnd,
    /// The suspended time of this process that is in the journal.
    reported_suspension: SuspendedTime,
}

/// Counts the active time of a run, without pauses.
#[derive(Debug)]
struct ActiveTime {
    before: Duration,
    since: Option<Duration>,
}

impl ActiveTime {
    fn elapsed(&self, now: Duration) -> Duration {
        self.before
            + self
                .since
                .map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    fn update(&mut self, status: &RunStatus, now: Duration) {
        match (status.is_active(), self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(_)) => self.stop(now),
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn stop(&mut self, now: Duration) {
        self.before = self.elapsed(now);
        self.since = None;
    }
}

impl Journal {
    /// Creates the journal of a new run.
    pub fn create(
        dir: &RunDir,
        plan: RunPlan,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Result<Self, JournalError> {
        dir.create()?;
        let run = plan.run.to_string();
        let held = || JournalError::Held {
            run: run.clone(),
            pid: None,
        };
        let mut lock = dir.lock()?.ok_or_else(held)?;
        let record = JournalRecord {
            v: RECORD_VERSION,
            seq: 1,
            prev: Digest::compute(b""),
            at: clock.now(),
            active_ms: 0,
            epoch: 0,
            event: Event::Run(RunEvent::RunCreated {
                plan: Box::new(plan),
            }),
        };
        let line = redaction::to_line(&redactor, &record, &dir.journal())?;
        if dir.journal().exists() {
            let exists = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(StoreError::when("create", &dir.journal())(exists).into());
        }
        dir.record_creation()?;
        // The first record is written atomically: without one, the run does not exist.
        durable::write(&dir.journal(), line.as_bytes())?;
        if !lock.lock_journal()? {
            return Err(held());
        }
        let state = RunState::from_first_record(&record).ok_or_else(|| JournalError::Empty {
            path: dir.journal(),
        })?;
        Self::from_parts(
            dir,
            state,
            Digest::compute(line.trim_end().as_bytes()),
            clock,
            redactor,
            lock,
        )
    }

    /// Opens an existing journal and moves a torn last record aside. An unreadable journal stays
    /// unchanged.
    pub fn open(
        dir: &RunDir,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Result<Self, JournalError> {
        read_chain(&dir.journal())?;
        let name = dir
            .root()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(lock) = dir.lock()? else {
            let pid = dir.state().map_or(None, |state| state.pid);
            return Err(JournalError::Held { run: name, pid });
        };
        torn_lines::repair_tail(&dir.journal(), &dir.recovered())?;
        let (records, last) = read_chain(&dir.journal())?;
        let state = RunState::from_records(&records).ok_or_else(|| JournalError::Empty {
            path: dir.journal(),
        })?;
        Self::from_parts(dir, state, last, clock, redactor, lock)
    }

    fn from_parts(
        dir: &RunDir,
        state: RunState,
        last: Digest,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        lock: RunLock,
    ) -> Result<Self, JournalError> {
        let mut log = AppendLog::open(dir.journal())?;
        // The last process may have crashed before its sync; the seal must not be ahead of the
        // journal.
        log.sync()?;
        let end = lock.journal_end(log.length())?;
        let reported = clock.suspended_time();
        let mut active = ActiveTime {
            before: state.active,
            since: None,
        };
        active.update(&state.status, clock.monotonic());
        let latest = watch::Sender::new(state.seq);
        let journal = Self {
            log,
            last_digest: last,
            state,
            active_time: active,
            clock,
            redactor,
            latest,
            lock,
            end,
            reported_suspension: reported,
        };
        journal.seal()?;
        Ok(journal)
    }

    /// Appends one event and syncs it.
    pub fn append(&mut self, event: impl Into<Event>) -> Result<u64, JournalError> {
        self.append_all([event.into()])
    }

    /// Appends several events with one sync. Returns the number of the last.
    pub fn append_all(
        &mut self,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<u64, JournalError> {
        self.check_owner()?;
        let suspension = self.unreported_suspension();
        let mut text = String::new();
        let mut records = Vec::new();
        let mut last = self.last_digest.clone();
        let mut epoch = self.state.epoch;
        let now = self.clock.monotonic();
        for (offset, event) in suspension.into_iter().chain(events).enumerate() {
            if let Event::Run(RunEvent::StatusChanged { status }) = &event {
                self.active_time.update(status, now);
            }
            if let Event::Run(RunEvent::RunOpened { epoch: opened, .. }) = &event {
                epoch = *opened;
            }
            let record = JournalRecord {
                v: RECORD_VERSION,
                seq: self.state.seq + 1 + offset as u64,
                prev: last,
                at: self.clock.now(),
                active_ms: millis(self.active_time.elapsed(now)),
                epoch,
                event,
            };
            let line = redaction::to_line(&self.redactor, &record, self.log.path())?;
            last = Digest::compute(line.trim_end().as_bytes());
            text.push_str(&line);
            records.push(record);
        }
        self.log.append(text.as_bytes(), SyncMode::Now)?;
        self.end.append(text.as_bytes(), self.log.length());
        self.last_digest = last;
        for record in &records {
            self.state.apply(record);
        }
        self.latest.send_replace(self.state.seq);
        Ok(self.state.seq)
    }

    /// Fails if this process no longer owns the run: its journal was replaced, removed or written
    /// by another process. Nothing must be written then, because the run may have another owner.
    pub fn check_owner(&self) -> Result<(), JournalError> {
        if self.lock.is_intact(&self.end) {
            return Ok(());
        }
        let path = self.log.path();
        let state = read(path).map_or(None, |records| RunState::from_records(&records));
        let owner = state.and_then(|state| state.pid);
        Err(JournalError::Lost {
            run: self.state.plan.run.to_string(),
            pid: owner.filter(|pid| *pid != std::process::id()),
        })
    }

    /// Records that this process was suspended or the machine slept, if that is not recorded yet.
    pub(crate) fn report_suspension(&mut self) -> Result<(), JournalError> {
        match self.unreported_suspension() {
            Some(notice) => self.append(notice).map(drop),
            None => Ok(()),
        }
    }

    fn unreported_suspension(&mut self) -> Option<Event> {
        let suspension = self.clock.suspended_time();
        let message = suspension.since(self.reported_suspension).describe()?;
        self.reported_suspension = suspension;
        Some(Event::Run(RunEvent::Notice { message }))
    }

    /// Returns the current state of the run.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Returns the digest of the last record.
    pub(crate) fn last_digest(&self) -> &Digest {
        &self.last_digest
    }

    /// Returns the active time of the run until now.
    pub fn active(&self) -> Duration {
        self.active_time.elapsed(self.clock.monotonic())
    }

    /// Stops counting active time, for a run that waits for a worker.
    pub(crate) fn stop_active_time(&mut self) {
        self.active_time.stop(self.clock.monotonic());
    }

    /// Counts active time again if the status does.
    pub(crate) fn start_active_time(&mut self) {
        self.active_time
            .update(&self.state.status, self.clock.monotonic());
    }

    /// Returns a receiver of the newest record's number; readers then read the file.
    pub fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }
}

/// Returns a duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the records of a journal with a valid chain; a torn last line is left out.
pub fn read(path: &Path) -> Result<Vec<JournalRecord>, JournalError> {
    read_chain(path).map(|(records, _)| records)
}

/// Returns the digest of the last record of a journal with a valid chain.
pub(crate) fn last_digest(path: &Path) -> Result<Digest, JournalError> {
    read_chain(path).map(|(_, last)| last)
}

/// Returns the records from an offset in the file, and the offset of the next record.
pub fn read_from(path: &Path, offset: u64) -> Result<(Vec<JournalRecord>, u64), JournalError> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = fs::File::open(path).map_err(StoreError::when("open", path))?;
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.read_to_end(&mut text))
        .map_err(StoreError::when("read", path))?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let records = text[..whole]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(index, line)| format::parse(path, index, line))
        .collect::<Result<_, _>>()?;
    Ok((records, offset + whole as u64))
}

/// Refuses a journal that a newer ralph wrote. Damage is not an error here.
pub fn refuse_newer(path: &Path) -> Result<(), JournalError> {
    match read_chain(path) {
        Err(error @ (JournalError::Newer { .. } | JournalError::Unknown { .. })) => Err(error),
        Ok(_)
        | Err(
            JournalError::Store(_)
            | JournalError::Empty { .. }
            | JournalError::Damaged { .. }
            | JournalError::Held { .. }
            | JournalError::Lost { .. },
        ) => Ok(()),
    }
}

fn read_chain(path: &Path) -> Result<(Vec<JournalRecord>, Digest), JournalError> {
    let bytes = fs::read(path).map_err(StoreError::when("read", path))?;
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let mut last = Digest::compute(b"");
    let mut records: Vec<JournalRecord> = Vec::new();
    let mut lines = bytes[..whole]
        .split(|byte| *byte == b'\n')
        .enumerate()
        .peekable();
    while let Some((index, line)) = lines.next() {
        if line.is_empty() && index > 0 {
            continue;
        }
        let record = format::parse(path, index, line).map_err(|error| {
            let next = lines.peek().map(|(_, next)| *next);
            let next = next.filter(|next| !next.is_empty());
            format::classify_unreadable(error, path, (index, line), next)
        })?;
        let expected = records.len() as u64 + 1;
        if record.seq != expected || record.prev != last {
            let why = format!(
                "record {} does not follow record {}",
                record.seq,
                expected - 1
            );
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                line: index + 1,
                why,
            });
        }
        last = Digest::compute(line);
        records.push(record);
    }
    format::refuse_newer_tail(path, &bytes[whole..])?;
    Ok((records, last))
}

#[cfg(test)]
mod tests;
