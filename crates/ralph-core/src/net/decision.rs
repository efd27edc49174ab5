//! What was decided about a connection, by whom, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One decision of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecision {
    /// What was decided.
    pub verdict: EgressVerdict,
    /// Why.
    pub reason: EgressReason,
    /// Who decided.
    pub decider: EgressDecider,
}

impl EgressDecision {
    /// Lets it pass.
    pub const fn allowed(reason: EgressReason, decider: EgressDecider) -> Self {
        Self {
            verdict: EgressVerdict::Allowed,
            reason,
            decider,
        }
    }

    /// Refuses it.
    pub const fn denied(reason: EgressReason, decider: EgressDecider) -> Self {
        Self {
            verdict: EgressVerdict::Denied,
            reason,
            decider,
        }
    }

    /// Returns whether it may pass.
    pub fn is_allowed(self) -> bool {
        self.verdict == EgressVerdict::Allowed
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// It may pass.
    Allowed,
    /// It may not.
    Denied,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressDecider {
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
pub enum EgressReason {
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

impl EgressReason {
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

    /// Returns whether a human can change the decision by allowing the host.
    pub fn is_allowlist_related(self) -> bool {
        matches!(
            self,
            Self::BlockedByPolicy | Self::BlockedByAllowlist | Self::PortNotAllowed
        )
    }
}

impl fmt::Display for EgressReason {
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
            EgressReason::Listed,
            EgressReason::BlockedByAllowlist,
            EgressReason::PrivateAddress,
            EgressReason::HostAddress,
            EgressReason::UntrustedCertificate,
            EgressReason::ForeignCredential,
            EgressReason::ProviderTool,
            EgressReason::UnsupportedProtocol,
        ] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.code()));
        }
    }
}
