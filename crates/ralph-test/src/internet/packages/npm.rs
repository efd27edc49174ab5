//! A registry for npm.

use serde_json::json;

use super::HELLO;
use super::archive::{gzip, tar};
use crate::internet::{SitePage, SitePages};

/// Returns a registry with one package that exports a string: `/NAME`. `origin` is the origin of
/// the site, as `https://host`.
pub fn npm(origin: &str, name: &str) -> SitePages {
    let manifest = json!({ "name": name, "version": "1.0.0", "main": "index.js" });
    let module = format!("module.exports = '{HELLO}';\n");
    let bytes = gzip(&tar(&[
        ("package/package.json", manifest.to_string().as_bytes()),
        ("package/index.js", module.as_bytes()),
    ]));
    let path = format!("/{name}/-/{name}-1.0.0.tgz");
    let mut version = manifest;
    version["dist"] = json!({ "tarball": format!("{origin}{path}") });
    let document = json!({
        "name": name,
        "dist-tags": { "latest": "1.0.0" },
        "versions": { "1.0.0": version },
    });
    let document = document.to_string();
    SitePages::from([
        (
            format!("/{name}"),
            SitePage::file("application/json", document),
        ),
        (path, SitePage::file("application/octet-stream", bytes)),
    ])
}
