//! Counts failed sign-ins per client, so that guessing is slow and visible.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use jiff::Timestamp;

/// The number of failures of a client within the window before it has to wait.
const MAX_FAILURES: usize = 10;
/// The time for which a failure counts.
const WINDOW: Duration = Duration::from_mins(1);
/// The most clients that are counted; the oldest are forgotten first.
const MAX_CLIENTS: usize = 1024;

/// The failures of all clients within the window.
#[derive(Debug, Default)]
pub(crate) struct SignInFailures {
    clients: BTreeMap<IpAddr, VecDeque<Timestamp>>,
}

impl SignInFailures {
    /// Records a failure. Returns how long the client has to wait if it failed too often.
    pub(crate) fn record(&mut self, client: IpAddr, now: Timestamp) -> Option<Duration> {
        let client = network_of(client);
        self.forget_old(now);
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(&client) {
            self.forget_one();
        }
        let failures = self.clients.entry(client).or_default();
        if failures.len() < MAX_FAILURES {
            failures.push_back(now);
            return None;
        }
        let oldest = failures.front().copied().unwrap_or(now);
        let waited = Duration::try_from(now.duration_since(oldest)).unwrap_or(Duration::ZERO);
        Some(WINDOW.saturating_sub(waited).max(Duration::from_secs(1)))
    }

    fn forget_old(&mut self, now: Timestamp) {
        let is_old = |at: &Timestamp| {
            let age = Duration::try_from(now.duration_since(*at));
            age.is_ok_and(|age| age >= WINDOW)
        };
        self.clients.retain(|_, failures| {
            while failures.front().is_some_and(is_old) {
                failures.pop_front();
            }
            !failures.is_empty()
        });
    }

    fn forget_one(&mut self) {
        let last = |(client, failures): (&IpAddr, &VecDeque<Timestamp>)| {
            (failures.back().copied(), *client)
        };
        if let Some((_, client)) = self.clients.iter().map(last).min() {
            self.clients.remove(&client);
        }
    }
}

/// Returns the address by which a client is counted: one machine often has all addresses of an IPv6
/// network of 64 bits.
fn network_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn the_eleventh_failure_of_a_minute_has_to_wait() {
        let mut failures = SignInFailures::default();
        let client: IpAddr = "127.0.0.1".parse().unwrap();
        for second in 0..10 {
            assert_eq!(failures.record(client, at(second)), None);
        }
        let wait = failures.record(client, at(15));
        assert_eq!(wait, Some(Duration::from_secs(45)));
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        assert_eq!(failures.record(other, at(15)), None);
        assert_eq!(failures.record(client, at(60)), None);
        assert!(failures.record(client, at(60)).is_some());
    }

    #[test]
    fn addresses_of_one_network_count_together_and_memory_is_bounded() {
        let mut failures = SignInFailures::default();
        for host in 0..10 {
            let client: IpAddr = format!("2001:db8::{host}").parse().unwrap();
            assert_eq!(failures.record(client, at(0)), None);
        }
        let client: IpAddr = "2001:db8::ffff".parse().unwrap();
        assert!(failures.record(client, at(1)).is_some());
        for number in 0..5000_u32 {
            failures.record(IpAddr::V4((0x0a00_0000 + number).into()), at(2));
        }
        assert_eq!(failures.clients.len(), MAX_CLIENTS);
    }
}
