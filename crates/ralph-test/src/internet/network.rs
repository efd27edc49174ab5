//! The names and addresses of the fake internet.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::authority::FakeInternetAuthority;
use super::catch_all::CatchAllHost;
use super::page::SitePages;
use super::serve::{FakeSite, serve};
use super::visit_log::VisitLog;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// An internet on this machine. It stops when it is dropped.
#[derive(Debug)]
pub struct FakeInternet {
    authority: FakeInternetAuthority,
    /// The address of each name and port.
    sites: BTreeMap<(String, u16), SocketAddr>,
    /// Names that resolve to one address on every port.
    unreachable: BTreeMap<String, SocketAddr>,
    /// The address of all other names.
    fallback: Option<SocketAddr>,
    open: Vec<SocketAddr>,
    lookups: VisitLog,
    tasks: JoinSet<()>,
}

impl Default for FakeInternet {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeInternet {
    /// Creates an internet without hosts.
    pub fn new() -> Self {
        Self {
            authority: FakeInternetAuthority::new(),
            sites: BTreeMap::new(),
            unreachable: BTreeMap::new(),
            fallback: None,
            open: Vec::new(),
            lookups: VisitLog::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Starts a site for all of these names on ports 80 and 443 and returns the log of its
    /// requests, as `GET https://host/path`. Must be called in a runtime.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub async fn start_site(&mut self, names: &[&str], pages: SitePages) -> VisitLog {
        let visits = VisitLog::default();
        for port in [HTTP_PORT, HTTPS_PORT] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let tls = (port == HTTPS_PORT).then(|| self.authority.acceptor(names));
            let site = FakeSite {
                tls,
                pages: pages.clone(),
                visits: visits.clone(),
            };
            self.tasks.spawn(serve(listener, site));
            self.open.push(address);
            for name in names {
                self.sites.insert(((*name).to_owned(), port), address);
            }
        }
        visits
    }

    /// Maps every other name, on every port, to a host.
    pub fn map_all_other_names(&mut self, host: &CatchAllHost) {
        self.open.push(host.address());
        self.fallback = Some(host.address());
    }

    /// Maps a name to an address that must not be reached.
    pub fn map_unreachable(&mut self, name: &str, address: SocketAddr) {
        self.unreachable.insert(name.to_owned(), address);
    }

    /// Resolves a name and records the lookup.
    pub fn lookup(&self, name: &str, port: u16) -> Option<SocketAddr> {
        self.lookups.add(name.to_owned());
        let site = self.sites.get(&(name.to_owned(), port));
        site.or_else(|| self.unreachable.get(name))
            .copied()
            .or(self.fallback)
    }

    /// Returns the recorded lookups.
    pub fn lookups(&self) -> &VisitLog {
        &self.lookups
    }

    /// Returns the addresses on this machine that represent public ones.
    pub fn open_addresses(&self) -> &[SocketAddr] {
        &self.open
    }

    /// Returns the authority certificate of all sites as PEM.
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Returns the authority certificate of all sites.
    pub fn authority(&self) -> &CertificateDer<'static> {
        self.authority.certificate()
    }
}
