//! `ralph scm check` with a fake GitHub.

mod credentials;
mod fixture;
mod judge;
mod repositories;
