//! The command line of `serve`, completed by the environment.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::diagnostics_log::StderrLog;
use clap::{Args, ValueEnum};
use ralph_app::AppError;
use ralph_app::config::Environment;
use ralph_core::parse_value;
use ralph_server::{PublicUrl, ServeOptions, TlsFiles};

/// The port of the server, if nothing else is given.
const DEFAULT_PORT: u16 = 8000;
/// The number of runs that work at the same time, if nothing else is given.
const DEFAULT_WORKERS: usize = 2;
/// The most runs that work at the same time.
const MAX_WORKERS: usize = 256;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(in crate::cli) struct ServeArgs {
    /// Listen on this address [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_host)]
    host: Option<IpAddr>,
    /// Listen on this port; 0 means any free one [default: 8000]
    #[arg(long)]
    port: Option<u16>,
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["host", "port"], value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// Work on this many runs at the same time [default: 2]
    #[arg(long, value_name = "NUMBER")]
    workers: Option<usize>,
    /// Encrypt connections with this certificate (PEM, with its issuers)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Trust a proxy to encrypt connections, and use its X-Forwarded-For
    #[arg(long)]
    behind_proxy: bool,
    /// Accept this address as the server's own, with its path
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Open the login link in a browser
    #[arg(long)]
    pub(super) open: bool,
    /// Print a new login link of the running server
    #[arg(long, conflicts_with_all = ["open", "rotate_token", "host", "port", "listen", "workers", "tls_cert", "behind_proxy", "public_url"])]
    pub(super) login: bool,
    /// Replace the token of the running server, and end all sessions
    #[arg(long, conflicts_with_all = ["open", "host", "port", "listen", "workers", "tls_cert", "behind_proxy", "public_url"])]
    pub(super) rotate_token: bool,
    /// Write the log on standard error in this format [default: `RALPH_LOG_FORMAT`, or text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The format of the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// A line of text per event
    Text,
    /// A JSON object per event and line
    Json,
}

impl ServeArgs {
    /// Returns the log on standard error.
    pub(in crate::cli) fn stderr_log(
        &self,
        environment: &Environment,
    ) -> Result<StderrLog, AppError> {
        match (self.log_format, environment.log_format()) {
            (Some(LogFormat::Text), _) | (None, Some("text") | None) => Ok(StderrLog::Text),
            (Some(LogFormat::Json), _) | (None, Some("json")) => Ok(StderrLog::Json),
            (None, Some(_)) => Err(invalid_variable(
                "RALPH_LOG_FORMAT",
                "it is neither `text` nor `json`",
            )),
        }
    }

    /// Returns the settings of the server.
    pub(super) fn options(&self, environment: &Environment) -> Result<ServeOptions, AppError> {
        let (host, port) = match self.listen {
            Some(listen) => (listen.ip(), listen.port()),
            None => (self.host(environment)?, self.port(environment)?),
        };
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let public_url = self.public_url.as_deref();
        Ok(ServeOptions {
            host,
            port,
            workers: self.workers(environment)?,
            token: environment.server_token(),
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            behind_proxy: self.behind_proxy,
            public_url: public_url.map(PublicUrl::parse).transpose()?,
        })
    }

    fn host(&self, environment: &Environment) -> Result<IpAddr, AppError> {
        match (self.host, environment.server_host()) {
            (Some(host), _) => Ok(host),
            (None, Some(text)) => {
                parse_host(text).map_err(|why| invalid_variable("RALPH_HOST", &why))
            }
            (None, None) => Ok(Ipv4Addr::LOCALHOST.into()),
        }
    }

    fn port(&self, environment: &Environment) -> Result<u16, AppError> {
        match (self.port, environment.server_port()) {
            (Some(port), _) => Ok(port),
            (None, Some(text)) => parse_value(text)
                .ok_or_else(|| invalid_variable("RALPH_PORT", "it is not a number up to 65535")),
            (None, None) => Ok(DEFAULT_PORT),
        }
    }

    fn workers(&self, environment: &Environment) -> Result<usize, AppError> {
        let why = format!("it is not a number from 1 to {MAX_WORKERS}");
        let is_valid = |workers: &usize| (1..=MAX_WORKERS).contains(workers);
        match (self.workers, environment.server_workers()) {
            (Some(workers), _) => Some(workers)
                .filter(is_valid)
                .ok_or_else(|| AppError::usage("cannot use `--workers`", why, "")),
            (None, Some(text)) => parse_value(text)
                .filter(is_valid)
                .ok_or_else(|| invalid_variable("RALPH_WORKERS", &why)),
            (None, None) => Ok(DEFAULT_WORKERS),
        }
    }
}

fn invalid_variable(name: &str, why: &str) -> AppError {
    AppError::usage(format!("cannot use `{name}`"), why, "change or unset it")
}

/// Parses an address; `localhost` is the usual one.
fn parse_host(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    parse_value(inner.unwrap_or(text))
        .ok_or_else(|| "it is not an IP address, such as 127.0.0.1".to_owned())
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected an address and a port, such as 127.0.0.1:8000".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let port = parse_value(port).ok_or_else(expected)?;
    Ok(SocketAddr::new(parse_host(host)?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_once() {
        for (text, expected) in [
            ("127.0.0.1:8000", "127.0.0.1:8000"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:1", "0.0.0.0:1"),
        ] {
            let parsed = parse_listen(text).map(|address| address.to_string());
            assert_eq!(parsed.as_deref(), Ok(expected));
        }
        for text in [
            "8000",
            "localhost",
            "example.org:80",
            "127.0.0.1:70000",
            "127.1:80",
        ] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
    }
}
