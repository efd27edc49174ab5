//! What was decided about a connection, by whom, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One decision of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Who decided.
    pub decider: Decider,
}

impl Decision {
    /// Lets it pass.
    pub const fn allowed(reason: Reason, decider: Decider) -> Self {
        Self {
            verdict: Verdict::Allowed,
            reason,
            decider,
        }
    }

    /// Refuses it.
    pub const fn denied(reason: Reason, decider: Decider) -> Self {
        Self {
            verdict: Verdict::Denied,
            reason,
            decider,
        }
    }

    /// Tells whether it may pass.
    pub fn is_allowed(self) -> bool {
        self.verdict == Verdict::Allowed
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may pass.
    Allowed,
    /// It may not.
    Denied,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The policy that the run was given.
    Policy,
    /// A human, while the run went on.
    Human,
    /// The gate's own rules, which no policy changes.
    Gate,
    /// The rules of a credential.
    Credential,
    /// The run's budget.
    Budget,
}

/// Why it was decided. The text of a reason is stable: programs in the sandbox read it in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The allowlist has it.
    Listed,
    /// The policy allows every name.
    AllowAll,
    /// A credential's own host, method and path.
    CredentialRoute,
    /// The gate answered by itself.
    Answered,
    /// The policy is to deny everything.
    BlockedByPolicy,
    /// The allowlist does not have it.
    BlockedByAllowlist,
    /// The host is allowed, but not on this port.
    PortNotAllowed,
    /// The host of a credential, which is reached through the credential port alone.
    CredentialHost,
    /// The name leads to a private, loopback, link-local or otherwise special address.
    PrivateAddress,
    /// The name leads to an address of the machine that the gate runs on.
    HostAddress,
    /// No address is known for the name, or none answers.
    Unreachable,
    /// The host's certificate is not trusted.
    UntrustedCertificate,
    /// The text is not a host, a request or a query.
    Malformed,
    /// The connection does not say which host it is for.
    NoServerName,
    /// The connection names one host here and another there.
    NameMismatch,
    /// The request does not carry this run's stand-in for the credential.
    WrongPhantom,
    /// The credential is not for this method or path.
    PathNotAllowed,
    /// The request carries a credential that is not this run's.
    ForeignCredential,
    /// The request asks the provider for work outside of the sandbox.
    ProviderTool,
    /// The answer leads to another host.
    ForeignRedirect,
    /// The run's budget is spent.
    BudgetSpent,
    /// More requests in a minute than are allowed.
    RateLimited,
    /// The request asks for something whose cost is not metered.
    NotMetered,
    /// More connections, bytes or time than are allowed.
    LimitReached,
    /// The protocol is none that the gate carries.
    UnsupportedProtocol,
}

impl Reason {
    /// Returns the stable text.
    pub fn code(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::AllowAll => "allow-all",
            Self::CredentialRoute => "credential-route",
            Self::Answered => "answered",
            Self::BlockedByPolicy => "blocked-by-policy",
            Self::BlockedByAllowlist => "blocked-by-allowlist",
            Self::PortNotAllowed => "port-not-allowed",
            Self::CredentialHost => "credential-host",
            Self::PrivateAddress => "private-address",
            Self::HostAddress => "host-address",
            Self::Unreachable => "unreachable",
            Self::UntrustedCertificate => "untrusted-certificate",
            Self::Malformed => "malformed",
            Self::NoServerName => "no-server-name",
            Self::NameMismatch => "name-mismatch",
            Self::WrongPhantom => "wrong-phantom",
            Self::PathNotAllowed => "path-not-allowed",
            Self::ForeignCredential => "foreign-credential",
            Self::ProviderTool => "provider-tool",
            Self::ForeignRedirect => "foreign-redirect",
            Self::BudgetSpent => "budget-spent",
            Self::RateLimited => "rate-limited",
            Self::NotMetered => "not-metered",
            Self::LimitReached => "limit-reached",
            Self::UnsupportedProtocol => "unsupported-protocol",
        }
    }

    /// Tells whether a human can change the decision by allowing the host.
    pub fn is_about_the_list(self) -> bool {
        matches!(
            self,
            Self::BlockedByPolicy | Self::BlockedByAllowlist | Self::PortNotAllowed
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_the_same_everywhere() {
        for reason in [
            Reason::Listed,
            Reason::BlockedByAllowlist,
            Reason::PrivateAddress,
            Reason::HostAddress,
            Reason::UntrustedCertificate,
            Reason::ForeignCredential,
            Reason::ProviderTool,
            Reason::UnsupportedProtocol,
        ] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.code()));
        }
    }
}
