//! Network access of a sandbox: canonical hosts, allowlists, and decisions with a reason.
//!
//! The gate calls [`EgressRules::decide`] for every connection. The egress log and the refusal
//! sent to the sandbox show the same [`EgressDecision`].
//!
//! - [`Host`] and [`Endpoint`]: a name or an address in canonical form.
//! - [`Allowlist`]: `host`, `host:port`, `*.host`. An empty one allows nothing.
//! - [`EgressPolicy`] and [`EgressRules`]: the run's policy and the hosts that the user added.
//! - [`suggest`]: hosts named in a project's own files. They are never applied automatically.

mod allowlist;
mod decision;
mod host;
mod policy;
mod provider_tools;
pub mod suggest;

pub use allowlist::{Allowlist, AllowlistEntry, AllowlistEntryError};
pub use decision::{EgressDecider, EgressDecision, EgressReason, EgressVerdict};
pub use host::{Endpoint, Host, HostError};
pub use policy::{EgressPolicy, EgressRules};
pub use provider_tools::{ProviderTool, ProviderToolAction};
