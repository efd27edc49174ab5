//! The time during which this process runs.
//!
//! A budget or a timeout must not be used up while the process is stopped (`SIGSTOP`, Ctrl-Z), while
//! its cgroup or virtual machine is frozen, or while the machine sleeps. `CLOCK_MONOTONIC` excludes
//! only the last. A thread therefore samples the clock ten times a second: if the load of the machine
//! does not explain a gap between two samples, the process did not run during the gap.

use crate::available;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest gap that counts as an absence if the kernel reports how long the sampling thread
/// waited for a processor. That part of a gap is load and does not count.
const MIN_GAP: Duration = Duration::from_secs(2);
/// The shortest gap that counts as an absence if the kernel does not report it.
const MIN_UNEXPLAINED_GAP: Duration = Duration::from_secs(5);

/// The time during which this process existed but did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessAbsence {
    /// It was stopped or frozen.
    pub stopped: Duration,
    /// The machine slept.
    pub asleep: Duration,
}

/// The work did not end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTimeout;

/// Returns how long this process has been running since the first call.
pub fn now() -> Duration {
    let sampler = ClockSampler::global();
    sampler.lock_time().at(sampler.start.elapsed())
}

/// Returns how long this process has not been running since the first call of [`now`].
pub fn absence() -> ProcessAbsence {
    ClockSampler::global().lock_time().absence
}

