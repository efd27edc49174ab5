//! Decides which blocked hosts are announced: each host and port once, at a bounded rate. Hosts
//! beyond the rate are only counted.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ralph_core::net::{AllowlistEntry, Endpoint, Host};

use crate::{SandboxListener, is_public};

/// The number of announcements remembered; the oldest is evicted first.
const MAX_REMEMBERED: usize = 1_000;
/// The number of announcements allowed in a burst.
const BURST: u32 = 100;
/// The time until one more announcement is allowed.
const REFILL_INTERVAL: Duration = Duration::from_secs(10);
/// The number of announcements for all hosts and ports below one domain. A program that tunnels
/// data through DNS lookups invents names below a single domain.
const MAX_PER_DOMAIN: u32 = 20;
/// The number of further hosts that are counted individually; beyond it, every request counts.
const MAX_DISTINCT_HOSTS: usize = 1 << 16;
/// The number of further hosts that a report names.
const MAX_EXAMPLES: usize = 3;
/// The interval between reports of further hosts, unless their number doubles.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The port assumed for a DNS lookup, which does not name one.
const HTTPS_PORT: u16 = 443;

/// The blocked hosts that were announced, each host and port once.
pub(crate) struct AnnouncedHosts {
    inner: Mutex<Announcements>,
}

/// Blocked hosts that were not announced individually.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FurtherBlockedHosts {
    /// The number of hosts since the previous report.
    pub count: u64,
    pub examples: Vec<Host>,
}

struct Announcements {
    remembered: HashSet<Endpoint>,
    order: VecDeque<Endpoint>,
    per_domain: HashMap<String, u32>,
    tokens: u32,
    refilled: Duration,
    further: FurtherHosts,
}

#[derive(Default)]
struct FurtherHosts {
    seen: HashSet<u64>,
    hasher: RandomState,
    total: u64,
    reported: u64,
    reported_at: Duration,
    examples: Vec<Host>,
}

impl Default for AnnouncedHosts {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Announcements {
                remembered: HashSet::new(),
                order: VecDeque::new(),
                per_domain: HashMap::new(),
                tokens: BURST,
                refilled: Duration::ZERO,
                further: FurtherHosts::default(),
            }),
        }
    }
}

impl AnnouncedHosts {
    /// Returns the endpoint to announce for a refusal, if it is new and the rate permits. Allowing
    /// that endpoint would resolve the refusal.
    pub(crate) fn endpoint_to_announce(
        &self,
        now: Duration,
        listener: SandboxListener,
        endpoint: &Endpoint,
    ) -> Option<Endpoint> {
        if is_local_name(listener, &endpoint.host) || is_never_reachable(&endpoint.host) {
            return None;
        }
        let wanted = Endpoint {
            host: endpoint.host.clone(),
            port: match listener {
                SandboxListener::Dns => HTTPS_PORT,
                SandboxListener::Proxy
                | SandboxListener::Http
                | SandboxListener::Https
                | SandboxListener::Credentials => endpoint.port,
            },
        };
        let mut inner = self.lock_inner();
        if inner.remembered.contains(&wanted) {
            return None;
        }
        if inner.try_take_token(now, &wanted) {
            inner.remember(wanted.clone());
            return Some(wanted);
        }
        inner.further.count(&wanted);
        None
    }

    /// Returns the hosts that were not announced individually, if a report is due.
    pub(crate) fn due_report(&self, now: Duration) -> Option<FurtherBlockedHosts> {
        self.lock_inner().further.report(now)
    }

    /// Forgets the hosts that match an allowlist entry, on every port.
    pub(crate) fn forget_entry(&self, entry: &AllowlistEntry) {
        self.lock_inner()
            .retain(|endpoint| !entry.matches_host(&endpoint.host));
    }

    /// Forgets a host, on every port.
    pub(crate) fn forget(&self, host: &Host) {
        self.lock_inner().retain(|endpoint| endpoint.host != *host);
    }

