//! `ralph image status`: shows whether an image is here.

use jiff::Timestamp;
use ralph_core::image::AgentImage;
use ralph_core::ports::ProviderProblem;
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::command;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::providers::image::{DockerImage, DockerImages, ImageBase, ImageError};
use crate::terminal::format;
use crate::terminal::styled_line::{StyledLine, Tone};

/// What is known about an image.
struct ImageStatusReport {
    /// What it is called, as far as that is known.
    name: String,
    state: ImageAvailability,
}

enum ImageAvailability {
    Present(Box<DockerImage>),
    Missing(ProviderProblem),
    Unknown(ProviderProblem),
}

/// Prints what is known. Not to know is no error.
pub(super) async fn run(
    args: StatusArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let base = match (&args.image, args.agent) {
        (Some(image), _) => ImageBase::Named(image.clone()),
        // An agent's image is meant, whatever the settings name.
        (None, Some(_)) => ImageBase::Agent {
            on: command::agent_base_image(settings)?,
        },
        (None, None) => command::configured_base(settings)?,
    };
    let agent = args.agent.unwrap_or(AgentImage::Plain);
    let status = match command::connect_images(settings, context).await {
        Ok(images) => query_status(&images, agent, &base).await,
        Err(error) => ImageStatusReport {
            name: expected_name(agent, &base),
            state: ImageAvailability::Unknown(ProviderProblem {
                what: format!("{}: {}", error.what, error.why),
                fix: error.fix,
            }),
        },
    };
    if args.json {
        context.output().print_json(&status.json())?;
    } else {
        context
            .output()
            .print_lines(&status.lines(context.clock().now()))?;
    }
    Ok(ExitCode::Success)
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

/// Returns an image's name without asking anybody.
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

impl ImageStatusReport {
    fn json(&self) -> Value {
        let mut value = json!({
            "image": self.name, "status": "", "id": null, "size_bytes": null, "created_at": null,
            "tags": [], "architecture": null, "user": null, "problem": null,
        });
        match &self.state {
            ImageAvailability::Present(found) => {
                value["status"] = "present".into();
                value["id"] = found.id.as_str().into();
                value["size_bytes"] = found.size.into();
                value["created_at"] = found.created.map(|at| at.to_string()).into();
                value["tags"] = found.tags.as_slice().into();
                value["architecture"] = found.architecture.as_str().into();
                value["user"] = found.user.as_str().into();
            }
            ImageAvailability::Missing(problem) => {
                value["status"] = "missing".into();
                value["problem"] = json!({"what": problem.what, "fix": problem.fix});
            }
            ImageAvailability::Unknown(problem) => {
                value["status"] = "unknown".into();
                value["problem"] = json!({"what": problem.what, "fix": problem.fix});
            }
        }
        value
    }

    fn lines(&self, now: Timestamp) -> Vec<StyledLine> {
        let row = |label: &str| StyledLine::new().quiet(&format!("{label:<9}"));
        let mut lines = vec![row("image").strong(&self.name)];
        let problem = match &self.state {
            ImageAvailability::Present(found) => {
                lines.push(row("status").span(Tone::Good, "present"));
                lines.push(row("size").plain(&format::bytes(found.size)));
                let created = found.created.map_or_else(
                    || "unknown".to_owned(),
                    |at| {
                        format!(
                            "{} ({})",
                            at.strftime("%Y-%m-%d %H:%M UTC"),
                            format::age(now, at)
                        )
                    },
                );
                lines.push(row("created").plain(&created));
                lines.push(row("tags").plain(&found.tags.join(", ")));
                lines.push(row("id").plain(&found.id));
                return lines;
            }
            ImageAvailability::Missing(problem) => {
                lines.push(row("status").span(Tone::Warn, "not found"));
                problem
            }
            ImageAvailability::Unknown(problem) => {
                lines.push(row("status").span(Tone::Warn, "unknown"));
                lines.push(row("why").wrapped(Tone::Plain, &problem.what));
                problem
            }
        };
        lines.push(row("fix").wrapped(Tone::Plain, &problem.fix));
        lines
    }
}
