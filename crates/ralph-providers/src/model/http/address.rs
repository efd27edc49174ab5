//! Request URLs of model APIs.

use std::net::IpAddr;

use super::settings::{HttpModelSettings, HttpModelSettingsError};
use hyper::Uri;
use ralph_core::profile::WireApi;
use ralph_guest::{available, best_effort};
use url::Url;

/// Returns the request URL.
pub(super) fn request_url(settings: &HttpModelSettings) -> Result<Url, HttpModelSettingsError> {
    let base = Url::parse(&settings.base).map_err(|_| HttpModelSettingsError::Base {
        base: settings.base.clone(),
        why: "not a URL",
    })?;
    check_base(&base, settings.credential.is_some())?;
    let model = &settings.endpoint.model;
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let path = match settings.endpoint.wire {
        WireApi::Chat => format!("{}/chat/completions", versioned_path(path, settings)),
        WireApi::Responses => format!("{}/responses", versioned_path(path, settings)),
        WireApi::Messages => format!("{}/messages", with_version(path, &["/v1"])),
        WireApi::Gemini => format!(
            "{}/models/{model}:streamGenerateContent",
            with_version(path, &["/v1beta", "/v1", "/v1alpha"])
        ),
    };
    url.set_path(&path);
    if settings.endpoint.wire == WireApi::Gemini {
        url.set_query(Some("alt=sse"));
    }
    Ok(url)
}

/// Converts a URL to hyper's type.
pub(super) fn request_uri(url: &Url) -> Result<Uri, HttpModelSettingsError> {
    url.as_str()
        .parse()
        .map_err(|_| HttpModelSettingsError::Base {
            base: url.to_string(),
            why: "not a URL",
        })
}

/// Returns scheme, host and port of an address in canonical form, so that equal origins compare equal;
/// `None` if the address is not a URL with a host.
pub fn origin(base: &str) -> Option<String> {
    let origin = available(Url::parse(base.trim()))?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Appends the version for Ollama, whose configured address is that of its native API.
fn versioned_path(path: &str, settings: &HttpModelSettings) -> String {
    if settings.endpoint.provider == "ollama" {
        with_version(path, &["/v1"])
    } else {
        path.to_owned()
    }
}

/// Returns a path that ends with a version, appending the first one if it has none.
fn with_version(path: &str, versions: &[&str]) -> String {
    let has_one = versions.iter().any(|version| path.ends_with(version));
    let version = if has_one { "" } else { versions[0] };
    format!("{path}{version}")
}

fn check_base(base: &Url, has_key: bool) -> Result<(), HttpModelSettingsError> {
    let invalid = |why| {
        let mut shown = base.clone();
        // Both calls fail only for URLs that cannot contain credentials.
        best_effort(shown.set_password(None));
        best_effort(shown.set_username(""));
        Err(HttpModelSettingsError::Base {
            base: shown.to_string(),
            why,
        })
    };
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
        return invalid("it must begin with `https://` or `http://`");
    }
    if !base.username().is_empty() || base.password().is_some() {
        return invalid(
            "it must not contain a user name or password, the key comes from a variable",
        );
    }
    if base.query().is_some() || base.fragment().is_some() {
        return invalid("it must not contain `?` or `#`");
    }
    if base.scheme() == "http" && has_key && !is_local_network(base) {
        return invalid("without `https://` the key could be read in transit");
    }
    Ok(())
}

/// Returns whether a URL refers to this machine or its local network.
fn is_local_network(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => {
            !host.contains('.')
                || [".local", ".internal", ".localhost", ".lan"]
                    .iter()
                    .any(|end| host.ends_with(end))
        }
    }
}
