//! Errors of source hosts, as kinds that callers act on.

use jiff::Timestamp;

/// Why a source host operation failed.
#[derive(Debug, thiserror::Error)]
pub enum ScmError {
    /// The branch is checked out in the target repository.
    #[error("branch `{branch}` is checked out in `{repo}`")]
    CheckedOut { branch: String, repo: String },
    /// The host or its records are not accessible.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation, such as `read <path>`.
        doing: String,
        source: std::io::Error,
    },
    /// A pull request record cannot be parsed.
    #[error("pull request record `{path}` is damaged: {why}")]
    Damaged { path: String, why: String },
    /// A host on the network refused a request, or did not answer.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A request to a host on the network failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{request} failed: {kind}{}", format_request_id(request_id.as_deref()))]
pub struct HostError {
    /// The method and the path, such as `GET /user`.
    pub request: String,
    /// The host's id of the request, which its support asks for.
    pub request_id: Option<Box<str>>,
    pub kind: HostErrorKind,
}

fn format_request_id(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!(" (request id {id})"))
}

/// The kind of a host's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostErrorKind {
    /// The credential is not valid, or has expired.
    #[error("the credential is rejected: {message}")]
    Unauthorized { message: String },
    /// The credential was rejected, and the clock of this machine differs from the host's.
    #[error("the clock of this machine is {seconds} s {}", if *is_ahead { "ahead" } else { "behind" })]
    WrongClock { seconds: u64, is_ahead: bool },
    /// The credential does not permit the request.
    #[error("not permitted: {message}")]
    Forbidden {
        message: String,
        /// The missing permission or scope in the host's notation, such as `pull_requests=write`.
        permission: Option<String>,
        /// The page on which the user authorises the token for an organisation's single sign-on.
        sso_url: Option<Box<str>>,
    },
    /// The object does not exist, or the credential may not read it.
    #[error("not found, or no access: {message}")]
    NotFound { message: String },
    /// The repository has another name now.
    #[error("the repository is now `{to}`")]
    Renamed { to: String },
    /// The repository is read-only.
    #[error("the repository is archived")]
    Archived,
    /// The branch is protected.
    #[error("branch `{branch}` is protected")]
    Protected { branch: String },
    /// The request contradicts the state of the host.
    #[error("rejected: {message}")]
    Rejected { message: String },
    /// A limit is exceeded. No request is sent before `until`.
    #[error("rate limited until {until}")]
    RateLimited { until: Timestamp },
    /// The certificate of the server is not trusted.
    #[error("the certificate of the server {what}")]
    Certificate { what: String, fix: String },
    /// The server cannot be reached, or fails.
    #[error("{cause}")]
    Unavailable { cause: String },
    /// The response is not one that the API documents.
    #[error("{why}")]
    Unexpected { why: String },
}

impl HostErrorKind {
    /// Returns the action of the user that permits the request.
    pub fn fix(&self) -> String {
        match self {
            Self::Unauthorized { .. } => "renew the credential; `ralph scm check` tests it".into(),
            Self::WrongClock { .. } => "set the clock of this machine".into(),
            Self::Forbidden {
                sso_url: Some(url), ..
            } => format!("authorise the token for single sign-on at {url}"),
            Self::Forbidden {
                permission: Some(permission),
                ..
            } => format!("grant the credential `{permission}`"),
            Self::Forbidden { .. } | Self::NotFound { .. } => {
                "check the repository and the permissions with `ralph scm check`".into()
            }
            Self::Renamed { to } => format!("use `{to}`"),
            Self::Archived => "unarchive the repository".into(),
            Self::Protected { branch } => {
                format!("choose another branch than `{branch}`, or change its protection")
            }
            Self::Rejected { .. } | Self::Unexpected { .. } => {
                "`ralph scm check` shows the state of the repository".into()
            }
            Self::RateLimited { until } => format!("wait until {until}"),
            Self::Certificate { fix, .. } => fix.clone(),
            Self::Unavailable { .. } => "check the network and the status of the host".into(),
        }
    }

    /// Returns whether the same request can succeed later without an action of the user.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Unavailable { .. } => true,
            Self::Unauthorized { .. }
            | Self::WrongClock { .. }
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Renamed { .. }
            | Self::Archived
            | Self::Protected { .. }
            | Self::Rejected { .. }
            | Self::Certificate { .. }
            | Self::Unexpected { .. } => false,
        }
    }
}
