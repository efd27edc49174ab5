//! An index for pip.

use ralph_core::id::Digest;

use super::HELLO;
use super::archive::zip;
use crate::internet::{SitePage, SitePages};

/// Returns an index with one package that contains a module of the same name: `/simple/`.
pub fn python(name: &str) -> SitePages {
    let information = format!("{name}-1.0.dist-info");
    let module = format!("HELLO = '{HELLO}'\n");
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
    let wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let files = [
        (format!("{name}.py"), module),
        (format!("{information}/METADATA"), metadata),
        (format!("{information}/WHEEL"), wheel.to_owned()),
        (format!("{information}/RECORD"), String::new()),
    ];
    let members = files
        .each_ref()
        .map(|(path, text)| (path.as_str(), text.as_bytes()));
    let bytes = zip(&members);
    let file = format!("{name}-1.0-py3-none-any.whl");
    let link = format!("/files/{file}");
    let digest = Digest::compute(&bytes);
    let index = format!(
        "<!DOCTYPE html><html><body><a href=\"{link}#sha256={digest}\">{file}</a></body></html>"
    );
    SitePages::from([
        (
            format!("/simple/{}/", name.replace('_', "-")),
            SitePage::file("text/html", index),
        ),
        (link, SitePage::file("application/zip", bytes)),
    ])
}
