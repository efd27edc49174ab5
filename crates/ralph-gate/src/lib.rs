//! The only network exit of a sandbox.
//!
//! A sandbox has no network. Connections made inside it arrive here as streams, tagged with the
//! listener that accepted them. The gate forwards a stream, answers it, or refuses it with a
//! reason. Each sandbox has its own [`Gate`]; nothing in a stream can select another one. The
//! transport of the streams is up to the caller.
//!
//! ```text
//!  proxy ─────┐                 ┌─ rules: deny, allowlist, allow all; the user may add hosts
//!  http ──────┤                 ├─ names: resolved here, private addresses refused
//!  https ─────┼──► Gate::serve ─┼─ credentials: placeholder in, real one out, to its host only
//!  dns ───────┤                 ├─ meter: tokens and dollars, 402 when the budget is spent
//!  credentials┘                 └─ audit: a record per decision, a notice per blocked host
//! ```
//!
//! - `gate`: creates a [`Gate`] from [`GateSettings`] and [`GateDeps`]; [`Gate::serve`] does the
//!   work.
//! - `listener`, `limits`, `memory`: the entry points and their limits.
//! - `dial`, `address`: connects to exactly the address that was checked.
//! - `dns`: names that exist only inside the sandbox.
//! - `http`: the proxy, plain requests and tunnels; `tls`: reads and terminates TLS.
//! - `credentials`: the port that adds credentials; a [`Route`] defines the use of each.
//! - `meter`: the cost of model calls, charged while responses stream.
//! - `audit`: the records; `announced`: the refusals announced so far; `cassette`: recorded model
//!   responses for replay.

mod address;
mod announced;
mod audit;
mod cassette;
mod credentials;
mod dial;
mod dns;
mod gate;
mod http;
mod limits;
mod listener;
mod memory;
mod meter;
mod stream;
mod tls;

pub use address::{Reachable, is_public};
pub use announced::FurtherBlockedHosts;
pub use audit::{BlockedHostNotice, GateAuditRecord, GateSink, SandboxIdentity};
pub use cassette::{Cassette, CassetteError, ReplayPace};
pub use credentials::{
    InvalidTelemetryError, PlaceholderToken, ProviderToolUse, Route, RouteError, TelemetryEncoding,
    TelemetrySignal, TelemetrySink, TelemetryUpload,
};
pub use dial::{Resolver, SystemResolver};
pub use gate::{Gate, GateDeps, GateError, GateSettings};
pub use limits::GateLimits;
pub use listener::{Arrival, SandboxListener};
pub use meter::{Charge, CostMeter, MeterRates};
pub use stream::ByteStream;
pub use tls::{CertificateError, system_roots};
