//! Reads the TLS client hello, which names the host before encryption starts.

use std::io;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// The maximum length of a hello, in bytes.
const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The fatal alert `unrecognized_name`, sent to a client that requests the wrong host.
pub(crate) const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 112];

/// A client hello and all bytes read with it.
pub(crate) struct TlsClientHello {
    /// The requested host, if the hello names one.
    pub(crate) server_name: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a client hello, which may start with bytes that were already read. Fails if it is malformed,
/// too long or takes longer than the limit.
pub(crate) async fn read_client_hello<S: AsyncRead + Unpin>(
    stream: &mut S,
    bytes: Vec<u8>,
    limit: Duration,
) -> io::Result<TlsClientHello> {
    timeout(limit, read_until_parsed(stream, bytes))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn read_until_parsed<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut bytes: Vec<u8>,
) -> io::Result<TlsClientHello> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let mut acceptor = Acceptor::default();
    let mut consumed = 0;
    loop {
        while consumed < bytes.len() {
            consumed += acceptor.read_tls(&mut &bytes[consumed..])?;
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
