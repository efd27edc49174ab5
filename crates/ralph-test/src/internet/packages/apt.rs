//! A flat repository for apt.

use ralph_core::id::Digest;

use super::HELLO;
use super::archive::{ar, tar};
use crate::internet::{SitePage, SitePages};

/// Returns a repository with one package that contains the file `/usr/share/NAME`: `/debian/`.
pub fn apt(name: &str) -> SitePages {
    let control = format!(
        "Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@allowed.example>\n\
         Description: says hello\n"
    );
    let hello = format!("{HELLO}\n");
    let bytes = ar(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar", &tar(&[("./control", control.as_bytes())])),
        (
            "data.tar",
            &tar(&[(&format!("./usr/share/{name}"), hello.as_bytes())]),
        ),
    ]);
    let (size, digest) = (bytes.len(), Digest::compute(&bytes));
    let index = format!("{control}Filename: ./{name}.deb\nSize: {size}\nSHA256: {digest}\n");
    // apt writes the paths of a flat repository this way.
    SitePages::from([
        ("/debian/./Packages".to_owned(), SitePage::text(&index)),
        (
            format!("/debian/./{name}.deb"),
            SitePage::file("application/octet-stream", bytes),
        ),
    ])
}
