//! Who a sandbox may talk to: names that are parsed once, lists of them, and decisions with a reason.
//!
//! The gate asks [`EgressRules::decide`] for every connection. What it decided, and why, is one
//! [`EgressDecision`]: the audit record, the refusal that the sandbox reads and the notice in the dashboard
//! all show the same one.
//!
//! - [`Host`] and [`Endpoint`]: a name or an address in its one canonical spelling.
//! - [`Allowlist`]: `host`, `host:port`, `*.host`. An empty one allows nothing.
//! - [`EgressPolicy`] and [`EgressRules`]: what a run was given, and what a human allowed since.
//! - [`suggest`]: which hosts a project's own files name. Nothing applies them by itself.

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
