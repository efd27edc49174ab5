//! The one door out of a sandbox.
//!
//! A sandbox has no network. What connects inside of it arrives here as a stream, with the name of
//! the listener it came through, and the gate decides: it passes the stream on, answers it, or
//! refuses it and says why. There is one [`Gate`] for each sandbox; nothing in a stream can claim
//! another. How streams get here is not its business.
//!
//! ```text
//!  proxy ─────┐                 ┌─ rules: deny, allowlist, allow all; a human may add hosts
//!  http ──────┤                 ├─ names: looked up here, private addresses refused
//!  https ─────┼──► Gate::serve ─┼─ credentials: a stand-in in, the real one out, its own host only
//!  dns ───────┤                 ├─ meter: tokens and dollars, 402 when the budget is spent
//!  credentials┘                 └─ records: one for each decision, a notice for each blocked host
//! ```
//!
//! - `gate` is the door itself: [`GateSettings`] and [`GateDeps`] go in, [`Gate::serve`] does the work.
//! - `listener`, `limits`, `memory`: the ways in, and how much may come.
//! - `dial`, `address`: connecting to exactly the address that was checked.
//! - `dns`: names that exist only inside the sandbox.
//! - `http`: the proxy, plain requests and tunnels; `tls`: whose connection it is, and opening it.
//! - `credentials`: the port that adds credentials; [`Route`] says what each is for.
//! - `meter`: what models cost, charged while they answer.
//! - `audit`: what is written down; `announced`: which refusals were announced;
//!   `cassette`: what models answered, to be played again.

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
pub use credentials::{PlaceholderToken, ProviderToolUse, Route, RouteError};
pub use dial::{Resolver, SystemResolver};
pub use gate::{Gate, GateDeps, GateError, GateSettings};
pub use limits::GateLimits;
pub use listener::{Arrival, SandboxListener};
pub use meter::{Charge, CostMeter, MeterRates};
pub use stream::ByteStream;
pub use tls::{CertificateError, system_roots};
