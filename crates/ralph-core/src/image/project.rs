//! A project's `.agent-loop` directory and the image layer that it defines.

use std::collections::BTreeMap;

use super::dependencies::{self, DependencyError};

/// The project's own Dockerfile.
const DOCKERFILE: &str = "Dockerfile.sandbox";

/// The list of packages.
const DEPENDENCIES: &str = "dependencies";

/// Settings of ralph, which are not part of the image.
const SETTINGS: &str = "config.json";

/// The files of a project's `.agent-loop` directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectConfig {
    /// By path relative to the directory.
    pub files: BTreeMap<String, ProjectConfigFile>,
}

/// One file of a project's `.agent-loop` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectConfigFile {
    pub kind: ProjectConfigFileKind,
    /// The content; for a link, its target.
    pub bytes: Vec<u8>,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectConfigFileKind {
    /// A regular file that is not executable.
    Regular,
    /// An executable file.
    Executable,
    /// A symbolic link.
    Link,
}

/// The file that defines a project's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSource {
    /// `Dockerfile.sandbox`, which takes precedence.
    Dockerfile,
    /// `dependencies`.
    Dependencies,
}

/// The inputs of a project's layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLayer {
    /// Written by the project or generated from its packages.
    pub dockerfile: Vec<u8>,
    /// The files that the Dockerfile may copy, by path.
    pub context: BTreeMap<String, ProjectConfigFile>,
}

/// The reason why a project's layer cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectLayerError {
    /// The list of packages is invalid.
    #[error(transparent)]
    Dependencies(#[from] DependencyError),
    /// The file is a symbolic link, which could point anywhere.
    #[error("`.agent-loop/{path}` is a symbolic link; it must be a regular file")]
    Link { path: &'static str },
}

impl ImageSource {
    /// Returns the name of the file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Dockerfile => DOCKERFILE,
            Self::Dependencies => DEPENDENCIES,
        }
    }

    /// Finds the defining file among the paths in `.agent-loop`.
    pub fn find<'a>(paths: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        paths.into_iter().fold(None, |found, path| match path {
            DOCKERFILE => Some(Self::Dockerfile),
            DEPENDENCIES => found.or(Some(Self::Dependencies)),
            _ => found,
        })
    }
}

impl ProjectConfig {
    /// The name of the directory in a project.
    pub const DIRECTORY: &'static str = ".agent-loop";

    /// Creates a configuration from regular files.
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

    /// Returns the file that defines the project's image.
    pub fn image_source(&self) -> Option<ImageSource> {
        ImageSource::find(self.files.keys().map(String::as_str))
    }

    /// Returns the project's layer, or `None` if the project defines none.
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

    /// Returns the files that the project's own Dockerfile may copy.
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
    fn each_source_file_is_found_and_named() {
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
    fn packages_generate_a_dockerfile_without_a_context() {
        let actual = layer(&[("dependencies", "jq # json\n"), ("secret.txt", "x")]);
        let expected = ProjectLayer {
            dockerfile: dependencies::dockerfile(&["jq".to_owned()]).into_bytes(),
            context: BTreeMap::new(),
        };
        assert_eq!(actual, Ok(Some(expected)));
    }

    #[test]
    fn an_empty_list_of_packages_defines_no_layer() {
        assert_eq!(layer(&[("dependencies", "# nothing yet\n")]), Ok(None));
    }

    #[test]
    fn a_dockerfile_may_copy_its_directory_except_the_settings() {
        let actual = layer(&[
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
        assert_eq!(actual, Ok(Some(expected)));
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
            "`.agent-loop/Dockerfile.sandbox` is a symbolic link; it must be a regular file"
        );
        assert_eq!(
            layer(&[("dependencies", "jq git")])
                .unwrap_err()
                .to_string(),
            "`.agent-loop/dependencies` line 1: `jq git` is not a package name: one package per line"
        );
    }
}
