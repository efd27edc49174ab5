//! The gate as a way out of sandboxes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ralph_core::ports::CREDENTIALS;
use ralph_gate::{Arrival, Gate, Listener};
use ralph_providers::sandbox::way_out::{self, Connection, Listening, WayOut};

/// Where the HTTP proxy is inside of a sandbox.
const PROXY: &str = "127.0.0.1:3128";
/// What programs reach without the proxy: themselves.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// The file with the authorities to trust, where the gate opens TLS.
const TRUST: &str = "trust.pem";

/// Variables by which programs are told whom to trust.
const TRUSTING: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
];

/// Stands for the path of the file with the authorities.
const PLACE: &str = "{trust}";

/// Programs that take nothing but a file with settings, besides those that they have: the variable
/// that names it, its name, and what is in it.
const TRUSTING_BY_FILE: [(&str, &str, &str); 2] = [
    (
        "APT_CONFIG",
        "apt.conf",
        "Acquire::https::CaInfo \"{trust}\";\n",
    ),
    ("SYSTEM_WGETRC", "wgetrc", "ca_certificate = {trust}\n"),
];

/// Carries what commands connect to inside of a sandbox to the gate.
pub struct Door {
    gate: Gate,
    environment: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Door {
    /// Leads to a gate.
    pub fn new(gate: Gate) -> Self {
        let mut environment = BTreeMap::new();
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            let proxy = format!("http://{PROXY}");
            environment.insert(name.to_lowercase(), proxy.clone());
            environment.insert(name.to_owned(), proxy);
        }
        for name in ["NO_PROXY", "no_proxy"] {
            environment.insert(name.to_owned(), DIRECT.to_owned());
        }
        Self {
            gate,
            environment,
            files: BTreeMap::new(),
        }
    }

    /// Lets programs trust the authorities in `known`, which are written as PEM, and the gate itself.
    #[must_use]
    pub fn trusting(mut self, known: &str) -> Self {
        let trusted = format!("{known}\n{}", self.gate.certificate_pem());
        let trust = self.file(TRUST, trusted);
        for name in TRUSTING {
            self.environment.insert(name.to_owned(), trust.clone());
        }
        for (variable, name, setting) in TRUSTING_BY_FILE {
            let path = self.file(name, setting.replace(PLACE, &trust));
            self.environment.insert(variable.to_owned(), path);
        }
        self
    }

    /// Adds a file, and returns its path inside of a sandbox.
    fn file(&mut self, name: &str, text: String) -> String {
        self.files.insert(name.to_owned(), text.into_bytes());
        format!("{}/{name}", way_out::FILES)
    }
}

#[async_trait]
impl WayOut for Door {
    fn listeners(&self) -> Vec<way_out::Listener> {
        let listen = |listener: Listener, address: &str, listening| way_out::Listener {
            name: listener.name().to_owned(),
            address: address.to_owned(),
            listening,
        };
        let connections = Listening::Connections;
        vec![
            listen(Listener::Proxy, PROXY, connections),
            // Every name leads to an address of its own in 127.1.0.0/16.
            listen(Listener::Http, "0.0.0.0:80", connections),
            listen(Listener::Https, "0.0.0.0:443", connections),
            listen(Listener::Dns, "127.0.0.1:53", connections),
            listen(Listener::Dns, "127.0.0.1:53", Listening::Datagrams),
            listen(Listener::Credentials, &CREDENTIALS.to_string(), connections),
        ]
    }

    fn environment(&self) -> BTreeMap<String, String> {
        self.environment.clone()
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.files.clone()
    }

    async fn answer(&self, connection: Connection) {
        // Only what was listened on can be connected to.
        if let Some(listener) = Listener::parse(&connection.listener) {
            let arrival = Arrival::at(listener, connection.local);
            self.gate.serve(arrival, connection.stream).await;
        }
    }
}
