//! What can be typed after `ralph image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ralph_core::image::{AgentImage, ImageName};

/// Arguments of `image`.
#[derive(Debug, Args)]
pub struct ImageArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ImageCommand,
}

impl ImageArgs {
    /// Tells whether its output is meant for a script.
    pub fn is_json(&self) -> bool {
        match &self.command {
            ImageCommand::Status(args) => args.json,
            ImageCommand::Build(_) | ImageCommand::Pull(_) => false,
        }
    }
}

/// What can be done with images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Build an image, with nix where it is installed, else from a Dockerfile
    #[command(
        after_help = "Examples:\n  ralph image build\n  ralph image build --agent claude\n  ralph image build --dockerfile my.Dockerfile --tag my-image:1"
    )]
    Build(BuildArgs),
    /// Pull an image from its registry, unless it is here already
    Pull(PullArgs),
    /// Show whether an image is here; the exit code is 0 even without a Docker Engine
    Status(StatusArgs),
}

/// Arguments of `image build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Build with nix
    #[arg(long, conflicts_with_all = ["dockerfile", "agent"])]
    pub nix: bool,
    /// Build from this Dockerfile, or from the one that ships with ralph
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_parser = DockerfileChoice::parse)]
    pub dockerfile: Option<DockerfileChoice>,
    /// Build the image of this agent: claude, codex or plain
    #[arg(long, value_name = "NAME", value_parser = AgentImage::parse)]
    pub agent: Option<AgentImage>,
    /// Give the image this name, too
    #[arg(long, value_name = "NAME", value_parser = ImageName::parse)]
    pub tag: Option<ImageName>,
}

/// Which Dockerfile is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerfileChoice {
    /// The one that ships with ralph.
    Bundled,
    /// Somebody's.
    File(PathBuf),
}

impl DockerfileChoice {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "clap takes functions that can fail"
    )]
    fn parse(text: &str) -> Result<Self, std::convert::Infallible> {
        Ok(match text {
            "" => Self::Bundled,
            path => Self::File(PathBuf::from(path)),
        })
    }
}

/// Arguments of `image pull`.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// Pull this image instead of the one in ralph.toml
    #[arg(long, value_name = "NAME", value_parser = ImageName::parse)]
    pub image: Option<ImageName>,
    /// Pull it even if it is here already
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `image status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show this image instead of the one in ralph.toml
    #[arg(long, value_name = "NAME", value_parser = ImageName::parse)]
    pub image: Option<ImageName>,
    /// Show the image of this agent: claude, codex or plain
    #[arg(long, value_name = "NAME", conflicts_with = "image", value_parser = AgentImage::parse)]
    pub agent: Option<AgentImage>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
