//! Finds hosts in the text of a file.

use std::collections::HashSet;

use super::super::{Endpoint, Host};
use super::file::HostFileFormat;

/// The URL schemes of package downloads with their ports.
const SCHEMES: [(&str, u16); 2] = [("https", 443), ("http", 80)];

/// Returns the hosts in a text without duplicates, in order of appearance.
pub(super) fn hosts(
    format: HostFileFormat,
    text: &str,
) -> impl Iterator<Item = (Host, Option<u16>)> {
    let mut seen = HashSet::new();
    text.lines()
        .map(move |line| match format {
            HostFileFormat::Urls | HostFileFormat::Modules => line,
            HostFileFormat::Settings => without_comment(line),
        })
        .flat_map(move |line| match format {
            HostFileFormat::Urls | HostFileFormat::Settings => url_hosts(line),
            HostFileFormat::Modules => go_module_host(line).into_iter().collect(),
        })
        .filter(move |found| seen.insert(found.clone()))
}

/// Strips a comment. Inside a line, a comment must follow a space, because URLs can contain `#`.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    line.split_once(" #").map_or(line, |(before, _)| before)
}

/// Returns the hosts of the URLs in a line.
fn url_hosts(line: &str) -> Vec<(Host, Option<u16>)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at);
        rest = &after[3..];
        let scheme = SCHEMES.iter().find(|(scheme, _)| before.ends_with(scheme));
        if let Some(&(_, port)) = scheme {
            found.extend(authority_host(rest, port));
        }
    }
    // `.npmrc` names registries without a scheme: `//npm.example/:_authToken=…`.
    if let Some(after) = line.trim_start().strip_prefix("//") {
        found.extend(authority_host(after, 443));
    }
    found
}

/// Parses the host at the start of `text`, skipping a user name. Returns `None` for anything else.
fn authority_host(text: &str, default_port: u16) -> Option<(Host, Option<u16>)> {
    let is_end = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '/' | '?' | '#' | '"' | '\'' | '<' | '>' | ',' | ')' | '`'
            )
    };
    let end = text.find(is_end).unwrap_or(text.len());
    let authority = &text[..end];
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let Ok(endpoint) = Endpoint::parse(authority, default_port) else {
        return None;
    };
    public_host(endpoint, default_port)
}

/// Returns the host and a port other than the default; `None` for addresses and single-label names,
/// which are not public registries.
fn public_host(endpoint: Endpoint, default_port: u16) -> Option<(Host, Option<u16>)> {
    let is_name = endpoint.host.name().is_some_and(|name| name.contains('.'));
    let port = (endpoint.port != default_port).then_some(endpoint.port);
    is_name.then_some((endpoint.host, port))
}

/// Returns the host of a Go module.
fn go_module_host(line: &str) -> Option<(Host, Option<u16>)> {
    let host = line.split(['/', ' ']).next()?;
    let Ok(endpoint) = Endpoint::parse(host, 443) else {
        return None;
    };
    public_host(endpoint, 443)
}
