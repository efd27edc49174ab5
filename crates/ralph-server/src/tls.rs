//! The TLS certificate of the server.

use std::path::Path;
use std::sync::Arc;

use ralph_app::AppError;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::TlsFiles;

/// Reads the certificate and its key.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, AppError> {
    let chain = CertificateDer::pem_file_iter(&files.certificate);
    let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unusable(&files.certificate, &error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable(&files.certificate, "it contains no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable(&files.key, &error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, &error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&files.certificate, &error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(path: &Path, why: &str) -> AppError {
    AppError::usage(
        format!("cannot use `{}` for TLS", path.display()),
        why,
        "name a certificate with its issuers and its key, both as PEM",
    )
}
