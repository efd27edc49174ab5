//! The pace of requests: how often a token changes something, and how often a request is repeated.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ralph_core::id::Digest;
use ralph_core::secret::Secret;

/// The largest number of tokens that are remembered.
const MAX_TOKENS: usize = 64;

/// The waits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitHubTiming {
    /// The time between two changes with the same token.
    pub mutation_interval: Duration,
    /// The wait before the first repetition of a GET request; the next one is twice as long.
    pub retry_delay: Duration,
    /// The time limit of a whole exchange.
    pub timeout: Duration,
}

impl Default for GitHubTiming {
    fn default() -> Self {
        Self {
            mutation_interval: Duration::from_secs(1),
            retry_delay: Duration::from_secs(1),
            timeout: Duration::from_mins(1),
        }
    }
}

impl GitHubTiming {
    /// Returns the timing of a test: no wait between requests.
    pub fn immediate(timeout: Duration) -> Self {
        Self {
            mutation_interval: Duration::ZERO,
            retry_delay: Duration::ZERO,
            timeout,
        }
    }

    /// Returns the wait before a repetition, counted from 0. `chance` spreads the clients of many runs: 0 to 999
    /// adds up to half of the wait.
    pub(super) fn retry_wait(&self, repetition: u32, chance: u32) -> Duration {
        let wait = self.retry_delay * 2_u32.saturating_pow(repetition);
        wait + wait * (chance % 1000) / 2000
    }
}

/// The last change with each token, and the end of its rate limit. Clients with the same token share it.
#[derive(Debug, Clone, Default)]
pub struct TokenPace(Arc<Mutex<PaceOfTokens>>);

#[derive(Debug, Default)]
struct PaceOfTokens {
    changes: VecDeque<(Digest, Instant)>,
    limits: VecDeque<(Digest, Timestamp)>,
}

impl TokenPace {
    /// Reserves the next change with a token, and returns the wait before it.
    pub(super) fn reserve(&self, token: &Secret, now: Instant, interval: Duration) -> Duration {
        let mut pace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(token);
        let last = take(&mut pace.changes, &key);
        let next = last.map_or(now, |last| now.max(last + interval));
        remember(&mut pace.changes, key, next);
        next.duration_since(now)
    }

    /// Sends no request with a token before a time.
    pub(super) fn set_limit(&self, token: &Secret, until: Timestamp) {
        let mut pace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(token);
        // A response that was sent earlier may name an earlier end.
        let until = take(&mut pace.limits, &key).map_or(until, |known| known.max(until));
        remember(&mut pace.limits, key, until);
    }

    /// Returns the end of the exceeded limit of a token.
    pub(super) fn limit_end(&self, token: &Secret) -> Option<Timestamp> {
        let pace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(token);
        let known = pace.limits.iter().find(|(known, _)| *known == key);
        known.map(|(_, until)| *until)
    }
}

fn key(token: &Secret) -> Digest {
    Digest::compute(token.expose().as_bytes())
}

fn take<T>(entries: &mut VecDeque<(Digest, T)>, key: &Digest) -> Option<T> {
    let index = entries.iter().position(|(known, _)| known == key)?;
    entries.remove(index).map(|(_, value)| value)
}

/// Adds an entry, and drops the oldest one above the limit.
fn remember<T>(entries: &mut VecDeque<(Digest, T)>, key: Digest, value: T) {
    if entries.len() == MAX_TOKENS {
        entries.pop_front();
    }
    entries.push_back((key, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_changes_something_once_per_interval() {
        let (pace, now) = (TokenPace::default(), Instant::now());
        let token = |text: &str| Secret::new(text.to_owned());
        let (one, two) = (token("token-one"), token("token-two"));
        let second = Duration::from_secs(1);
        let reserve = |token: &Secret, millis| {
            let wait = pace.reserve(token, now + Duration::from_millis(millis), second);
            u64::try_from(wait.as_millis()).unwrap()
        };
        assert_eq!(reserve(&one, 0), 0);
        assert_eq!(reserve(&one, 0), 1000);
        assert_eq!(reserve(&one, 500), 1500);
        assert_eq!(reserve(&two, 500), 0);
        assert_eq!(reserve(&one, 9000), 0);
        for number in 0..100 {
            reserve(&token(&format!("token-{number}")), 9000);
        }
        assert_eq!(pace.0.lock().unwrap().changes.len(), MAX_TOKENS);
    }

    #[test]
    fn the_waits_before_repetitions_grow() {
        let timing = GitHubTiming::default();
        let millis = |repetition, chance| timing.retry_wait(repetition, chance).as_millis();
        assert_eq!((millis(0, 0), millis(1, 0)), (1000, 2000));
        assert_eq!((millis(0, 1000), millis(0, 500)), (1000, 1250));
    }
}
