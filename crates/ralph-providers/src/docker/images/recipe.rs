//! What an image is made from.

use ralph_core::image::{AgentImage, BadImageName, ImageName, ProjectConfig};

/// What an image is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The agent that runs in it.
    pub agent: AgentImage,
    /// What the project's layer is put on.
    pub base: Base,
    /// The project, where one is known.
    pub project: Option<Project>,
}

/// What a project's layer is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
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
pub struct Project {
    /// The name of its directory.
    pub name: String,
    /// Its `.agent-loop` directory.
    pub config: ProjectConfig,
}

impl Base {
    /// The name that means the agent's own image.
    pub const AUTO: &'static str = "auto";

    /// Reads the setting for the image, and the one for what the agents' images are built on.
    pub fn of_settings(image: &str, base_image: &str) -> Result<Self, BadImageName> {
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
        assert_eq!(Base::of_settings("auto", ""), Ok(Base::Agent { on: None }));
        assert_eq!(
            Base::of_settings("auto", "corp/node:1"),
            Ok(Base::Agent {
                on: Some(name("corp/node:1"))
            })
        );
        assert_eq!(
            Base::of_settings("ralph:latest", "ignored"),
            Ok(Base::Named(name("ralph:latest")))
        );
        assert!(Base::of_settings("My Image", "").is_err());
        assert!(Base::of_settings("auto", "My Image").is_err());
    }
}
