//! The certificate authorities that this machine trusts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns the certificate authorities that this machine trusts, as PEM. Skips unreadable ones.
pub fn trusted_authorities_pem() -> String {
    let known = rustls_native_certs::load_native_certs().certs;
    known.iter().map(|authority| to_pem(authority)).collect()
}

fn to_pem(certificate: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let encoded = STANDARD.encode(certificate);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_lines_have_64_characters() {
        let written = to_pem(&[0; 60]);
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], "-----BEGIN CERTIFICATE-----");
        assert_eq!((lines[1].len(), lines[2].len()), (64, 16));
        assert_eq!(lines[3], "-----END CERTIFICATE-----");
    }
}
