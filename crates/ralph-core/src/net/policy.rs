//! The policy of a run, and what a human allowed since.

use serde::{Deserialize, Serialize};

use super::{Allowlist, Decider, Decision, Endpoint, Entry, Host, Reason};

/// What a sandbox may reach besides the credential port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Nothing.
    #[default]
    Deny,
    /// What the list has.
    Allowlist(Allowlist),
    /// Every name and public address on the ports 80 and 443.
    AllowAll,
}

/// A policy and what was added to it by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What the run was given.
    pub policy: Policy,
    /// What a human allowed while the run went on.
    pub added: Allowlist,
}

impl Rules {
    /// Starts with a policy and nothing added.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            added: Allowlist::default(),
        }
    }

    /// Allows one more host.
    pub fn add(&mut self, entry: Entry) {
        self.added.add(entry);
    }

    /// Decides about a connection.
    pub fn decide(&self, endpoint: &Endpoint) -> Decision {
        if self.added.covers(endpoint) {
            return Decision::allowed(Reason::Listed, Decider::Human);
        }
        let is_named = self.added.names(&endpoint.host);
        match &self.policy {
            Policy::Deny if is_named => denied(Reason::PortNotAllowed),
            Policy::Deny => denied(Reason::BlockedByPolicy),
            Policy::Allowlist(list) if list.covers(endpoint) => {
                Decision::allowed(Reason::Listed, Decider::Policy)
            }
            Policy::Allowlist(list) if is_named || list.names(&endpoint.host) => {
                denied(Reason::PortNotAllowed)
            }
            Policy::Allowlist(_) => denied(Reason::BlockedByAllowlist),
            Policy::AllowAll if matches!(endpoint.port, 80 | 443) => {
                Decision::allowed(Reason::AllowAll, Decider::Policy)
            }
            Policy::AllowAll => denied(Reason::PortNotAllowed),
        }
    }

    /// Decides whether a name may be looked up: whether it is allowed on some port.
    pub fn decide_name(&self, host: &Host) -> Decision {
        if self.added.names(host) {
            return Decision::allowed(Reason::Listed, Decider::Human);
        }
        match &self.policy {
            Policy::Deny => denied(Reason::BlockedByPolicy),
            Policy::Allowlist(list) if list.names(host) => {
                Decision::allowed(Reason::Listed, Decider::Policy)
            }
            Policy::Allowlist(_) => denied(Reason::BlockedByAllowlist),
            Policy::AllowAll => Decision::allowed(Reason::AllowAll, Decider::Policy),
        }
    }
}

fn denied(reason: Reason) -> Decision {
    Decision::denied(reason, Decider::Policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(decision: Decision) -> String {
        let verdict = if decision.is_allowed() { "+" } else { "-" };
        format!("{verdict} {} {:?}", decision.reason, decision.decider)
    }

    #[test]
    fn every_policy_decides() {
        let list = Allowlist::parse(["a.com", "b.com:22"]).unwrap();
        let mut opened = Rules::new(Policy::Deny);
        opened.add(Entry::parse("new.com").unwrap());
        let listed = Rules::new(Policy::Allowlist(list));
        let open = Rules::new(Policy::AllowAll);
        let empty = Rules::new(Policy::Allowlist(Allowlist::default()));
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
            assert_eq!(shown(rules.decide_name(&name(host))), expected, "{host}");
        }
    }
}
