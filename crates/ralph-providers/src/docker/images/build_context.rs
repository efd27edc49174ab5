//! Packs the files of a build context.

use std::collections::BTreeMap;

use bytes::Bytes;
use ralph_core::image::{ProjectConfigFile, ProjectConfigFileKind};
use tar::{Builder, EntryType, Header};

/// The name of the Dockerfile in every context.
pub(super) const DOCKERFILE: &str = "Dockerfile.sandbox";

/// Packs a Dockerfile and the files it may copy. The archive is deterministic.
pub(super) fn pack(
    dockerfile: &[u8],
    files: &BTreeMap<String, ProjectConfigFile>,
) -> std::io::Result<Bytes> {
    let mut tar = Builder::new(Vec::new());
    append(
        &mut tar,
        DOCKERFILE,
        ProjectConfigFileKind::Regular,
        dockerfile,
    )?;
    for (path, file) in files {
        append(&mut tar, path, file.kind, &file.bytes)?;
    }
    tar.into_inner().map(Bytes::from)
}

fn append(
    tar: &mut Builder<Vec<u8>>,
    path: &str,
    kind: ProjectConfigFileKind,
    bytes: &[u8],
) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match kind {
        ProjectConfigFileKind::Regular | ProjectConfigFileKind::Executable => {
            let mode = if kind == ProjectConfigFileKind::Executable {
                0o755
            } else {
                0o644
            };
            header.set_mode(mode);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, path, bytes)
        }
        ProjectConfigFileKind::Link => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            tar.append_link(&mut header, path, String::from_utf8_lossy(bytes).as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use ralph_core::image::ProjectConfig;

    use super::*;

    #[test]
    fn files_keep_their_path_kind_and_content() {
        let long = format!("{}/x", "d".repeat(150));
        let mut files =
            ProjectConfig::from_files([("run.sh", "true\n"), ("link", "run.sh"), (&long, "y")])
                .files;
        files.get_mut("run.sh").unwrap().kind = ProjectConfigFileKind::Executable;
        files.get_mut("link").unwrap().kind = ProjectConfigFileKind::Link;
        let packed = pack(b"FROM x\n", &files).unwrap();
        assert_eq!(packed, pack(b"FROM x\n", &files).unwrap());

        let mut archive = tar::Archive::new(&packed[..]);
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let link = entry
                .link_name()
                .unwrap()
                .map(|to| to.display().to_string());
            let mode = entry.header().mode().unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            seen.push((path, mode, link.unwrap_or(text)));
        }
        let expected = [
            ("Dockerfile.sandbox", 0o644, "FROM x\n"),
            (long.as_str(), 0o644, "y"),
            ("link", 0o777, "run.sh"),
            ("run.sh", 0o755, "true\n"),
        ];
        assert_eq!(
            seen,
            expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned()))
        );
    }

    #[test]
    fn paths_outside_the_context_are_rejected() {
        for path in ["../x", "a/../../x"] {
            let files = ProjectConfig::from_files([(path, "x")]).files;
            assert!(pack(b"FROM x\n", &files).is_err(), "{path}");
        }
    }
}
