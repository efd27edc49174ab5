//! Decisions of the gate with their reason and origin.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One decision of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EgressDecision {
    pub verdict: EgressVerdict,
    pub reason: EgressReason,
    pub decider: EgressDecider,
}

impl EgressDecision {
    /// Creates a decision that allows the connection.
    pub const fn allowed(reason: EgressReason, decider: EgressDecider) -> Self {
        Self {
            verdict: EgressVerdict::Allowed,
            reason,
            decider,
        }
    }

    /// Creates a decision that denies the connection.
    pub const fn denied(reason: EgressReason, decider: EgressDecider) -> Self {
        Self {
            verdict: EgressVerdict::Denied,
            reason,
            decider,
        }
    }

    /// Returns whether the connection is allowed.
    pub fn is_allowed(self) -> bool {
        self.verdict == EgressVerdict::Allowed
    }
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// The connection is allowed.
    Allowed,
    /// The connection is denied.
    Denied,
}

/// The origin of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EgressDecider {
    /// The run's policy.
    Policy,
    /// The user, while the run was active.
    Human,
    /// The gate's fixed rules, which no policy overrides.
    Gate,
    /// The rules of a credential.
    Credential,
    /// The run's budget.
    Budget,
}

/// The reason for a decision. Its code is stable: programs in the sandbox read it from a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EgressReason {
    /// The allowlist covers the endpoint.
    Listed,
    /// The policy allows every name.
    AllowAll,
    /// The request matches the host, method and path of a credential.
    CredentialRoute,
    /// The gate answered without forwarding the request.
    Answered,
    /// The policy denies everything.
    BlockedByPolicy,
    /// The allowlist does not contain the host.
    BlockedByAllowlist,
    /// The host is allowed, but not on this port.
    PortNotAllowed,
    /// The host belongs to a credential and is reachable only through the credential port.
    CredentialHost,
    /// The name resolves to a private, loopback, link-local or otherwise special address.
    PrivateAddress,
    /// The name resolves to an address of the machine that runs the gate.
    HostAddress,
    /// The name does not resolve, or no address accepts connections.
    Unreachable,
    /// The host's certificate is not trusted.
    UntrustedCertificate,
    /// The input is not a valid host, request or query.
    Malformed,
    /// The connection does not name its host.
    NoServerName,
    /// The connection names two different hosts.
    NameMismatch,
    /// The request does not carry this run's placeholder token for the credential.
    WrongPhantom,
    /// The credential does not cover this method or path.
    PathNotAllowed,
    /// The request carries a credential that does not belong to this run.
    ForeignCredential,
    /// The request asks the provider to work outside the sandbox.
    ProviderTool,
    /// The response redirects to another host.
    ForeignRedirect,
    /// The run's budget is spent.
    BudgetSpent,
    /// The limit of requests per minute is exceeded.
    RateLimited,
    /// The request uses a feature that is not metered.
    NotMetered,
    /// A limit of connections, bytes or time is exceeded.
    LimitReached,
    /// The gate does not support the protocol.
    UnsupportedProtocol,
}

impl EgressReason {
    /// Returns the stable code.
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

    /// Returns whether the user can change the decision by allowing the host.
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
    fn reason_codes_match_their_serialized_form() {
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