/// Waits until [`now`] has reached a time.
pub async fn sleep_until(time: Duration) {
    loop {
        let left = time.saturating_sub(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// Waits for work to end until [`now`] has reached a time.
pub async fn timeout_at<T>(
    time: Duration,
    work: impl Future<Output = T>,
) -> Result<T, RunningTimeout> {
    tokio::select! {
        biased;
        result = work => Ok(result),
        () = sleep_until(time) => Err(RunningTimeout),
    }
}

/// Waits for work to end for at most this much running time.
pub async fn timeout<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, RunningTimeout> {
    timeout_at(now().saturating_add(limit), work).await
}

/// The thread that samples the clock, and its results.
struct ClockSampler {
    start: Instant,
    time: Mutex<RunningTime>,
}

impl ClockSampler {
    /// Returns the sampler of this process. The first call starts its thread.
    fn global() -> &'static Self {
        static SAMPLER: OnceLock<ClockSampler> = OnceLock::new();
        let mut is_new = false;
        let sampler = SAMPLER.get_or_init(|| {
            is_new = true;
            Self {
                start: Instant::now(),
                time: Mutex::default(),
            }
        });
        if is_new {
            let started = thread::Builder::new()
                .name("running-time".to_owned())
                .spawn(|| sampler.sample_forever());
            // Without a thread all time counts.
            sampler.lock_time().is_sampled = started.is_ok();
        }
        sampler
    }

    fn lock_time(&self) -> MutexGuard<'_, RunningTime> {
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sample_forever(&self) -> ! {
        let schedstat = available(File::open("/proc/thread-self/schedstat"));
        let uptime = available(File::open("/proc/uptime"));
        loop {
            thread::sleep(SAMPLE_INTERVAL);
            let sample = ClockSample {
                monotonic: self.start.elapsed(),
                uptime: uptime.as_ref().and_then(read_uptime),
                queued: schedstat.as_ref().and_then(read_queued),
            };
            self.lock_time().observe(sample);
        }
    }
}

/// Reads the time since the start of the machine, sleep included.
fn read_uptime(file: &File) -> Option<Duration> {
    let seconds = available(read_word(file, 0)?.parse())?;
    available(Duration::try_from_secs_f64(seconds))
}

/// Reads how long a thread has waited for a processor.
fn read_queued(file: &File) -> Option<Duration> {
    Some(Duration::from_nanos(available(
        read_word(file, 1)?.parse(),
    )?))
}

fn read_word(file: &File, index: usize) -> Option<String> {
    let mut bytes = [0; 128];
    let length = available(file.read_at(&mut bytes, 0))?;
    let text = available(std::str::from_utf8(&bytes[..length]))?;
    text.split_whitespace().nth(index).map(str::to_owned)
}

/// The clocks of the kernel at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct ClockSample {
    /// The time since the sampler was created, without the machine's sleep.
    monotonic: Duration,
    /// The time since the machine was started, including its sleep.
    uptime: Option<Duration>,
    /// The total time that the sampling thread has waited for a processor.
    queued: Option<Duration>,
}

/// Adds up the time between samples, without the gaps.
#[derive(Debug, Default)]
struct RunningTime {
    last: ClockSample,
    running: Duration,
    absence: ProcessAbsence,
    is_sampled: bool,
}

impl RunningTime {
    /// Returns the running time at a moment. Of the time since the last sample, at most one interval
    /// counts; the rest counts once the next sample shows that it was not a gap.
    fn at(&self, monotonic: Duration) -> Duration {
        let since = monotonic.saturating_sub(self.last.monotonic);
        self.running
            + if self.is_sampled {
                since.min(SAMPLE_INTERVAL)
            } else {
                since
            }
    }

    fn observe(&mut self, sample: ClockSample) {
        let passed = sample.monotonic.saturating_sub(self.last.monotonic);
        let queued = elapsed_between(sample.queued, self.last.queued);
        let gap = passed.saturating_sub(SAMPLE_INTERVAL + queued.unwrap_or_default());
        let shortest = queued.map_or(MIN_UNEXPLAINED_GAP, |_| MIN_GAP);
        let stopped = if gap >= shortest { gap } else { Duration::ZERO };
        self.running += passed.saturating_sub(stopped);
        self.absence.stopped += stopped;
        if let Some(all) = elapsed_between(sample.uptime, self.last.uptime) {
            let asleep = all.saturating_sub(passed);
            if asleep >= MIN_GAP {
                self.absence.asleep += asleep;
            }
        }
        self.last = sample;
    }
}

fn elapsed_between(later: Option<Duration>, earlier: Option<Duration>) -> Option<Duration> {
    Some(later?.saturating_sub(earlier?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn sampled() -> RunningTime {
        let mut time = RunningTime {
            is_sampled: true,
            ..RunningTime::default()
        };
        time.observe(sample(100, 0, 0));
        time
    }

    fn sample(monotonic: u64, slept: u64, queued: u64) -> ClockSample {
        ClockSample {
            monotonic: ms(monotonic),
            uptime: Some(ms(50_000 + monotonic + slept)),
            queued: Some(ms(queued)),
        }
    }

    #[test]
    fn stopped_time_does_not_count_as_running() {
        let mut time = sampled();
        time.observe(sample(200, 0, 0));
        // The process was stopped for ten seconds. Until the next sample, one interval counts.
        assert_eq!(time.at(ms(10_250)), ms(300));
        time.observe(sample(10_300, 0, 0));
        assert_eq!(time.running, ms(300));
        assert_eq!(time.absence.stopped, ms(10_000));
        assert_eq!(time.absence.asleep, Duration::ZERO);
        time.observe(sample(10_400, 0, 0));
        assert_eq!(time.at(ms(10_450)), ms(450));
    }

    #[test]
    fn waiting_for_a_processor_counts_as_running() {
        let mut time = sampled();
        // The thread waited nine of ten seconds for a processor.
        time.observe(sample(10_100, 0, 9_500));
        assert_eq!(time.running, ms(10_100));
        assert_eq!(time.absence, ProcessAbsence::default());
        // A stop in the middle of the load.
        time.observe(sample(25_100, 0, 14_400));
        assert_eq!(time.running, ms(10_100 + 5_000));
        assert_eq!(time.absence.stopped, ms(10_000));
    }

    #[test]
    fn without_kernel_statistics_only_a_long_gap_counts_as_stopped() {
        let unknown = |monotonic| ClockSample {
            monotonic: ms(monotonic),
            ..ClockSample::default()
        };
        let mut time = RunningTime::default();
        time.observe(unknown(100));
        time.observe(unknown(4_100));
        assert_eq!(time.running, ms(4_100));
        time.observe(unknown(64_200));
        assert_eq!(
            (time.running, time.absence.stopped),
            (ms(4_200), ms(60_000))
        );
    }

    #[test]
    fn machine_sleep_is_reported_and_does_not_count() {
        let mut time = sampled();
        time.observe(sample(200, 3_600_000, 0));
        assert_eq!(time.running, ms(200));
        assert_eq!(time.absence.asleep, ms(3_600_000));
        time.observe(sample(300, 3_600_000, 0));
        assert_eq!(time.absence.asleep, ms(3_600_000));
    }

    #[test]
    fn running_time_is_monotonic() {
        let mut time = sampled();
        let mut last = Duration::ZERO;
        for (monotonic, queued) in [(150, 0), (900, 100), (1_300, 0), (9_000, 0), (9_050, 0)] {
            assert!(time.at(ms(monotonic)) >= last, "before {monotonic}");
            last = time.at(ms(monotonic));
            time.observe(sample(monotonic, 0, queued));
            assert!(time.at(ms(monotonic)) >= last, "after {monotonic}");
            last = time.at(ms(monotonic));
        }
    }

    #[tokio::test]
    async fn a_timeout_waits_for_the_work() {
        assert_eq!(timeout(ms(10_000), async { 7 }).await, Ok(7));
        let never = std::future::pending::<()>();
        assert_eq!(timeout(ms(20), never).await, Err(RunningTimeout));
    }
}
