//! Connects sandboxes to the gate.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ralph_core::ports::CREDENTIAL_ADDRESS;
use ralph_gate::{Arrival, Gate, SandboxListener};
use ralph_providers::sandbox::egress::{self, EgressConnection, ListenKind, SandboxEgress};

/// The address of the HTTP proxy inside a sandbox.
const PROXY_ADDRESS: &str = "127.0.0.1:3128";
/// The hosts that programs reach without the proxy.
const NO_PROXY_HOSTS: &str = "localhost,127.0.0.1,::1";

/// The file with the trusted certificate authorities, if the gate decrypts TLS.
const CA_BUNDLE_FILE: &str = "trust.pem";

/// Variables that name the file with the trusted certificate authorities.
const CA_BUNDLE_VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
];

/// The placeholder for the path of the file with the certificate authorities.
const CA_BUNDLE_PLACEHOLDER: &str = "{trust}";

/// Settings files for programs that accept no variable with certificate authorities: the variable
/// that names the file, its name and its content.
const CA_BUNDLE_CONFIG_FILES: [(&str, &str, &str); 2] = [
    (
        "APT_CONFIG",
        "apt.conf",
        "Acquire::https::CaInfo \"{trust}\";\n",
    ),
    ("SYSTEM_WGETRC", "wgetrc", "ca_certificate = {trust}\n"),
];

/// Forwards connections from inside a sandbox to the gate.
pub struct GateConnector {
    gate: Gate,
    environment: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
}

impl GateConnector {
    /// Creates a connector to a gate.
    pub fn new(gate: Gate) -> Self {
        let mut environment = BTreeMap::new();
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            let proxy = format!("http://{PROXY_ADDRESS}");
            environment.insert(name.to_lowercase(), proxy.clone());
            environment.insert(name.to_owned(), proxy);
        }
        for name in ["NO_PROXY", "no_proxy"] {
            environment.insert(name.to_owned(), NO_PROXY_HOSTS.to_owned());
        }
        Self {
            gate,
            environment,
            files: BTreeMap::new(),
        }
    }

    /// Adds variables for commands.
    #[must_use]
    pub fn with_environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Configures programs to trust the certificate authorities in `known`, in PEM, and the gate's.
    #[must_use]
    pub fn with_trusted_authorities(mut self, known: &str) -> Self {
        let trusted = format!("{known}\n{}", self.gate.certificate_pem());
        let trust = self.add_file(CA_BUNDLE_FILE, trusted);
        for name in CA_BUNDLE_VARIABLES {
            self.environment.insert(name.to_owned(), trust.clone());
        }
        for (variable, name, setting) in CA_BUNDLE_CONFIG_FILES {
            let path = self.add_file(name, setting.replace(CA_BUNDLE_PLACEHOLDER, &trust));
            self.environment.insert(variable.to_owned(), path);
        }
        self
    }

    /// Adds a file and returns its path inside a sandbox.
    fn add_file(&mut self, name: &str, text: String) -> String {
        self.files.insert(name.to_owned(), text.into_bytes());
        format!("{}/{name}", egress::EGRESS_FILES_DIRECTORY)
    }
}

#[async_trait]
impl SandboxEgress for GateConnector {
    fn listeners(&self) -> Vec<egress::EgressListener> {
        let listen = |listener: SandboxListener, address: &str, listening| egress::EgressListener {
            name: listener.name().to_owned(),
            address: address.to_owned(),
            listening,
        };
        let connections = ListenKind::Connections;
        vec![
            listen(SandboxListener::Proxy, PROXY_ADDRESS, connections),
            // Every name resolves to a separate address in 127.1.0.0/16.
            listen(SandboxListener::Http, "0.0.0.0:80", connections),
            listen(SandboxListener::Https, "0.0.0.0:443", connections),
            listen(SandboxListener::Dns, "127.0.0.1:53", connections),
            listen(SandboxListener::Dns, "127.0.0.1:53", ListenKind::Datagrams),
            listen(
                SandboxListener::Credentials,
                &CREDENTIAL_ADDRESS.to_string(),
                connections,
            ),
        ]
    }

    fn environment(&self) -> BTreeMap<String, String> {
        self.environment.clone()
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.files.clone()
    }

    async fn serve(&self, connection: EgressConnection) {
        // Connections arrive only at the listeners above.
        if let Some(listener) = SandboxListener::parse(&connection.listener) {
            let arrival = Arrival::with_address(listener, connection.local);
            self.gate.serve(arrival, connection.stream).await;
        }
    }
}
