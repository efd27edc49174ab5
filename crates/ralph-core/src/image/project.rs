//! A project's `.agent-loop` directory, and the layer of an image that it asks for.

use std::collections::BTreeMap;

use super::dependencies::{self, DependencyError};

/// A Dockerfile of the project's own.
const DOCKERFILE: &str = "Dockerfile.sandbox";

/// A list of packages.
const DEPENDENCIES: &str = "dependencies";

/// Settings of ralph, which are no part of an image.
const SETTINGS: &str = "config.json";

/// The files of a project's `.agent-loop` directory, by their paths in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectConfig {
    /// The files.
    pub files: BTreeMap<String, ProjectConfigFile>,
}

/// One file of a project's `.agent-loop` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectConfigFile {
    /// What it is.
    pub kind: ProjectConfigFileKind,
    /// What is in it; of a link, where it leads.
    pub bytes: Vec<u8>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectConfigFileKind {
    /// A file.
    Regular,
    /// A file that can be executed.
    Executable,
    /// A symbolic link.
    Link,
}

/// Which of a project's files says how its image is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSource {
    /// `Dockerfile.sandbox`, which wins.
    Dockerfile,
    /// `dependencies`.
    Dependencies,
}

/// What a project's layer is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLayer {
    /// The Dockerfile, written by the project or made from its packages.
    pub dockerfile: Vec<u8>,
    /// What the Dockerfile may copy.
    pub context: BTreeMap<String, ProjectConfigFile>,
}

/// Why a project's layer cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectLayerError {
    /// The list of packages is wrong.
    #[error(transparent)]
    Dependencies(#[from] DependencyError),
    /// A link could lead anywhere.
    #[error("`.agent-loop/{path}` is a symbolic link, it must be a file")]
    Link {
        /// The file.
        path: &'static str,
    },
}

impl ImageSource {
    /// Returns the name of the file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Dockerfile => DOCKERFILE,
            Self::Dependencies => DEPENDENCIES,
        }
    }

    /// Finds what says how a project's image is made, among the paths in its `.agent-loop`.
    pub fn find<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        paths.into_iter().fold(None, |found, path| match path {
            DOCKERFILE => Some(Self::Dockerfile),
            DEPENDENCIES => found.or(Some(Self::Dependencies)),
            _ => found,
        })
    }
}

impl ProjectConfig {
    /// The directory in a project.
    pub const DIRECTORY: &'static str = ".agent-loop";

    /// Makes one of regular files.
    pub fn from_files<P: Into<String>, B: Into<Vec<u8>>>(
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        let file = |(path, bytes): (P, B)| {
            let bytes = bytes.into();
            let kind = ProjectConfigFileKind::Regular;
            (path.into(), ProjectConfigFile { kind, bytes })
        };
        Self {
            files: files.into_iter().map(file).collect(),
        }
    }

    /// Finds what says how the project's image is made.
    pub fn image_source(&self) -> Option<ImageSource> {
        ImageSource::find(self.files.keys().map(String::as_str))
    }

    /// Returns the layer that the project asks for; none if it asks for nothing.
    pub fn layer(&self) -> Result<Option<ProjectLayer>, ProjectLayerError> {
        let Some(kind) = self.image_source() else {
            return Ok(None);
        };
        let path = kind.file_name();
        let Some(file) = self.files.get(path) else {
            return Ok(None);
        };
        if file.kind == ProjectConfigFileKind::Link {
            return Err(ProjectLayerError::Link { path });
        }
        Ok(match kind {
            ImageSource::Dockerfile => Some(ProjectLayer {
                dockerfile: file.bytes.clone(),
                context: self.context(),
            }),
            ImageSource::Dependencies => {
                let packages = dependencies::parse(&file.bytes)?;
                (!packages.is_empty()).then(|| ProjectLayer {
                    dockerfile: dependencies::dockerfile(&packages).into_bytes(),
                    context: BTreeMap::new(),
                })
            }
        })
    }

    /// Returns what the project's own Dockerfile may copy.
    fn context(&self) -> BTreeMap<String, ProjectConfigFile> {
        let is_copied = |path: &str| path != DOCKERFILE && path != SETTINGS;
        self.files
            .iter()
            .filter(|(path, _)| is_copied(path))
            .map(|(path, file)| (path.clone(), file.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(files: &[(&str, &str)]) -> Result<Option<ProjectLayer>, ProjectLayerError> {
        ProjectConfig::from_files(files.iter().copied()).layer()
    }

    #[test]
    fn a_dockerfile_is_preferred_to_packages() {
        for paths in [
            ["dependencies", "Dockerfile.sandbox"],
            ["Dockerfile.sandbox", "dependencies"],
        ] {
            assert_eq!(ImageSource::find(paths), Some(ImageSource::Dockerfile));
        }
    }

    #[test]
    fn each_file_is_found_alone_with_its_path() {
        for (path, kind) in [
            ("Dockerfile.sandbox", ImageSource::Dockerfile),
            ("dependencies", ImageSource::Dependencies),
        ] {
            assert_eq!(ImageSource::find([path, "other"]), Some(kind));
            assert_eq!(kind.file_name(), path);
        }
    }

    #[test]
    fn a_project_without_either_file_has_no_source() {
        for paths in [&[][..], &["config.json"], &["x/dependencies", "Dockerfile"]] {
            assert_eq!(ImageSource::find(paths.iter().copied()), None, "{paths:?}");
        }
        assert_eq!(layer(&[("config.json", "{}")]), Ok(None));
    }

    #[test]
    fn packages_make_a_dockerfile_that_copies_nothing() {
        let made = layer(&[("dependencies", "jq # json\n"), ("secret.txt", "x")]);
        let expected = ProjectLayer {
            dockerfile: dependencies::dockerfile(&["jq".to_owned()]).into_bytes(),
            context: BTreeMap::new(),
        };
        assert_eq!(made, Ok(Some(expected)));
    }

    #[test]
    fn an_empty_list_of_packages_makes_no_layer() {
        assert_eq!(layer(&[("dependencies", "# nothing yet\n")]), Ok(None));
    }

    #[test]
    fn a_dockerfile_sees_its_directory_but_for_the_settings() {
        let made = layer(&[
            ("Dockerfile.sandbox", "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n"),
            ("config.json", "{}"),
            ("dependencies", "jq\n"),
            ("files/setup.sh", "true\n"),
        ]);
        let copied =
            ProjectConfig::from_files([("dependencies", "jq\n"), ("files/setup.sh", "true\n")]);
        let expected = ProjectLayer {
            dockerfile: b"ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n".to_vec(),
            context: copied.files,
        };
        assert_eq!(made, Ok(Some(expected)));
    }

    #[test]
    fn unusable_files_are_reported() {
        let mut config = ProjectConfig::from_files([("Dockerfile.sandbox", "../../Dockerfile")]);
        config
            .files
            .values_mut()
            .for_each(|file| file.kind = ProjectConfigFileKind::Link);
        assert_eq!(
            config.layer().unwrap_err().to_string(),
            "`.agent-loop/Dockerfile.sandbox` is a symbolic link, it must be a file"
        );
        assert_eq!(
            layer(&[("dependencies", "jq git")])
                .unwrap_err()
                .to_string(),
            "`.agent-loop/dependencies` line 1: `jq git` is no package: one package per line"
        );
    }
}
