//! The egress policy of a run and the hosts that the user added to it.

use serde::{Deserialize, Serialize};

use super::{
    Allowlist, AllowlistEntry, EgressDecider, EgressDecision, EgressReason, Endpoint, Host,
};

/// The endpoints that a sandbox may reach in addition to the credential port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EgressPolicy {
    /// Nothing.
    #[default]
    Deny,
    /// The endpoints covered by the list.
    Allowlist(Allowlist),
    /// Every name and public address on the ports 80 and 443.
    AllowAll,
}

/// A policy and the entries that the user added to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressRules {
    pub policy: EgressPolicy,
    /// Entries that the user added while the run was active.
    pub added: Allowlist,
    /// The registries that are allowed only while dependencies are installed.
    pub during_setup: Allowlist,
}

impl EgressRules {
    /// Creates rules without added entries.
    pub fn new(policy: EgressPolicy) -> Self {
        Self {
            policy,
            added: Allowlist::default(),
            during_setup: Allowlist::default(),
        }
    }

    /// Replaces the hosts that are allowed only during set-up.
    pub fn set_setup_hosts(&mut self, hosts: Allowlist) {
        self.during_setup = hosts;
    }

    /// Allows one more host.
    pub fn add(&mut self, entry: AllowlistEntry) {
        self.added.add(entry);
    }

    /// Decides whether a connection is allowed.
    pub fn decide(&self, endpoint: &Endpoint) -> EgressDecision {
        if self.added.covers(endpoint) {
            return EgressDecision::allowed(EgressReason::Listed, EgressDecider::Human);
        }
        if self.during_setup.covers(endpoint) {
            return EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy);
        }
        let is_named = self.added.matches_host(&endpoint.host);
        match &self.policy {
            EgressPolicy::Deny if is_named => denied(EgressReason::PortNotAllowed),
            EgressPolicy::Deny => denied(EgressReason::BlockedByPolicy),
            EgressPolicy::Allowlist(list) if list.covers(endpoint) => {
                EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy)
            }
            EgressPolicy::Allowlist(list) if is_named || list.matches_host(&endpoint.host) => {
                denied(EgressReason::PortNotAllowed)
            }
            EgressPolicy::Allowlist(_) => denied(EgressReason::BlockedByAllowlist),
            EgressPolicy::AllowAll if matches!(endpoint.port, 80 | 443) => {
                EgressDecision::allowed(EgressReason::AllowAll, EgressDecider::Policy)
            }
            EgressPolicy::AllowAll => denied(EgressReason::PortNotAllowed),
        }
    }

    /// Decides whether a name may be resolved, which requires that it is allowed on some port.
    pub fn decide_lookup(&self, host: &Host) -> EgressDecision {
        if self.added.matches_host(host) {
            return EgressDecision::allowed(EgressReason::Listed, EgressDecider::Human);
        }
        if self.during_setup.matches_host(host) {
            return EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy);
        }
        match &self.policy {
            EgressPolicy::Deny => denied(EgressReason::BlockedByPolicy),
            EgressPolicy::Allowlist(list) if list.matches_host(host) => {
                EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy)
            }
            EgressPolicy::Allowlist(_) => denied(EgressReason::BlockedByAllowlist),
            EgressPolicy::AllowAll => {
                EgressDecision::allowed(EgressReason::AllowAll, EgressDecider::Policy)
            }
        }
    }
}

fn denied(reason: EgressReason) -> EgressDecision {
    EgressDecision::denied(reason, EgressDecider::Policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(decision: EgressDecision) -> String {
        let verdict = if decision.is_allowed() { "+" } else { "-" };
        format!("{verdict} {} {:?}", decision.reason, decision.decider)
    }

    #[test]
    fn decisions_follow_the_policy() {
        let list = Allowlist::parse(["a.com", "b.com:22"]).unwrap();
        let mut opened = EgressRules::new(EgressPolicy::Deny);
        opened.add(AllowlistEntry::parse("new.com").unwrap());
        let listed = EgressRules::new(EgressPolicy::Allowlist(list));
        let open = EgressRules::new(EgressPolicy::AllowAll);
        let empty = EgressRules::new(EgressPolicy::Allowlist(Allowlist::default()));
        for (rules, endpoint, expected) in [
            (&opened, "new.com:443", "+ listed Human"),
            (&opened, "new.com:22", "- port-not-allowed Policy"),
            (&opened, "old.com:443", "- blocked-by-policy Policy"),
            (&listed, "a.com:443", "+ listed Policy"),
            (&listed, "a.com:22", "- port-not-allowed Policy"),
            (&listed, "b.com:22", "+ listed Policy"),
            (&listed, "b.com:443", "- port-not-allowed Policy"),
            (&listed, "c.com:443", "- blocked-by-allowlist Policy"),
            (&empty, "a.com:443", "- blocked-by-allowlist Policy"),
            (&open, "any.com:80", "+ allow-all Policy"),
            (&open, "any.com:25", "- port-not-allowed Policy"),
        ] {
            let endpoint = Endpoint::parse(endpoint, 443).unwrap();
            assert_eq!(shown(rules.decide(&endpoint)), expected, "{endpoint}");
        }
        let name = |text| Host::parse(text).unwrap();
        for (rules, host, expected) in [
            (&opened, "new.com", "+ listed Human"),
            (&opened, "old.com", "- blocked-by-policy Policy"),
            (&listed, "b.com", "+ listed Policy"),
            (&listed, "c.com", "- blocked-by-allowlist Policy"),
            (&open, "any.com", "+ allow-all Policy"),
        ] {
            assert_eq!(shown(rules.decide_lookup(&name(host))), expected, "{host}");
        }
    }
}
