//! Who has which name.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::authority::Authority;
use super::page::Pages;
use super::serve::{Site, serve};
use super::sink::Sink;
use super::visits::Visits;

/// The port of plain HTTP.
const HTTP: u16 = 80;
/// The port of HTTP over TLS.
const HTTPS: u16 = 443;

/// An internet on this machine. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeInternet {
    authority: Authority,
    /// Who answers at a name and port.
    sites: BTreeMap<(String, u16), SocketAddr>,
    /// Names that lead to one address, whatever the port.
    others: BTreeMap<String, SocketAddr>,
    /// Who has every other name.
    rest: Option<SocketAddr>,
    open: Vec<SocketAddr>,
    lookups: Visits,
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
            authority: Authority::new(),
            sites: BTreeMap::new(),
            others: BTreeMap::new(),
            rest: None,
            open: Vec::new(),
            lookups: Visits::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Starts a site that answers as all of these names, on the ports 80 and 443, and returns the
    /// requests that arrive there, as `GET https://host/path`. It has to be called in a runtime.
    ///
    /// # Panics
    /// If this machine gives no loopback port.
    pub async fn site(&mut self, names: &[&str], pages: Pages) -> Visits {
        let visits = Visits::default();
        for port in [HTTP, HTTPS] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let tls = (port == HTTPS).then(|| self.authority.acceptor(names));
            let site = Site {
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
    pub fn give_the_rest_to(&mut self, sink: &Sink) {
        self.open.push(sink.address());
        self.rest = Some(sink.address());
    }

    /// Lets a name lead to an address that nobody may reach.
    pub fn lead(&mut self, name: &str, address: SocketAddr) {
        self.others.insert(name.to_owned(), address);
    }

    /// Looks a name up; what was asked for is remembered.
    pub fn lookup(&self, name: &str, port: u16) -> Option<SocketAddr> {
        self.lookups.add(name.to_owned());
        let site = self.sites.get(&(name.to_owned(), port));
        site.or_else(|| self.others.get(name))
            .copied()
            .or(self.rest)
    }

    /// Returns the names that were looked up.
    pub fn lookups(&self) -> &Visits {
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