    fn lock_inner(&self) -> MutexGuard<'_, Announcements> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Announcements {
    /// Consumes a token for an endpoint, if both its domain and the global rate allow it.
    fn try_take_token(&mut self, now: Duration, endpoint: &Endpoint) -> bool {
        let earned = now.saturating_sub(self.refilled).as_secs() / REFILL_INTERVAL.as_secs();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(BURST);
        self.refilled += REFILL_INTERVAL.saturating_mul(earned);
        let used = self.per_domain.get(&domain(&endpoint.host));
        if self.tokens == 0 || used.is_some_and(|used| *used >= MAX_PER_DOMAIN) {
            return false;
        }
        self.tokens -= 1;
        true
    }

    fn remember(&mut self, endpoint: Endpoint) {
        *self.per_domain.entry(domain(&endpoint.host)).or_default() += 1;
        self.order.push_back(endpoint.clone());
        self.remembered.insert(endpoint);
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.remembered.remove(&oldest);
            self.release(&oldest);
        }
    }

    /// Lets the domain of an endpoint announce one more host.
    fn release(&mut self, endpoint: &Endpoint) {
        let domain = domain(&endpoint.host);
        if let Some(used) = self.per_domain.get_mut(&domain) {
            *used = used.saturating_sub(1);
            if *used == 0 {
                self.per_domain.remove(&domain);
            }
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&Endpoint) -> bool) {
        let (kept, forgotten): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.order)
            .into_iter()
            .partition(is_kept);
        self.order = kept;
        for endpoint in forgotten {
            self.remembered.remove(&endpoint);
            self.release(&endpoint);
        }
    }
}

impl FurtherHosts {
    fn count(&mut self, endpoint: &Endpoint) {
        // Each host counts once while the set of distinct hosts has room.
        if self.seen.len() < MAX_DISTINCT_HOSTS {
            let hash = self.hasher.hash_one(&endpoint.host);
            if !self.seen.insert(hash) {
                return;
            }
        }
        self.total = self.total.saturating_add(1);
        if self.examples.len() < MAX_EXAMPLES && !self.examples.contains(&endpoint.host) {
            self.examples.push(endpoint.host.clone());
        }
    }

    fn report(&mut self, now: Duration) -> Option<FurtherBlockedHosts> {
        let count = self.total - self.reported;
        let is_old = now.saturating_sub(self.reported_at) >= REPORT_INTERVAL;
        if count == 0 || !(is_old || count >= self.reported.max(1)) {
            return None;
        }
        self.reported = self.total;
        self.reported_at = now;
        Some(FurtherBlockedHosts {
            count,
            examples: std::mem::take(&mut self.examples),
        })
    }
}

/// Returns the last two labels of a name, or the address unchanged.
fn domain(host: &Host) -> String {
    let text = host.to_string();
    if host.address().is_some() {
        return text;
    }
    let dots = text.rmatch_indices('.').map(|(at, _)| at);
    match dots.take(2).nth(1) {
        Some(at) => text[at + 1..].to_owned(),
        None => text,
    }
}

/// Returns whether a lookup is for a name that only a local network can resolve, such as the
/// machine's own name.
fn is_local_name(listener: SandboxListener, host: &Host) -> bool {
    listener == SandboxListener::Dns && host.name().is_some_and(|name| !name.contains('.'))
}

