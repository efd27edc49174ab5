//! The certificate authority of the fake internet.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate authority that only the fake internet uses.
#[derive(Debug)]
pub(super) struct FakeInternetAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

impl FakeInternetAuthority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let name = "authority of the fake internet";
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns a TLS acceptor for all of these names.
    pub(super) fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &self.issuer).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .expect("a certificate that fits its key");
        TlsAcceptor::from(Arc::new(config))
    }
}
