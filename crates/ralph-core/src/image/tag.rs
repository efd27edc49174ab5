//! Names of images. A tag contains a digest of the inputs of the image.

use super::agent::AgentImage;
use super::name::{ImageName, is_separator};
use super::project::{ProjectConfigFile, ProjectConfigFileKind, ProjectLayer};
use crate::id::Digest;

/// Number of hexadecimal digits of the digest in a tag.
const DIGEST_DIGITS: usize = 8;

/// The longest name of a project in a tag.
const MAX_PROJECT_CHARS: usize = 100;

/// Returns the name of an agent's image, built from `dockerfile` on the image `base_digest`.
pub fn base_tag(agent: AgentImage, dockerfile: &str, base_digest: &str) -> ImageName {
    let dockerfile = Digest::compute(dockerfile.as_bytes());
    let base = Digest::compute(base_digest.as_bytes());
    let hash = short_digest(format!("{}:{}", dockerfile.as_str(), base.as_str()).as_bytes());
    ImageName::from_checked(format!("agent-loop-sandbox-{agent}:v{hash}"))
}

/// Returns the name of a project's image, built on the image `base`.
///
/// The digest covers the name `base`, the Dockerfile and all files that it may copy.
pub fn project_tag(
    agent: AgentImage,
    project: &str,
    base: &ImageName,
    layer: &ProjectLayer,
) -> ImageName {
    let mut content = base.as_str().as_bytes().to_vec();
    content.extend_from_slice(&layer.dockerfile);
    for (path, file) in &layer.context {
        content.extend_from_slice(file_entry(path, file).as_bytes());
    }
    let project = project_name(project);
    ImageName::from_checked(format!(
        "agent-loop-sandbox-{agent}-{project}:v{}",
        short_digest(&content)
    ))
}

/// Returns the digest input of a file. A path cannot contain NUL, so entries are unambiguous.
fn file_entry(path: &str, file: &ProjectConfigFile) -> String {
    let kind = match file.kind {
        ProjectConfigFileKind::Regular => "file",
        ProjectConfigFileKind::Executable => "program",
        ProjectConfigFileKind::Link => "link",
    };
    format!(
        "\0{path}\0{kind}\0{}",
        Digest::compute(&file.bytes).as_str()
    )
}

fn short_digest(bytes: &[u8]) -> String {
    Digest::compute(bytes).as_str()[..DIGEST_DIGITS].to_owned()
}

/// Converts a project's name to a component of an image name: lower-case letters and digits with
/// valid separators between them.
pub fn project_name(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_gap = |c: char| matches!(c, '.' | '_' | '-');
    let replaced: String = name
        .to_lowercase()
        .chars()
        .map(|c| if is_word(c) || is_gap(c) { c } else { '-' })
        .take(MAX_PROJECT_CHARS)
        .collect();
    let mut component = String::new();
    let mut rest = replaced.trim_matches(is_gap);
    while let Some(start) = rest.find(is_gap) {
        let (word, after) = rest.split_at(start);
        let end = after.find(is_word).unwrap_or(after.len());
        let (gap, after) = after.split_at(end);
        component.push_str(word);
        component.push_str(if is_separator(gap) { gap } else { "-" });
        rest = after;
    }
    component.push_str(rest);
    if component.is_empty() {
        "project".to_owned()
    } else {
        component
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::image::ProjectConfig;

    fn layer(dockerfile: &str, files: &[(&str, &str)]) -> ProjectLayer {
        ProjectLayer {
            dockerfile: dockerfile.as_bytes().to_vec(),
            context: ProjectConfig::from_files(files.iter().copied()).files,
        }
    }

    fn base() -> ImageName {
        ImageName::parse("agent-loop-sandbox-claude:v3a8f2b1c").unwrap()
    }

    #[test]
    fn a_base_tag_is_valid_and_has_eight_digits() {
        let tag = base_tag(AgentImage::Claude, "FROM x\n", "sha256:1");
        assert_eq!(ImageName::parse(tag.as_str()), Ok(tag.clone()));
        assert_eq!(tag.as_str(), "agent-loop-sandbox-claude:vcdb9d7b1");
    }

    #[test]
    fn a_base_tag_changes_with_the_dockerfile_and_with_the_base() {
        let tag = |dockerfile, digest| base_tag(AgentImage::Plain, dockerfile, digest);
        assert_eq!(tag("a", "b"), tag("a", "b"));
        assert_ne!(tag("a", "b"), tag("c", "b"));
        assert_ne!(tag("a", "b"), tag("a", "c"));
    }

    #[test]
    fn a_project_tag_has_agent_project_and_eight_digits() {
        let tag = project_tag(
            AgentImage::Claude,
            "elasticsearch",
            &base(),
            &layer("FROM x\n", &[]),
        );
        assert_eq!(ImageName::parse(tag.as_str()), Ok(tag.clone()));
        assert_eq!(
            tag.as_str(),
            "agent-loop-sandbox-claude-elasticsearch:vc458c6ee"
        );
    }

    #[test]
    fn a_project_tag_changes_with_each_input() {
        let tag = |dockerfile, files: &[(&str, &str)]| {
            project_tag(AgentImage::Codex, "p", &base(), &layer(dockerfile, files))
        };
        let first = tag("a", &[]);
        assert_eq!(first, tag("a", &[]));
        let mut executable = layer("a", &[("x", "1")]);
        executable
            .context
            .values_mut()
            .for_each(|file| file.kind = ProjectConfigFileKind::Executable);
        let others = [
            tag("b", &[]),
            tag("a", &[("x", "1")]),
            tag("a", &[("x", "2")]),
            tag("a", &[("y", "1")]),
            tag("a", &[("x", "1"), ("y", "1")]),
            project_tag(AgentImage::Codex, "p", &base(), &executable),
        ];
        let different: BTreeSet<&str> = others.iter().map(ImageName::as_str).collect();
        assert_eq!(different.len(), others.len());
        assert!(!different.contains(first.as_str()));
    }

    #[test]
    fn a_project_tag_changes_with_the_base_image() {
        let other = ImageName::parse("agent-loop-sandbox-claude:v00000000").unwrap();
        let layer = layer("a", &[]);
        assert_ne!(
            project_tag(AgentImage::Claude, "p", &base(), &layer),
            project_tag(AgentImage::Claude, "p", &other, &layer)
        );
    }

    #[test]
    fn every_project_name_becomes_a_valid_component() {
        let long = "x".repeat(300);
        for (name, component) in [
            ("elasticsearch", "elasticsearch"),
            ("MyProject", "myproject"),
            ("my project", "my-project"),
            (".dotfiles", "dotfiles"),
            ("my_proj", "my_proj"),
            ("a--b", "a--b"),
            ("a__b.c", "a__b.c"),
            ("a..b", "a-b"),
            ("a._b", "a-b"),
            ("a___b", "a-b"),
            ("-x-", "x"),
            ("", "project"),
            ("...", "project"),
            ("日本", "project"),
            ("café", "caf"),
            ("café 2", "caf--2"),
            ("ÀB", "b"),
            (long.as_str(), &long[..100]),
        ] {
            assert_eq!(project_name(name), component, "{name:?}");
            assert!(
                ImageName::parse(&format!("agent-loop-sandbox-claude-{component}:v1")).is_ok(),
                "{component:?}"
            );
        }
    }
}
