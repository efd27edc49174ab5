//! What an image is made from.

use ralph_core::image::{AgentImage, ImageName, InvalidImageName, ProjectConfig};

/// What an image is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecipe {
    /// The agent that runs in it.
    pub agent: AgentImage,
    /// What the project's layer is put on.
    pub base: ImageBase,
    /// The project, where one is known.
    pub project: Option<ImageProject>,
}

/// What a project's layer is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageBase {
    /// The agent's own image, made when it is first needed.
    Agent {
        /// What it is built on instead of what its Dockerfile says.
        on: Option<ImageName>,
    },
    /// An image that somebody else cares for. It must be there.
    Named(ImageName),
}

/// A project that may want a layer of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageProject {
    /// The name of its directory.
    pub name: String,
    /// Its `.agent-loop` directory.
    pub config: ProjectConfig,
}

impl ImageBase {
    /// The name that means the agent's own image.
    pub const AUTO: &'static str = "auto";

    /// Reads the setting for the image, and the one for what the agents' images are built on.
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

    /// Returns the image's name, where somebody gave it one.
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
