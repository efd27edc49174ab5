//! Builds images.

use std::path::{Path, PathBuf};

use ralph_core::image::{AgentImage, ImageEffort, ImageName};

use super::engine::{agent_base_image, configured_base, connect_images};
use super::ensure::build_error;
use super::{ImageProgressSink, nix};
use crate::app::App;
use crate::error::AppError;
use crate::planning::read_task_bytes;
use crate::providers::image::{DockerImages, ImageBase, ImageError};

/// A request to build an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageBuildRequest {
    /// Whether the image must be built with nix.
    pub nix: bool,
    pub dockerfile: Option<DockerfileChoice>,
    /// The agent, if it is an agent's image.
    pub agent: Option<AgentImage>,
    /// The name of the image; for an agent's image, an additional one.
    pub tag: Option<ImageName>,
}

/// The Dockerfile of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerfileChoice {
    /// The Dockerfile that ships with ralph.
    Bundled,
    /// A file of the user.
    File(PathBuf),
}

/// The default name of an image.
const DEFAULT_NAME: &str = "ralph:latest";

/// A method of building an image.
enum BuildMethod {
    /// The flake that ships with ralph.
    Nix(PathBuf),
    /// The Dockerfile that ships with ralph.
    BundledDockerfile(AgentImage),
    /// Another Dockerfile.
    Dockerfile(PathBuf),
}

/// An image build that can start.
pub struct PreparedImageBuild {
    /// The reason for the chosen method, if the user did not choose it.
    pub note: Option<&'static str>,
    images: DockerImages,
    method: BuildMethod,
    /// The image that sandboxes start from.
    base: ImageBase,
    /// The base of the agents' images.
    on: Option<ImageName>,
    tag: Option<ImageName>,
}

/// The images of a finished build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImages {
    pub names: Vec<ImageName>,
    /// The setting that lets runs use the image, if they do not use it already.
    pub hint: Option<String>,
}

impl PreparedImageBuild {
    /// Chooses how the image is built, and connects to the engine.
    pub async fn prepare(request: ImageBuildRequest, app: &App) -> Result<Self, AppError> {
        let settings = &app.settings()?;
        let (base, on) = (configured_base(settings)?, agent_base_image(settings)?);
        let (method, note) = choose_method(&request, app)?;
        Ok(Self {
            note,
            images: connect_images(settings, app).await?,
            method,
            base,
            on,
            tag: request.tag,
        })
    }

    /// Builds and tags the image.
    pub async fn run(
        &self,
        app: &App,
        progress: ImageProgressSink<'_>,
    ) -> Result<BuiltImages, AppError> {
        let (images, on) = (&self.images, self.on.as_ref());
        let built = match &self.method {
            BuildMethod::Nix(program) => {
                let tarball = nix::build(program, app, progress).await?;
                let name = self.requested_name()?;
                load_nix_image(images, &tarball, &name, progress)
                    .await
                    .map(|()| vec![name])
            }
            BuildMethod::BundledDockerfile(agent) => {
                let other = self.tag.as_ref().or(self.base.name());
                build_agent_image(images, *agent, on, other, progress).await
            }
            BuildMethod::Dockerfile(path) => {
                let text = read_dockerfile(app, path)?;
                let name = self.requested_name()?;
                let built = images.build_file(&name, &text, on, progress).await;
                built.map(|()| vec![name])
            }
        };
        let names = built.map_err(|error| build_error(&error))?;
        let hint = usage_hint(&names, &self.base);
        Ok(BuiltImages { names, hint })
    }

    /// Returns the requested name, from a flag or the settings.
    fn requested_name(&self) -> Result<ImageName, AppError> {
        match self.tag.as_ref().or(self.base.name()) {
            Some(name) => Ok(name.clone()),
            None => ImageName::parse(DEFAULT_NAME).map_err(|error| {
                AppError::runtime("cannot name the image", error.to_string(), "use --tag")
            }),
        }
    }
}

/// Returns the build method and a note about that choice.
fn choose_method(
    request: &ImageBuildRequest,
    app: &App,
) -> Result<(BuildMethod, Option<&'static str>), AppError> {
    let agent = request.agent.unwrap_or(AgentImage::Plain);
    match &request.dockerfile {
        Some(DockerfileChoice::File(_)) if request.agent.is_some() => Err(AppError::usage(
            "--agent <NAME> cannot be used with --dockerfile <FILE>",
            "an agent's image has its own Dockerfile",
            "omit one of the two",
        )),
        Some(DockerfileChoice::File(file)) => Ok((BuildMethod::Dockerfile(file.clone()), None)),
        Some(DockerfileChoice::Bundled) => Ok((BuildMethod::BundledDockerfile(agent), None)),
        None if request.agent.is_some() => Ok((BuildMethod::BundledDockerfile(agent), None)),
        None => match nix::find_nix(app) {
            Some(program) => Ok((BuildMethod::Nix(program), None)),
            None if request.nix => Err(AppError::runtime(
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

/// Builds an agent's image and adds the requested name, if any.
async fn build_agent_image(
    images: &DockerImages,
    agent: AgentImage,
    on: Option<&ImageName>,
    other: Option<&ImageName>,
    progress: ImageProgressSink<'_>,
) -> Result<Vec<ImageName>, ImageError> {
    let built = images
        .ensure_base(agent, on, ImageEffort::Build, progress)
        .await?;
    let mut names = vec![built.clone()];
    if let Some(other) = other {
        images.tag(&built, other).await?;
        names.push(other.clone());
    }
    Ok(names)
}

/// Loads the image that nix built and tags it.
async fn load_nix_image(
    images: &DockerImages,
    tarball: &Path,
    name: &ImageName,
    progress: ImageProgressSink<'_>,
) -> Result<(), ImageError> {
    let loaded = images.load(tarball, progress).await?;
    match loaded.first() {
        Some(image) if image != name => images.tag(image, name).await,
        Some(_) | None => Ok(()),
    }
}

fn read_dockerfile(app: &App, path: &Path) -> Result<Vec<u8>, AppError> {
    read_task_bytes(path, app).map_err(|error| {
        AppError::runtime(
            format!("cannot read the Dockerfile `{}`", path.display()),
            error.to_string(),
            error.hint(),
        )
    })
}

/// Returns how to use the image in a run, if runs would not use it already.
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