/// Returns whether no allowlist entry could make a host reachable: the sandbox itself and
/// non-public addresses.
fn is_never_reachable(host: &Host) -> bool {
    let is_localhost = |name: &str| name == "localhost" || name.ends_with(".localhost");
    host.name().is_some_and(is_localhost)
        || host.address().is_some_and(|address| !is_public(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_announced_at(announced: &AnnouncedHosts, seconds: u64, endpoint: &str) -> bool {
        let endpoint = Endpoint::parse(endpoint, 443).unwrap();
        let now = Duration::from_secs(seconds);
        announced
            .endpoint_to_announce(now, SandboxListener::Proxy, &endpoint)
            .is_some()
    }

    fn announced_endpoint(
        announced: &AnnouncedHosts,
        listener: SandboxListener,
        endpoint: &str,
    ) -> Option<String> {
        let endpoint = Endpoint::parse(endpoint, 1).unwrap();
        let new_endpoint = announced.endpoint_to_announce(Duration::ZERO, listener, &endpoint);
        new_endpoint.map(|endpoint| endpoint.to_string())
    }

    #[test]
    fn each_port_is_announced_once_and_a_lookup_counts_as_https() {
        let announced = AnnouncedHosts::default();
        for (listener, endpoint, expected) in [
            (SandboxListener::Dns, "a.example:53", Some("a.example:443")),
            (SandboxListener::Dns, "a.example:53", None),
            (SandboxListener::Proxy, "a.example:443", None),
            (SandboxListener::Http, "a.example:80", Some("a.example:80")),
            (SandboxListener::Proxy, "a.example:53", Some("a.example:53")),
            (SandboxListener::Dns, "machine:53", None),
            (SandboxListener::Proxy, "machine:80", Some("machine:80")),
            (SandboxListener::Proxy, "localhost:80", None),
            (SandboxListener::Http, "127.0.0.1:80", None),
            (SandboxListener::Proxy, "10.0.0.1:443", None),
            (SandboxListener::Proxy, "1.1.1.1:443", Some("1.1.1.1:443")),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(
                announced_endpoint(&announced, listener, endpoint),
                expected,
                "{endpoint}"
            );
        }
    }

    #[test]
    fn a_host_is_forgotten_with_all_its_ports() {
        type Forget = fn(&AnnouncedHosts);
        let forgets: [(Forget, [bool; 3]); 4] = [
            (
                |announced| announced.forget(&Host::parse("a.example").unwrap()),
                [true, true, false],
            ),
            (
                |announced| announced.forget_entry(&AllowlistEntry::parse("a.example").unwrap()),
                [true, true, false],
            ),
            (
                |announced| {
                    announced.forget_entry(&AllowlistEntry::parse("a.example:8080").unwrap());
                },
                [true, true, false],
            ),
            (
                |announced| announced.forget_entry(&AllowlistEntry::parse("*.a.example").unwrap()),
                [false, false, true],
            ),
        ];
        let endpoints = ["a.example:443", "a.example:8080", "b.a.example:443"];
        for (index, (forget, expected)) in forgets.into_iter().enumerate() {
            let announced = AnnouncedHosts::default();
            for endpoint in endpoints {
                assert!(announced_endpoint(&announced, SandboxListener::Proxy, endpoint).is_some());
            }
            forget(&announced);
            let again = endpoints
                .map(|it| announced_endpoint(&announced, SandboxListener::Proxy, it).is_some());
            assert_eq!(again, expected, "{index}");
        }
    }

    #[test]
    fn a_real_host_is_announced_in_the_middle_of_a_flood_below_one_domain() {
        let announced = AnnouncedHosts::default();
        let flood = (0..144_000).map(|number| format!("x{number}.evil.example"));
        let count = flood
            .filter(|host| is_announced_at(&announced, 1, host))
            .count();
        assert_eq!(count, 20);
        assert!(is_announced_at(&announced, 1, "registry.wanted.example"));
    }

    #[test]
    fn random_hosts_exhaust_only_the_announcement_rate() {
        let announced = AnnouncedHosts::default();
        let flood = (0..5_000).map(|number| format!("x{number}.example"));
        assert_eq!(
            flood
                .filter(|host| is_announced_at(&announced, 1, host))
                .count(),
            100
        );
        assert!(
            !is_announced_at(&announced, 2, "wanted.example"),
            "it is counted instead"
        );
        assert!(
            is_announced_at(&announced, 12, "wanted.example"),
            "a token was refilled"
        );
        assert!(!is_announced_at(&announced, 12, "other.example"));
    }

    #[test]
    fn hosts_beyond_the_rate_are_counted_and_reported_at_a_bounded_rate() {
        let announced = AnnouncedHosts::default();
        let mut reports = Vec::new();
        for number in 0..12_445 {
            is_announced_at(&announced, 1, &format!("x{number}.d{number}.example"));
            is_announced_at(&announced, 1, &format!("x{number}.d{number}.example"));
            reports.extend(announced.due_report(Duration::from_secs(1)));
        }
        assert!(reports.len() < 20, "{} reports", reports.len());
        assert_eq!(reports[0].examples.len(), 1);
        assert_eq!(announced.due_report(Duration::from_secs(59)), None);
        reports.extend(announced.due_report(Duration::from_secs(61)));
        let total: u64 = reports.iter().map(|report| report.count).sum();
        assert_eq!(total, 12_345);
        assert_eq!(announced.due_report(Duration::from_secs(1_000)), None);
    }
}
