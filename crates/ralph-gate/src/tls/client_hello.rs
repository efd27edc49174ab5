//! The first message of a TLS connection: it says which host it is for, before anything is secret.

use std::io;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// The longest hello that is read, in bytes.
const MAX_HELLO_BYTES: usize = 16 * 1024;

/// What is sent back to a client that asks for the wrong host: the alert `unrecognized_name`, fatal.
pub(crate) const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 112];

/// A hello, and all bytes that were read to see it.
pub(crate) struct TlsClientHello {
    /// The host it is for, unless it does not say.
    pub(crate) server_name: Option<String>,
    /// Everything that was read.
    pub(crate) bytes: Vec<u8>,
}

/// Reads a hello. What is not one, is too long or takes too long is an error.
pub(crate) async fn read_client_hello<S: AsyncRead + Unpin>(
    stream: &mut S,
    bytes: Vec<u8>,
    time: Duration,
) -> io::Result<TlsClientHello> {
    timeout(time, read_until_parsed(stream, bytes))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn read_until_parsed<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut bytes: Vec<u8>,
) -> io::Result<TlsClientHello> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let mut acceptor = Acceptor::default();
    let mut seen = 0;
    loop {
        while seen < bytes.len() {
            seen += acceptor.read_tls(&mut &bytes[seen..])?;
            match acceptor.accept() {
                Ok(Some(accepted)) => {
                    let server_name = accepted.client_hello().server_name().map(str::to_owned);
                    return Ok(TlsClientHello { server_name, bytes });
                }
                Ok(None) => {}
                Err((error, _alert)) => return Err(invalid(&error.to_string())),
            }
        }
        if bytes.len() >= MAX_HELLO_BYTES {
            return Err(invalid("the hello is too long"));
        }
        bytes.reserve(1024);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
