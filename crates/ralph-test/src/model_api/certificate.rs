//! Certificates of an untrusted authority.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate, its key and its authority.
#[derive(Debug)]
pub struct FakeCertificate {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    authority: String,
    /// The certificate as PEM.
    pem: String,
}

impl FakeCertificate {
    /// Creates a valid certificate for a host.
    ///
    /// # Panics
    /// If the text is not a valid host name.
    pub fn new(host: &str) -> Self {
        Self::for_hosts(&[host])
    }

    /// Creates a valid certificate for several hosts.
    ///
    /// # Panics
    /// If a text is not a valid host name.
    pub fn for_hosts(hosts: &[&str]) -> Self {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        Self::from_params(CertificateParams::new(hosts).expect("names"))
    }

    /// Creates an expired certificate for a host.
    ///
    /// # Panics
    /// If the text is not a valid host name.
    pub fn expired(host: &str) -> Self {
        let mut params = CertificateParams::new([host.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        Self::from_params(params)
    }

    fn from_params(mut params: CertificateParams) -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let name = "authority of a fake model API";
        authority.distinguished_name.push(DnType::CommonName, name);
        let pem = authority
            .self_signed(&authority_key)
            .expect("a certificate")
            .pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key,
            authority: pem,
        }
    }

    /// Returns the certificate as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the key of the certificate as PEM.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Returns the certificate of the authority, in the format of `SSL_CERT_FILE`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .expect("a certificate that fits its key");
        Arc::new(config)
    }
}
