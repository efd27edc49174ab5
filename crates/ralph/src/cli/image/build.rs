//! `ralph image build`: makes an image.

use std::path::{Path, PathBuf};

use ralph_core::image::{AgentImage, Effort, ImageName};

use super::args::{BuildArgs, Dockerfile};
use super::command::{self, Shown};
use super::nix;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::lint::read;
use crate::config::Settings;
use crate::terminal::line::{Line, Tone};
use crate::wire::image::{Base, ImageError, Images};

/// The name of an image that nobody named.
const DEFAULT_NAME: &str = "ralph:latest";

/// How an image is made.
enum Method {
    /// By the flake that ships with ralph.
    Nix(PathBuf),
    /// From the Dockerfile that ships with ralph.
    Own(AgentImage),
    /// From somebody's Dockerfile.
    File(PathBuf),
}

/// Builds an image and says what it is called.
pub(super) async fn run(
    args: BuildArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let (base, on) = (command::base(settings)?, command::built_on(settings)?);
    let (method, note) = choose(&args, context)?;
    let images = command::images(settings, context).await?;
    let mut shown = Shown::new(context, settings);
    if let Some(note) = note {
        shown.line(&Line::new().quiet(note));
    }
    let built = match method {
        Method::Nix(program) => {
            let tarball = nix::build(&program, context, &mut shown).await?;
            let name = named(&args, &base)?;
            load(&images, &tarball, &name, &mut shown)
                .await
                .map(|()| vec![name])
        }
        Method::Own(agent) => {
            let other = args.tag.as_ref().or(base.name());
            own(&images, agent, on.as_ref(), other, &mut shown).await
        }
        Method::File(path) => {
            let text = dockerfile(context, &path)?;
            let name = named(&args, &base)?;
            let mut watcher = |progress| shown.take(progress);
            images
                .build_file(&name, &text, on.as_ref(), &mut watcher)
                .await
                .map(|()| vec![name])
        }
    };
    let names = match built {
        Ok(names) => names,
        Err(error) => return Err(shown.failed(&error)),
    };
    for name in &names {
        shown.line(&Line::new().with(Tone::Good, "built ").strong(name.as_str()));
    }
    if let Some(hint) = hint(&names, &base) {
        shown.line(&Line::new().quiet(&hint));
    }
    Ok(ExitCode::Success)
}

/// Returns how the image is made, and what to say about that choice.
fn choose(args: &BuildArgs, context: &Context) -> Result<(Method, Option<&'static str>), CliError> {
    let agent = args.agent.unwrap_or(AgentImage::Plain);
    match &args.dockerfile {
        Some(Dockerfile::File(_)) if args.agent.is_some() => Err(CliError::usage(
            "--agent <NAME> does not go with --dockerfile <FILE>",
            "an agent's image has a Dockerfile of its own",
            "leave one of them out",
        )),
        Some(Dockerfile::File(file)) => Ok((Method::File(file.clone()), None)),
        Some(Dockerfile::Own) => Ok((Method::Own(agent), None)),
        None if args.agent.is_some() => Ok((Method::Own(agent), None)),
        None => match nix::find(context) {
            Some(program) => Ok((Method::Nix(program), None)),
            None if args.nix => Err(CliError::runtime(
                "cannot build the image with nix",
                "there is no `nix` on PATH",
                "install it, or use `ralph image build --dockerfile`",
            )),
            None => Ok((
                Method::Own(agent),
                Some("nix is not installed: building from the Dockerfile that ships with ralph"),
            )),
        },
    }
}

/// Builds an agent's image, and gives it another name if one was asked for.
async fn own(
    images: &Images,
    agent: AgentImage,
    on: Option<&ImageName>,
    other: Option<&ImageName>,
    shown: &mut Shown<'_>,
) -> Result<Vec<ImageName>, ImageError> {
    let mut watcher = |progress| shown.take(progress);
    let built = images
        .ensure_base(agent, on, Effort::Build, &mut watcher)
        .await?;
    let mut names = vec![built.clone()];
    if let Some(other) = other {
        images.tag(&built, other).await?;
        names.push(other.clone());
    }
    Ok(names)
}

/// Loads what nix made and gives it its name.
async fn load(
    images: &Images,
    tarball: &Path,
    name: &ImageName,
    shown: &mut Shown<'_>,
) -> Result<(), ImageError> {
    let mut watcher = |progress| shown.take(progress);
    let loaded = images.load(tarball, &mut watcher).await?;
    match loaded.first() {
        Some(image) if image != name => images.tag(image, name).await,
        Some(_) | None => Ok(()),
    }
}

/// Returns the name that was asked for, by a flag or in the settings.
fn named(args: &BuildArgs, base: &Base) -> Result<ImageName, CliError> {
    match args.tag.as_ref().or(base.name()) {
        Some(name) => Ok(name.clone()),
        None => ImageName::parse(DEFAULT_NAME).map_err(|error| {
            CliError::runtime("cannot name the image", error.to_string(), "use --tag")
        }),
    }
}

fn dockerfile(context: &Context, path: &Path) -> Result<Vec<u8>, CliError> {
    read(path, context).map_err(|error| {
        CliError::runtime(
            format!("cannot read the Dockerfile `{}`", path.display()),
            error.to_string(),
            error.hint(),
        )
    })
}

/// Says how a run comes to use what was built, if it would not by itself.
fn hint(names: &[ImageName], base: &Base) -> Option<String> {
    let used = match base {
        Base::Agent { .. } => names
            .iter()
            .any(|name| name.repository().starts_with("agent-loop-sandbox-")),
        Base::Named(used) => names.contains(used),
    };
    let name = names.last().filter(|_| !used)?;
    Some(format!(
        "to use it, set `image = \"{name}\"` under `[sandbox]` in ralph.toml"
    ))
}
