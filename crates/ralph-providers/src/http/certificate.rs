//! Certificate errors. Retrying does not resolve these.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// A problem with a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateProblem {
    /// Completes a sentence about the certificate.
    pub(crate) what: String,
    /// An imperative.
    pub(crate) fix: &'static str,
}

const TRUST_FIX: &str = "if it is your own server or a proxy, set `SSL_CERT_FILE` to a file with the certificate of its authority";
const TIME_FIX: &str = "check the clock of this machine and the proxy; if both are right, the operator of the server must renew the certificate";

/// Finds the certificate error that caused a connection failure. `name_fix` is the fix for a
/// certificate of another host.
pub(crate) fn find_problem(
    error: &(dyn Error + 'static),
    name_fix: &'static str,
) -> Option<CertificateProblem> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(wrong)) = error.downcast_ref() {
            return Some(CertificateProblem::new(wrong, name_fix));
        }
        // An I/O error does not expose its inner error as its source.
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

impl CertificateProblem {
    fn new(error: &CertificateError, name_fix: &'static str) -> Self {
        use CertificateError as C;
        let (what, fix) = if matches!(error, C::Expired | C::ExpiredContext { .. }) {
            ("has expired".into(), TIME_FIX)
        } else if matches!(error, C::NotValidYet | C::NotValidYetContext { .. }) {
            ("is not valid yet".into(), TIME_FIX)
        } else if matches!(error, C::NotValidForName | C::NotValidForNameContext { .. }) {
            ("is for another host".into(), name_fix)
        } else if matches!(error, C::UnknownIssuer) {
            let what = "is signed by an authority that this machine does not trust";
            (what.into(), TRUST_FIX)
        } else {
            (format!("is not valid: {error}"), TRUST_FIX)
        };
        Self { what, fix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_found_behind_other_errors() {
        for (wrong, expected) in [
            (
                CertificateError::UnknownIssuer,
                "is signed by an authority that this machine does not trust",
            ),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidForName, "is for another host"),
            (CertificateError::Revoked, "is not valid: "),
        ] {
            let tls = rustls::Error::InvalidCertificate(wrong);
            let inside = io::Error::new(io::ErrorKind::InvalidData, tls);
            let outside = io::Error::other(inside);
            let found = find_problem(&outside, "").unwrap();
            assert!(found.what.starts_with(expected), "{found:?}");
        }
        assert_eq!(find_problem(&io::Error::other("refused"), ""), None);
        let tls = rustls::Error::General("x".into());
        assert_eq!(find_problem(&io::Error::other(tls), ""), None);
    }
}
