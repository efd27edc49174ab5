//! A sparse registry for cargo.

use ralph_core::id::Digest;
use serde_json::json;

use super::HELLO;
use super::archive::{gzip, tar};
use crate::internet::{SitePage, SitePages};

/// Returns a registry with one crate that contains a constant `HELLO`: `/index/`. `origin` is the
/// origin of the site, as `https://host`; the name has at least four letters.
pub fn cargo(origin: &str, name: &str) -> SitePages {
    let manifest =
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\n");
    let module = format!("pub const HELLO: &str = \"{HELLO}\";\n");
    let bytes = gzip(&tar(&[
        (&format!("{name}-1.0.0/Cargo.toml"), manifest.as_bytes()),
        (&format!("{name}-1.0.0/src/lib.rs"), module.as_bytes()),
    ]));
    let config = json!({ "dl": format!("{origin}/crates"), "api": origin });
    let line = json!({
        "name": name,
        "vers": "1.0.0",
        "deps": [],
        "cksum": Digest::compute(&bytes).as_str(),
        "features": {},
        "yanked": false,
    });
    let (first, second) = (&name[..2], &name[2..4]);
    SitePages::from([
        (
            "/index/config.json".to_owned(),
            SitePage::file("application/json", config.to_string()),
        ),
        (
            format!("/index/{first}/{second}/{name}"),
            SitePage::text(&format!("{line}\n")),
        ),
        (
            format!("/crates/{name}/1.0.0/download"),
            SitePage::file("application/gzip", bytes),
        ),
    ])
}
