//! An internet on this machine: names, sites with TLS, package registries, and hosts that count
//! everything that arrives at them.
//!
//! - [`FakeInternet`] is all of it: who has which name, and the authority that vouches for the sites.
//! - [`SitePage`] is what a site answers; `serve` speaks HTTP with and without TLS.
//! - [`CatchAllHost`] is a host that nothing may reach, at every address of this machine.
//! - [`VisitLog`] is what arrived somewhere.
//! - [`packages`] fills sites with what package managers look for.
//! - [`tools_image`] is an image with those package managers in it, [`TrustingImage`] one that trusts
//!   the authority, too.

mod authority;
mod catch_all;
mod image;
mod network;
pub mod packages;
mod page;
mod serve;
mod visit_log;

pub use catch_all::{CATCH_ALL_RESPONSE, CatchAllHost};
pub use image::{TrustingImage, tools_image};
pub use network::FakeInternet;
pub use page::{SitePage, SitePages};
pub use visit_log::VisitLog;
