//! An internet on this machine: names, TLS sites, package registries, and hosts that record every
//! visit.
//!
//! - [`FakeInternet`] contains the names, the sites and their certificate authority.
//! - [`SitePage`] is a page of a site; `serve` serves it over HTTP with and without TLS.
//! - [`CatchAllHost`] is a host on every address of this machine that nothing may reach.
//! - [`VisitLog`] records visits.
//! - [`packages`] provides sites for package managers.
//! - [`tools_image`] is an image with those package managers, [`TrustingImage`] one that also
//!   trusts the authority.

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
