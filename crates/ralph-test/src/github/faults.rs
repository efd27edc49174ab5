//! The faults of the server.

/// A fault of the server. It applies to every request until it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHubFault {
    /// The primary rate limit is exceeded.
    PrimaryLimit,
    /// A secondary rate limit is exceeded for this many seconds.
    SecondaryLimit(u64),
    /// The server is not available for this many seconds, and says so.
    UnavailableFor(u64),
    /// The server fails with this status and does not perform the request.
    Status(u16),
    /// Every request is redirected to this address.
    Redirect(String),
    /// The token must be authorised for single sign-on.
    SingleSignOn,
    /// The token is not valid any more.
    Unauthorized,
    /// The repository is blocked for legal reasons.
    Blocked,
    /// The request is performed, and the connection closes without a response.
    LoseResponse,
    /// The request is performed, and the response never arrives: the connection stays open until the
    /// client closes it.
    Hang,
    /// The request is performed, and the response has this status.
    StatusAfter(u16),
    /// The connection closes, and the request is not performed.
    Drop,
}

impl GitHubFault {
    /// Returns whether the request is performed.
    pub(super) fn is_performed(&self) -> bool {
        match self {
            Self::LoseResponse | Self::Hang | Self::StatusAfter(_) => true,
            Self::PrimaryLimit
            | Self::SecondaryLimit(_)
            | Self::UnavailableFor(_)
            | Self::Status(_)
            | Self::Redirect(_)
            | Self::SingleSignOn
            | Self::Unauthorized
            | Self::Blocked
            | Self::Drop => false,
        }
    }

    /// Returns whether the client gets no response.
    pub(super) fn is_silent(&self) -> bool {
        match self {
            Self::LoseResponse | Self::Hang | Self::Drop => true,
            Self::StatusAfter(_)
            | Self::PrimaryLimit
            | Self::SecondaryLimit(_)
            | Self::UnavailableFor(_)
            | Self::Status(_)
            | Self::Redirect(_)
            | Self::SingleSignOn
            | Self::Unauthorized
            | Self::Blocked => false,
        }
    }
}

/// A fault of some requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// The start of the request line, such as `POST /repos/octo/app/pulls`; a text that it contains, if it
    /// starts with `*`.
    pub operation: String,
    /// The number of matching requests before the first fault.
    pub skip: usize,
    /// The number of faults.
    pub times: usize,
    pub fault: GitHubFault,
}

impl FaultRule {
    /// Returns the fault of the first request of an operation.
    #[must_use]
    pub fn once(operation: &str, fault: GitHubFault) -> Self {
        Self {
            operation: operation.to_owned(),
            skip: 0,
            times: 1,
            fault,
        }
    }

    /// Returns the fault of every request of an operation.
    #[must_use]
    pub fn always(operation: &str, fault: GitHubFault) -> Self {
        Self {
            times: usize::MAX,
            ..Self::once(operation, fault)
        }
    }

    /// Lets this many requests pass first.
    #[must_use]
    pub fn after(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    fn matches(&self, line: &str) -> bool {
        match self.operation.strip_prefix('*') {
            Some(part) => line.contains(part),
            None => line.starts_with(&self.operation),
        }
    }
}

/// Returns the fault of a request and counts it.
pub(super) fn take_fault(rules: &mut [FaultRule], line: &str) -> Option<GitHubFault> {
    let rule = rules
        .iter_mut()
        .find(|rule| rule.times > 0 && rule.matches(line))?;
    if rule.skip > 0 {
        rule.skip -= 1;
        return None;
    }
    rule.times -= 1;
    Some(rule.fault.clone())
}
