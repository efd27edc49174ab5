//! `ralph image build`: makes an image.

use std::path::{Path, PathBuf};

use ralph_core::image::{AgentImage, ImageEffort, ImageName};

use super::args::{BuildArgs, DockerfileChoice};
use super::command::{self, ImageProgressOutput};
use super::nix;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::lint::read_task_bytes;
use crate::config::Settings;
use crate::providers::image::{DockerImages, ImageBase, ImageError};
use crate::terminal::styled_line::{StyledLine, Tone};

/// The name of an image that nobody named.
const DEFAULT_NAME: &str = "ralph:latest";

/// How an image is made.
enum BuildMethod {
    /// By the flake that ships with ralph.
    Nix(PathBuf),
    /// From the Dockerfile that ships with ralph.
    BundledDockerfile(AgentImage),
    /// From somebody's Dockerfile.
    Dockerfile(PathBuf),
}

/// Builds an image and says what it is called.
pub(super) async fn run(
    args: BuildArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let (base, on) = (
        command::configured_base(settings)?,
        command::agent_base_image(settings)?,
    );
    let (method, note) = choose_method(&args, context)?;
    let images = command::connect_images(settings, context).await?;
    let mut shown = ImageProgressOutput::new(context, settings);
    if let Some(note) = note {
        shown.line(&StyledLine::new().quiet(note));
    }
    let built = match method {
        BuildMethod::Nix(program) => {
            let tarball = nix::build(&program, context, &mut shown).await?;
            let name = requested_name(&args, &base)?;
            load_nix_image(&images, &tarball, &name, &mut shown)
                .await
                .map(|()| vec![name])
        }
        BuildMethod::BundledDockerfile(agent) => {
            let other = args.tag.as_ref().or(base.name());
            build_agent_image(&images, agent, on.as_ref(), other, &mut shown).await
        }
        BuildMethod::Dockerfile(path) => {
            let text = read_dockerfile(context, &path)?;
            let name = requested_name(&args, &base)?;
            let mut watcher = |progress| shown.show(progress);
            images
                .build_file(&name, &text, on.as_ref(), &mut watcher)
                .await
                .map(|()| vec![name])
        }
    };
    let names = match built {
        Ok(names) => names,
        Err(error) => return Err(shown.into_error(&error)),
    };
    for name in &names {
        shown.line(
            &StyledLine::new()
                .span(Tone::Good, "built ")
                .strong(name.as_str()),
        );
    }
    if let Some(hint) = usage_hint(&names, &base) {
        shown.line(&StyledLine::new().quiet(&hint));
    }
    Ok(ExitCode::Success)
}

/// Returns how the image is made, and what to say about that choice.
fn choose_method(
    args: &BuildArgs,
    context: &Context,
) -> Result<(BuildMethod, Option<&'static str>), CliError> {
    let agent = args.agent.unwrap_or(AgentImage::Plain);
    match &args.dockerfile {
        Some(DockerfileChoice::File(_)) if args.agent.is_some() => Err(CliError::usage(
            "--agent <NAME> does not go with --dockerfile <FILE>",
            "an agent's image has a Dockerfile of its own",
            "leave one of them out",
        )),
        Some(DockerfileChoice::File(file)) => Ok((BuildMethod::Dockerfile(file.clone()), None)),
        Some(DockerfileChoice::Bundled) => Ok((BuildMethod::BundledDockerfile(agent), None)),
        None if args.agent.is_some() => Ok((BuildMethod::BundledDockerfile(agent), None)),
        None => match nix::find_nix(context) {
            Some(program) => Ok((BuildMethod::Nix(program), None)),
            None if args.nix => Err(CliError::runtime(
                "cannot build the image with nix",
                "there is no `nix` on PATH",
                "install it, or use `ralph image build --dockerfile`",
            )),
            None => Ok((
                BuildMethod::BundledDockerfile(agent),
                Some("nix is not installed: building from the Dockerfile that ships with ralph"),
            )),
        },
    }
}

/// Builds an agent's image, and gives it another name if one was asked for.
async fn build_agent_image(
    images: &DockerImages,
    agent: AgentImage,
    on: Option<&ImageName>,
    other: Option<&ImageName>,
    shown: &mut ImageProgressOutput<'_>,
) -> Result<Vec<ImageName>, ImageError> {
    let mut watcher = |progress| shown.show(progress);
    let built = images
        .ensure_base(agent, on, ImageEffort::Build, &mut watcher)
        .await?;
    let mut names = vec![built.clone()];
    if let Some(other) = other {
        images.tag(&built, other).await?;
        names.push(other.clone());
    }
    Ok(names)
}

/// Loads what nix made and gives it its name.
async fn load_nix_image(
    images: &DockerImages,
    tarball: &Path,
    name: &ImageName,
    shown: &mut ImageProgressOutput<'_>,
) -> Result<(), ImageError> {
    let mut watcher = |progress| shown.show(progress);
    let loaded = images.load(tarball, &mut watcher).await?;
    match loaded.first() {
        Some(image) if image != name => images.tag(image, name).await,
        Some(_) | None => Ok(()),
    }
}

/// Returns the name that was asked for, by a flag or in the settings.
fn requested_name(args: &BuildArgs, base: &ImageBase) -> Result<ImageName, CliError> {
    match args.tag.as_ref().or(base.name()) {
        Some(name) => Ok(name.clone()),
        None => ImageName::parse(DEFAULT_NAME).map_err(|error| {
            CliError::runtime("cannot name the image", error.to_string(), "use --tag")
        }),
    }
}

fn read_dockerfile(context: &Context, path: &Path) -> Result<Vec<u8>, CliError> {
    read_task_bytes(path, context).map_err(|error| {
        CliError::runtime(
            format!("cannot read the Dockerfile `{}`", path.display()),
            error.to_string(),
            error.hint(),
        )
    })
}

/// Says how a run comes to use what was built, if it would not by itself.
fn usage_hint(names: &[ImageName], base: &ImageBase) -> Option<String> {
    let used = match base {
        ImageBase::Agent { .. } => names
            .iter()
            .any(|name| name.repository().starts_with("agent-loop-sandbox-")),
        ImageBase::Named(used) => names.contains(used),
    };
    let name = names.last().filter(|_| !used)?;
    Some(format!(
        "to use it, set `image = \"{name}\"` under `[sandbox]` in ralph.toml"
    ))
}
