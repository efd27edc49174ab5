//! The certificate authority of a run, which issues certificates for hosts whose TLS the gate
//! terminates.
//!
//! Its key is generated for the run, exists only in memory and is trusted only by the sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ralph_core::net::Host;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The number of hosts with a cached configuration.
const MAX_CACHED_HOSTS: usize = 256;

/// An error while creating a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate could not be issued.
    #[error("cannot issue a certificate for `{name}`")]
    Issue { name: String, source: rcgen::Error },
    /// TLS could not be configured with the certificate.
    #[error("cannot use the certificate for `{name}`")]
    Configure { name: String, source: rustls::Error },
}

pub(crate) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// All hosts share one key, because the gate serves them all.
    host_key: KeyPair,
    configs: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

impl CertificateAuthority {
    pub(crate) fn new(name: &str) -> Result<Self, CertificateError> {
        let issue_error = |source| CertificateError::Issue {
            name: name.to_owned(),
            source,
        };
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("ralph gate {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(issue_error)?;
        let host_key = KeyPair::generate().map_err(issue_error)?;
        let certificate = params.self_signed(&key).map_err(issue_error)?;
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            host_key,
            configs: Mutex::default(),
        })
    }

    /// Returns the certificate that the sandbox must trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the TLS server configuration for a host.
    pub(crate) fn server_config(&self, host: &Host) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(host) {
            return Ok(config.clone());
        }
        let config = Arc::new(self.issue_server_config(host)?);
        if configs.len() >= MAX_CACHED_HOSTS {
            configs.clear();
        }
        configs.insert(host.clone(), config.clone());
        Ok(config)
    }

    fn issue_server_config(&self, host: &Host) -> Result<ServerConfig, CertificateError> {
        let name = host.to_string();
        let issue_error = |source| CertificateError::Issue {
            name: name.clone(),
            source,
        };
        let mut params = CertificateParams::new(vec![name.clone()]).map_err(issue_error)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "ralph gate");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params
            .signed_by(&self.host_key, &self.issuer)
            .map_err(issue_error)?;
        let chain = vec![leaf.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(self.host_key.serialize_der().into());
        let configure_error = |source| CertificateError::Configure {
            name: name.clone(),
            source,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(configure_error)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(configure_error)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
