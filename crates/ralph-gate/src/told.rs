//! Which refusals were announced already.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ralph_core::net::{Endpoint, Entry, Host};

use crate::{Listener, is_public};

/// How many refusals are announced; a sandbox can make up any number of them.
const MOST: usize = 1000;

/// The port that a name is most likely wanted for: whoever looks it up does not say.
const WEB: u16 = 443;

/// The refusals that were announced, each host and port once.
#[derive(Default)]
pub(crate) struct Told {
    endpoints: Mutex<HashSet<Endpoint>>,
}

impl Told {
    /// Returns what is to be announced about a refusal, if it is news. Allowing it is what would help.
    pub(crate) fn news(&self, listener: Listener, endpoint: &Endpoint) -> Option<Endpoint> {
        if is_local_name(listener, &endpoint.host) || is_nobodys(&endpoint.host) {
            return None;
        }
        let wanted = Endpoint {
            host: endpoint.host.clone(),
            port: match listener {
                Listener::Dns => WEB,
                Listener::Proxy | Listener::Http | Listener::Https | Listener::Credentials => {
                    endpoint.port
                }
            },
        };
        let mut endpoints = self.endpoints();
        let is_news = endpoints.len() < MOST && endpoints.insert(wanted.clone());
        is_news.then_some(wanted)
    }

    /// Forgets what an entry names, on every port.
    pub(crate) fn forget_entry(&self, entry: &Entry) {
        self.endpoints()
            .retain(|endpoint| !entry.names(&endpoint.host));
    }

    /// Forgets a host, on every port.
    pub(crate) fn forget(&self, host: &Host) {
        self.endpoints().retain(|endpoint| endpoint.host != *host);
    }

    fn endpoints(&self) -> MutexGuard<'_, HashSet<Endpoint>> {
        let endpoints = self.endpoints.lock();
        endpoints.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether a name is looked up that only a local network could know, such as the machine's own.
fn is_local_name(listener: Listener, host: &Host) -> bool {
    listener == Listener::Dns && host.name().is_some_and(|name| !name.contains('.'))
}

/// Tells whether no list could make a host reachable: the sandbox itself, and addresses that are not public.
fn is_nobodys(host: &Host) -> bool {
    let is_here = |name: &str| name == "localhost" || name.ends_with(".localhost");
    host.name().is_some_and(is_here) || host.address().is_some_and(|address| !is_public(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(told: &Told, listener: Listener, endpoint: &str) -> Option<String> {
        let endpoint = Endpoint::parse(endpoint, 1).unwrap();
        let news = told.news(listener, &endpoint);
        news.map(|endpoint| endpoint.to_string())
    }

    #[test]
    fn each_port_is_news_once_and_a_lookup_counts_as_the_web() {
        let told = Told::default();
        for (listener, endpoint, expected) in [
            (Listener::Dns, "a.example:53", Some("a.example:443")),
            (Listener::Dns, "a.example:53", None),
            (Listener::Proxy, "a.example:443", None),
            (Listener::Http, "a.example:80", Some("a.example:80")),
            (Listener::Proxy, "a.example:53", Some("a.example:53")),
            (Listener::Dns, "machine:53", None),
            (Listener::Proxy, "machine:80", Some("machine:80")),
            (Listener::Proxy, "localhost:80", None),
            (Listener::Http, "127.0.0.1:80", None),
            (Listener::Proxy, "10.0.0.1:443", None),
            (Listener::Proxy, "1.1.1.1:443", Some("1.1.1.1:443")),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(news(&told, listener, endpoint), expected, "{endpoint}");
        }
    }

    #[test]
    fn a_host_is_forgotten_with_all_its_ports() {
        type Forget = fn(&Told);
        let forgets: [(Forget, [bool; 3]); 4] = [
            (
                |told| told.forget(&Host::parse("a.example").unwrap()),
                [true, true, false],
            ),
            (
                |told| told.forget_entry(&Entry::parse("a.example").unwrap()),
                [true, true, false],
            ),
            (
                |told| told.forget_entry(&Entry::parse("a.example:8080").unwrap()),
                [true, true, false],
            ),
            (
                |told| told.forget_entry(&Entry::parse("*.a.example").unwrap()),
                [false, false, true],
            ),
        ];
        let endpoints = ["a.example:443", "a.example:8080", "b.a.example:443"];
        for (index, (forget, expected)) in forgets.into_iter().enumerate() {
            let told = Told::default();
            for endpoint in endpoints {
                assert!(news(&told, Listener::Proxy, endpoint).is_some());
            }
            forget(&told);
            let again = endpoints.map(|it| news(&told, Listener::Proxy, it).is_some());
            assert_eq!(again, expected, "{index}");
        }
    }

    #[test]
    fn what_a_sandbox_makes_up_has_a_bound() {
        let told = Told::default();
        let made_up = (1..=2000).map(|port| format!("a.example:{port}"));
        let count = made_up.filter(|it| news(&told, Listener::Proxy, it).is_some());
        assert_eq!(count.count(), MOST);
    }
}
