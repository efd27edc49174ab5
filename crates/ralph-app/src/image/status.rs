//! The status of an image on the engine.

use ralph_core::image::{AgentImage, ImageName};
use ralph_core::ports::ProviderProblem;
use serde::Serialize;
use utoipa::ToSchema;

use super::engine::{agent_base_image, configured_base, connect_images};
use crate::app::App;
use crate::error::AppError;
use crate::providers::image::{DockerImage, DockerImages, ImageBase, ImageError};

/// The status of an image.
pub struct ImageStatusReport {
    /// The best known name of the image.
    pub name: String,
    pub state: ImageAvailability,
}

/// Whether an engine has an image.
pub enum ImageAvailability {
    /// The engine has the image.
    Present(Box<DockerImage>),
    /// The engine does not have the image.
    Missing(ProviderProblem),
    /// The engine could not be queried.
    Unknown(ProviderProblem),
}

/// Returns the status of the named image, of an agent's image, or of the image of the settings. An
/// engine that does not answer is not an error.
pub async fn image_status(
    image: Option<ImageName>,
    agent: Option<AgentImage>,
    app: &App,
) -> Result<ImageStatusReport, AppError> {
    let settings = &app.settings()?;
    let base = match (image, agent) {
        (Some(image), _) => ImageBase::Named(image),
        // This selects an agent's image regardless of the settings.
        (None, Some(_)) => ImageBase::Agent {
            on: agent_base_image(settings)?,
        },
        (None, None) => configured_base(settings)?,
    };
    let agent = agent.unwrap_or(AgentImage::Plain);
    Ok(match connect_images(settings, app).await {
        Ok(images) => query_status(&images, agent, &base).await,
        Err(error) => ImageStatusReport {
            name: expected_name(agent, &base),
            state: ImageAvailability::Unknown(ProviderProblem {
                what: format!("{}: {}", error.what, error.why),
                fix: error.fix,
            }),
        },
    })
}

async fn query_status(
    images: &DockerImages,
    agent: AgentImage,
    base: &ImageBase,
) -> ImageStatusReport {
    let mut name = expected_name(agent, base);
    let state = match find_image(images, agent, base, &mut name).await {
        Ok(Some(found)) => ImageAvailability::Present(Box::new(found)),
        Ok(None) => ImageAvailability::Missing(missing_problem(&name, base)),
        Err(error) => ImageAvailability::Unknown(error.problem()),
    };
    ImageStatusReport { name, state }
}

async fn find_image(
    images: &DockerImages,
    agent: AgentImage,
    base: &ImageBase,
    name: &mut String,
) -> Result<Option<DockerImage>, ImageError> {
    let image = match base {
        ImageBase::Named(image) => Some(image.clone()),
        ImageBase::Agent { on } => images.base_tag(agent, on.as_ref()).await?,
    };
    let Some(image) = image else {
        return Ok(None);
    };
    *name = image.to_string();
    images.inspect(&image).await
}

/// Returns an image's name without querying the engine.
fn expected_name(agent: AgentImage, base: &ImageBase) -> String {
    match base {
        ImageBase::Named(image) => image.to_string(),
        ImageBase::Agent { .. } => format!("agent-loop-sandbox-{agent}"),
    }
}

fn missing_problem(name: &str, base: &ImageBase) -> ProviderProblem {
    let fix = match base {
        ImageBase::Agent { .. } => {
            "`ralph image build` builds it, and so does the first run that needs it".to_owned()
        }
        ImageBase::Named(image) => format!(
            "build it with `ralph image build --tag {image}`, or get it with `ralph image pull --image {image}`"
        ),
    };
    ProviderProblem {
        what: format!("there is no image `{name}`"),
        fix,
    }
}

/// The status of an image as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImageStatusEntry {
    /// The best known name of the image.
    pub image: String,
    pub status: ImageStatusKind,
    pub id: Option<String>,
    pub size_bytes: Option<u64>,
    pub created_at: Option<String>,
    pub tags: Vec<String>,
    pub architecture: Option<String>,
    pub user: Option<String>,
    pub problem: Option<ImageProblem>,
}

/// Whether an engine has an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageStatusKind {
    Present,
    Missing,
    /// The engine could not be queried.
    Unknown,
}

/// Why an image cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImageProblem {
    pub what: String,
    pub fix: String,
}

impl ImageStatusReport {
    /// Returns the report as JSON.
    pub fn entry(&self) -> ImageStatusEntry {
        let mut entry = ImageStatusEntry {
            image: self.name.clone(),
            status: ImageStatusKind::Present,
            id: None,
            size_bytes: None,
            created_at: None,
            tags: Vec::new(),
            architecture: None,
            user: None,
            problem: None,
        };
        let problem = |problem: &ProviderProblem| {
            Some(ImageProblem {
                what: problem.what.clone(),
                fix: problem.fix.clone(),
            })
        };
        match &self.state {
            ImageAvailability::Present(found) => {
                entry.id = Some(found.id.clone());
                entry.size_bytes = Some(found.size);
                entry.created_at = found.created.map(|at| at.to_string());
                entry.tags.clone_from(&found.tags);
                entry.architecture = Some(found.architecture.clone());
                entry.user = Some(found.user.clone());
            }
            ImageAvailability::Missing(missing) => {
                entry.status = ImageStatusKind::Missing;
                entry.problem = problem(missing);
            }
            ImageAvailability::Unknown(unknown) => {
                entry.status = ImageStatusKind::Unknown;
                entry.problem = problem(unknown);
            }
        }
        entry
    }
}
