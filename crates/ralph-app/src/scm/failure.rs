//! Explains errors of GitHub's API.

use ralph_core::ports::{HostError, HostErrorKind};
use ralph_core::repo_address::RemoteRepo;

use super::credential::{CredentialKind, CredentialSource, store_command};
use crate::error::AppError;
use crate::tokens::BaseUrl;

/// The facts that explain an error.
pub(super) struct FailureContext<'a> {
    pub(super) repo: &'a RemoteRepo,
    pub(super) api: &'a BaseUrl,
    pub(super) kind: CredentialKind,
    pub(super) source: CredentialSource,
}

impl FailureContext<'_> {
    /// Returns the error for the user.
    pub(super) fn explain(&self, error: &HostError) -> AppError {
        let Self {
            repo,
            api,
            kind,
            source,
        } = self;
        let full_name = repo.full_name();
        let (what, fix) = match &error.kind {
            HostErrorKind::Unauthorized { .. } => (
                format!("GitHub rejected the {kind} of {source}"),
                self.renewal(),
            ),
            HostErrorKind::WrongClock { .. } => (
                format!("GitHub rejected the {kind} of {source}"),
                "set the clock of this machine, for example with an NTP service".to_owned(),
            ),
            HostErrorKind::Forbidden {
                sso_url: Some(url), ..
            } => (
                format!("the {kind} of {source} is not authorised for single sign-on"),
                format!("authorise it at {url}"),
            ),
            HostErrorKind::Forbidden { permission, .. } => (
                format!("the {kind} of {source} may not access `{full_name}`"),
                match permission {
                    Some(permission) => format!("give it the permission or scope `{permission}`"),
                    None => "check its permissions on GitHub".to_owned(),
                },
            ),
            HostErrorKind::NotFound { .. } => (
                format!("there is no repository `{full_name}` on {}", repo.host()),
                format!(
                    "check the name, and that the {kind} of {source} may read it; for a path, write `./{full_name}`"
                ),
            ),
            HostErrorKind::RateLimited { until } => (
                format!("the rate limit of the {kind} of {source} is exceeded"),
                format!("try again after {until}"),
            ),
            HostErrorKind::Renamed { .. }
            | HostErrorKind::Archived
            | HostErrorKind::Protected { .. }
            | HostErrorKind::Rejected { .. } => (
                format!("GitHub rejected a request for `{full_name}`"),
                error.kind.fix(),
            ),
            HostErrorKind::Certificate { fix, .. } => {
                (format!("cannot connect to {api}"), fix.clone())
            }
            HostErrorKind::Unavailable { .. } => (
                format!("cannot get a response from {api}"),
                "check the host and the network, or try again later; `github.api_url` or GITHUB_API_URL sets another address".to_owned(),
            ),
            HostErrorKind::Unexpected { .. } => (
                format!("{api} did not answer like GitHub"),
                "check that the host is GitHub or GitHub Enterprise Server, and correct `github.api_url` or GITHUB_API_URL if one of them is set".to_owned(),
            ),
        };
        AppError::runtime(what, error.to_string(), fix)
    }

    /// Returns how the user replaces a rejected credential.
    fn renewal(&self) -> String {
        match (&self.kind, &self.source) {
            (CredentialKind::App, _) => {
                "check GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_PEM: the key must belong to the App"
                    .to_owned()
            }
            (_, CredentialSource::Stored(_)) => format!(
                "it may have expired or been revoked: create a new token and run `{}`",
                store_command(self.api)
            ),
            (_, CredentialSource::Gh) => {
                format!("run `gh auth login --hostname {}`", self.repo.host())
            }
            (_, CredentialSource::Variable(name) | CredentialSource::Dotenv(name)) => format!(
                "it may have expired or been revoked: create a new token and set {name} to it"
            ),
        }
    }
}
