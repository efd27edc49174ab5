//! The description of a sandbox image.

use ralph_core::image::{AgentImage, ImageName, InvalidImageName, ProjectConfig};

/// The description of a sandbox image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecipe {
    pub agent: AgentImage,
    pub base: ImageBase,
    pub project: Option<ImageProject>,
}

/// The image below a project's layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageBase {
    /// The agent's own image, built on first use.
    Agent {
        /// Overrides the base image of the agent's Dockerfile.
        on: Option<ImageName>,
    },
    /// An existing image that ralph does not build.
    Named(ImageName),
}

/// A project that may have its own layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageProject {
    /// The name of the project directory.
    pub name: String,
    /// The `.agent-loop` directory.
    pub config: ProjectConfig,
}

impl ImageBase {
    /// The setting that selects the agent's own image.
    pub const AUTO: &'static str = "auto";

    /// Parses the image setting and the base image setting.
    pub fn from_settings(image: &str, base_image: &str) -> Result<Self, InvalidImageName> {
        if image != Self::AUTO {
            return ImageName::parse(image).map(Self::Named);
        }
        let on = match base_image {
            "" => None,
            name => Some(ImageName::parse(name)?),
        };
        Ok(Self::Agent { on })
    }

    /// Returns the configured image name, if there is one.
    pub fn name(&self) -> Option<&ImageName> {
        match self {
            Self::Named(name) => Some(name),
            Self::Agent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_choose_the_base() {
        let name = |text: &str| ImageName::parse(text).unwrap();
        assert_eq!(
            ImageBase::from_settings("auto", ""),
            Ok(ImageBase::Agent { on: None })
        );
        assert_eq!(
            ImageBase::from_settings("auto", "corp/node:1"),
            Ok(ImageBase::Agent {
                on: Some(name("corp/node:1"))
            })
        );
        assert_eq!(
            ImageBase::from_settings("ralph:latest", "ignored"),
            Ok(ImageBase::Named(name("ralph:latest")))
        );
        assert!(ImageBase::from_settings("My Image", "").is_err());
        assert!(ImageBase::from_settings("auto", "My Image").is_err());
    }
}
