//! `ralph image status`: shows whether an image is here.

use jiff::Timestamp;
use ralph_core::image::AgentImage;
use ralph_core::ports::Problem;
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::command;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::config::Settings;
use crate::terminal::format;
use crate::terminal::line::{Line, Tone};
use crate::wire::image::{Base, Found, ImageError, Images};

/// What is known about an image.
struct Status {
    /// What it is called, as far as that is known.
    name: String,
    state: State,
}

enum State {
    Here(Box<Found>),
    Missing(Problem),
    Unknown(Problem),
}

/// Prints what is known. Not to know is no error.
pub(super) async fn run(
    args: StatusArgs,
    settings: &Settings,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let base = match (&args.image, args.agent) {
        (Some(image), _) => Base::Named(image.clone()),
        // An agent's image is meant, whatever the settings name.
        (None, Some(_)) => Base::Agent {
            on: command::built_on(settings)?,
        },
        (None, None) => command::base(settings)?,
    };
    let agent = args.agent.unwrap_or(AgentImage::Plain);
    let status = match command::images(settings, context).await {
        Ok(images) => look(&images, agent, &base).await,
        Err(error) => Status {
            name: name_of(agent, &base),
            state: State::Unknown(Problem {
                what: format!("{}: {}", error.what, error.why),
                fix: error.fix,
            }),
        },
    };
    if args.json {
        context.output().json(&status.json())?;
    } else {
        context
            .output()
            .lines(&status.lines(context.clock().now()))?;
    }
    Ok(ExitCode::Success)
}

async fn look(images: &Images, agent: AgentImage, base: &Base) -> Status {
    let mut name = name_of(agent, base);
    let state = match find(images, agent, base, &mut name).await {
        Ok(Some(found)) => State::Here(Box::new(found)),
        Ok(None) => State::Missing(missing(&name, base)),
        Err(error) => State::Unknown(error.problem()),
    };
    Status { name, state }
}

async fn find(
    images: &Images,
    agent: AgentImage,
    base: &Base,
    name: &mut String,
) -> Result<Option<Found>, ImageError> {
    let image = match base {
        Base::Named(image) => Some(image.clone()),
        Base::Agent { on } => images.base_tag(agent, on.as_ref()).await?,
    };
    let Some(image) = image else {
        return Ok(None);
    };
    *name = image.to_string();
    images.inspect(&image).await
}

/// Returns an image's name without asking anybody.
fn name_of(agent: AgentImage, base: &Base) -> String {
    match base {
        Base::Named(image) => image.to_string(),
        Base::Agent { .. } => format!("agent-loop-sandbox-{agent}"),
    }
}

fn missing(name: &str, base: &Base) -> Problem {
    let fix = match base {
        Base::Agent { .. } => {
            "`ralph image build` builds it, and so does the first run that needs it".to_owned()
        }
        Base::Named(image) => format!(
            "build it with `ralph image build --tag {image}`, or get it with `ralph image pull --image {image}`"
        ),
    };
    Problem {
        what: format!("there is no image `{name}`"),
        fix,
    }
}

impl Status {
    fn json(&self) -> Value {
        let mut value = json!({
            "image": self.name, "status": "", "id": null, "size_bytes": null, "created_at": null,
            "tags": [], "architecture": null, "user": null, "problem": null,
        });
        match &self.state {
            State::Here(found) => {
                value["status"] = "present".into();
                value["id"] = found.id.as_str().into();
                value["size_bytes"] = found.size.into();
                value["created_at"] = found.created.map(|at| at.to_string()).into();
                value["tags"] = found.tags.as_slice().into();
                value["architecture"] = found.architecture.as_str().into();
                value["user"] = found.user.as_str().into();
            }
            State::Missing(problem) => {
                value["status"] = "missing".into();
                value["problem"] = json!({"what": problem.what, "fix": problem.fix});
            }
            State::Unknown(problem) => {
                value["status"] = "unknown".into();
                value["problem"] = json!({"what": problem.what, "fix": problem.fix});
            }
        }
        value
    }

    fn lines(&self, now: Timestamp) -> Vec<Line> {
        let row = |label: &str| Line::new().quiet(&format!("{label:<9}"));
        let mut lines = vec![row("image").strong(&self.name)];
        let problem = match &self.state {
            State::Here(found) => {
                lines.push(row("status").with(Tone::Good, "present"));
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
            State::Missing(problem) => {
                lines.push(row("status").with(Tone::Warn, "not found"));
                problem
            }
            State::Unknown(problem) => {
                lines.push(row("status").with(Tone::Warn, "unknown"));
                lines.push(row("why").folded(Tone::Plain, &problem.what));
                problem
            }
        };
        lines.push(row("fix").folded(Tone::Plain, &problem.fix));
        lines
    }
}
