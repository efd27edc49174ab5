//! The arguments of `ralph image`.

use clap::{Args, Subcommand};
use ralph_app::image::DockerfileChoice;
use ralph_core::image::{AgentImage, ImageName};

/// Arguments of `image`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImageArgs {
    #[command(subcommand)]
    pub command: ImageCommand,
}

impl ImageArgs {
    /// Returns whether the output is JSON.
    pub(in crate::cli) fn is_json(&self) -> bool {
        match &self.command {
            ImageCommand::Status(args) => args.json,
            ImageCommand::Build(_) | ImageCommand::Pull(_) => false,
        }
    }
}

/// The subcommands of `image`.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ImageCommand {
    /// Build an image with nix if it is installed, or else from a Dockerfile
    #[command(
        after_help = "Examples:\n  ralph image build\n  ralph image build --agent claude\n  ralph image build --dockerfile my.Dockerfile --tag my-image:1"
    )]
    Build(BuildArgs),
    /// Pull an image from its registry, unless it exists locally
    Pull(PullArgs),
    /// Show whether an image exists locally; the exit code is 0 even without a Docker Engine
    Status(StatusArgs),
}

/// Arguments of `image build`.
#[derive(Debug, Args)]
pub(in crate::cli) struct BuildArgs {
    /// Build with nix
    #[arg(long, conflicts_with_all = ["dockerfile", "agent"])]
    pub nix: bool,
    /// Build from this Dockerfile, or from the one that ships with ralph
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_parser = parse_dockerfile)]
    pub dockerfile: Option<DockerfileChoice>,
    /// Build the image of this agent: claude, codex or plain
    #[arg(long, value_name = "NAME", value_parser = AgentImage::parse)]
    pub agent: Option<AgentImage>,
    /// Also give the image this name
    #[arg(long, value_name = "NAME", value_parser = ImageName::parse)]
    pub tag: Option<ImageName>,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "clap takes functions that can fail"
)]
fn parse_dockerfile(text: &str) -> Result<DockerfileChoice, std::convert::Infallible> {
    Ok(match text {
        "" => DockerfileChoice::Bundled,
        path => DockerfileChoice::File(path.into()),
    })
}

/// Arguments of `image pull`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PullArgs {
    /// Pull this image instead of the one in ralph.toml
    #[arg(long, value_name = "NAME", value_parser = ImageName::parse)]
    pub image: Option<ImageName>,
    /// Pull it even if it exists locally
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `image status`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
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
