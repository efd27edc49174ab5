//! Follows the files of a run, as long as it has readers.
//!
//! The process that works on the run may be another one, so growth is noticed by looking at the files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ralph_core::id::RunId;
use ralph_core::secret::Redactor;
use ralph_engine::store::RunDir;
use tokio::sync::watch;

use super::frames::{OutputEncoder, RecordEncoder};
use super::line_search::{find_head, line_start};
use crate::live::frame_log::FrameLog;
use crate::live::source::CloseReason;
use crate::live::wire::CloseCode;

/// The live output of an iteration.
#[derive(Debug)]
pub(super) struct OutputLog {
    pub(super) iteration: u32,
    pub(super) frames: Arc<FrameLog<OutputEncoder>>,
}

/// The files of a run that grow, shared by all its readers.
#[derive(Debug)]
pub(in crate::live) struct RunTail {
    dir: RunDir,
    run: RunId,
    redactor: Redactor,
    pub(super) journal: Arc<FrameLog<RecordEncoder>>,
    /// The output of the newest iteration; none before its first command.
    output: Mutex<Option<Arc<OutputLog>>>,
    /// The newest iteration that is open.
    iteration: Mutex<Option<u32>>,
    changed: watch::Sender<u64>,
    ended: OnceLock<CloseReason>,
}

/// Whether the files of a run have grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Growth {
    Some,
    None,
}

impl RunTail {
    /// Starts at the end of the files. Blocks.
    pub(in crate::live) fn open(dir: RunDir, run: RunId, redactor: Redactor) -> io::Result<Self> {
        let file = File::open(dir.journal())?;
        let head = find_head(&file)?;
        let encoder = RecordEncoder {
            run: run.clone(),
            redactor: redactor.clone(),
        };
        let tail = Self {
            journal: Arc::new(FrameLog::new(file, encoder, head.end, head.last)),
            iteration: Mutex::new(dir.newest_open_iteration()?),
            dir,
            run,
            redactor,
            output: Mutex::default(),
            changed: watch::Sender::new(0),
            ended: OnceLock::new(),
        };
        tail.find_output(StartAt::LastLine)?;
        Ok(tail)
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns a receiver that changes when the files have grown or the tail has ended.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the output of the newest iteration.
    pub(super) fn output(&self) -> Option<Arc<OutputLog>> {
        lock(&self.output).clone()
    }

    /// Returns why no more frames follow.
    pub(in crate::live) fn ended(&self) -> Option<CloseReason> {
        self.ended.get().copied()
    }

    /// Ends the streams of all readers after what was read so far.
    pub(in crate::live) fn end(&self, code: CloseCode, reason: &'static str) {
        // The first reason counts.
        let _already_ended = self.ended.set((code, reason));
        self.publish();
    }

    /// Encodes what the files have gained. Blocks.
    pub(in crate::live) fn poll(&self) -> io::Result<Growth> {
        let Some(length) = self.journal_length()? else {
            return Ok(Growth::None);
        };
        let mut growth = Growth::None;
        let mut grown = || {
            growth = Growth::Some;
            self.publish();
        };
        // The output of a command is written before the record of its end. So it is published before,
        // too, if the length of the journal is the older one.
        if let Some(output) = self.output() {
            output.frames.follow(u64::MAX, |_| grown())?;
        }
        let mut has_records = false;
        self.journal.follow(length, |_| {
            has_records = true;
            grown();
        })?;
        // The directory of an iteration may appear a moment after its record.
        if has_records || lock(&self.iteration).is_none() {
            let newest = self.dir.newest_open_iteration()?;
            *lock(&self.iteration) = newest;
        }
        if self.find_output(StartAt::Beginning)?
            && let Some(output) = self.output()
        {
            output.frames.follow(u64::MAX, |_| grown())?;
        }
        Ok(growth)
    }

    /// Forgets encoded frames that no client will need soon.
    pub(in crate::live) fn forget(&self) {
        self.journal.forget();
        if let Some(output) = self.output() {
            output.frames.forget();
        }
    }

    /// Returns the length of the journal; none if it is gone or another file, which ends the streams.
    fn journal_length(&self) -> io::Result<Option<u64>> {
        let known = self.journal.file().metadata()?;
        let (end, _) = self.journal.head();
        match fs::metadata(self.dir.journal()) {
            Ok(found) if is_same(&known, &found) && found.len() >= end => Ok(Some(found.len())),
            Ok(_) => {
                self.end(CloseCode::GoingAway, "the journal was replaced");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.end(CloseCode::NoSuchRun, "the run was removed");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the output of the newest iteration if it is another file than the one that is read, or was
    /// truncated. Returns whether it did.
    fn find_output(&self, start: StartAt) -> io::Result<bool> {
        let Some(iteration) = *lock(&self.iteration) else {
            return Ok(false);
        };
        let path = self.dir.live_output(iteration);
        if let Some(output) = self.output()
            && let Ok(found) = fs::metadata(&path)
        {
            let (end, _) = output.frames.head();
            if is_same(&output.frames.file().metadata()?, &found) && found.len() >= end {
                return Ok(false);
            }
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let end = match start {
            StartAt::Beginning => 0,
            StartAt::LastLine => line_start(&file, file.metadata()?.len())?,
        };
        let encoder = OutputEncoder {
            run: self.run.clone(),
            iteration,
            redactor: self.redactor.clone(),
        };
        *lock(&self.output) = Some(Arc::new(OutputLog {
            iteration,
            frames: Arc::new(FrameLog::new(file, encoder, end, 0)),
        }));
        Ok(true)
    }

    fn publish(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

#[derive(Clone, Copy)]
enum StartAt {
    Beginning,
    LastLine,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_same(known: &fs::Metadata, found: &fs::Metadata) -> bool {
    (known.dev(), known.ino()) == (found.dev(), found.ino())
}
