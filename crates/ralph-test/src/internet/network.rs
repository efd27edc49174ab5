//! Who has which name.

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

/// The port of plain HTTP.
const HTTP_PORT: u16 = 80;
/// The port of HTTP over TLS.
const HTTPS_PORT: u16 = 443;

/// An internet on this machine. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeInternet {
    authority: FakeInternetAuthority,
    /// Who answers at a name and port.
    sites: BTreeMap<(String, u16), SocketAddr>,
    /// Names that lead to one address, whatever the port.
    unreachable: BTreeMap<String, SocketAddr>,
    /// Who has every other name.
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
    /// Makes an internet without anybody in it.
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

    /// Starts a site that answers as all of these names, on the ports 80 and 443, and returns the
    /// requests that arrive there, as `GET https://host/path`. It has to be called in a runtime.
    ///
    /// # Panics
    /// If this machine gives no loopback port.
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

    /// Gives a host every name that nobody else has, on every port.
    pub fn map_all_other_names(&mut self, sink: &CatchAllHost) {
        self.open.push(sink.address());
        self.fallback = Some(sink.address());
    }

    /// Lets a name lead to an address that nobody may reach.
    pub fn map_unreachable(&mut self, name: &str, address: SocketAddr) {
        self.unreachable.insert(name.to_owned(), address);
    }

    /// Looks a name up; what was asked for is remembered.
    pub fn lookup(&self, name: &str, port: u16) -> Option<SocketAddr> {
        self.lookups.add(name.to_owned());
        let site = self.sites.get(&(name.to_owned(), port));
        site.or_else(|| self.unreachable.get(name))
            .copied()
            .or(self.fallback)
    }

    /// Returns the names that were looked up.
    pub fn lookups(&self) -> &VisitLog {
        &self.lookups
    }

    /// Returns the addresses on this machine that stand for public ones.
    pub fn open_addresses(&self) -> &[SocketAddr] {
        &self.open
    }

    /// Returns the certificate that vouches for all sites, as PEM.
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Returns the certificate that vouches for all sites.
    pub fn authority(&self) -> &CertificateDer<'static> {
        self.authority.certificate()
    }
}
