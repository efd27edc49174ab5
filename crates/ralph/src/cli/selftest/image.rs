//! The image of the sandboxes: it can be built, with the layer of the project in this directory.

use std::fs;
use std::path::Path;

use ralph_core::image::{AgentImage, Effort, ProjectConfig};
use ralph_core::plan::ContainerPlan;
use ralph_core::ports::Problem;

use crate::cli::checks::{Checks, Outcome};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::trust::unapproved_image;
use crate::wire::Wiring;
use crate::wire::image::{Base, Project, Recipe};

const IMAGE: &str = "build image";
const PROJECT: &str = "build project image";
/// The most that is taken of a project's directory.
const MAX_BYTES: u64 = 20 << 20;

/// Builds what sandboxes of this plan are made from. The answer is the plan with that image; none if
/// there is no image.
pub(super) async fn build(
    agent: &str,
    plan: &ContainerPlan,
    checks: &mut Checks,
    context: &Context,
    wiring: &Wiring,
) -> Result<Option<ContainerPlan>, CliError> {
    let base_image = context.settings()?.sandbox.base_image;
    let base = match Base::of_settings(&plan.image, &base_image) {
        Ok(base) => base,
        Err(error) => {
            let fix = "correct `image` in ralph.toml".to_owned();
            let what = error.to_string();
            checks.add(IMAGE, Problem { what, fix }.into())?;
            return Ok(None);
        }
    };
    let mut recipe = Recipe {
        agent: AgentImage::of_agent(agent),
        base,
        project: None,
    };
    let Some(image) = add(IMAGE, &recipe, plan, checks, wiring).await? else {
        return Ok(None);
    };
    let directory = context.environment().directory();
    let config = project(directory);
    let image = if config.find().is_none() {
        checks.note("no .agent-loop/ config in cwd, skipping".into())?;
        image
    } else {
        let name = directory.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if let Some(problem) = unapproved(&config, context) {
            checks.add(PROJECT, problem.into())?;
            return Ok(None);
        }
        recipe.project = Some(Project { name, config });
        match add(PROJECT, &recipe, plan, checks, wiring).await? {
            Some(image) => image,
            None => return Ok(None),
        }
    };
    Ok(Some(ContainerPlan {
        image,
        ..plan.clone()
    }))
}

/// Returns why the layer of a project is not built: the user did not approve it.
fn unapproved(config: &ProjectConfig, context: &Context) -> Option<Problem> {
    let proposal = unapproved_image(config, &context.layers())?;
    Some(Problem {
        what: format!("`{}` is not approved: {}", proposal.file, proposal.allows),
        fix: "see and approve it with `ralph trust`".to_owned(),
    })
}

/// Builds one image and adds how that went; none if it went wrong.
async fn add(
    check: &'static str,
    recipe: &Recipe,
    plan: &ContainerPlan,
    checks: &mut Checks,
    wiring: &Wiring,
) -> Result<Option<String>, CliError> {
    let images = match wiring.images(plan.engine.as_deref()).await {
        Ok(images) => images,
        Err(error) => {
            checks.add(check, error.problem().into())?;
            return Ok(None);
        }
    };
    match images.ensure(recipe, Effort::Reuse, &mut |_| {}).await {
        Ok(image) => {
            checks.add(check, Outcome::Passed(image.to_string()))?;
            Ok(Some(image.to_string()))
        }
        Err(error) => {
            checks.add(check, error.problem().into())?;
            for line in error.tail() {
                checks.note(line.clone())?;
            }
            Ok(None)
        }
    }
}

/// Reads the directory in which a project says what its image has; without one, nothing.
pub(in crate::cli) fn project(directory: &Path) -> ProjectConfig {
    let entries = fs::read_dir(directory.join(ProjectConfig::DIRECTORY));
    let files = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let wanted = metadata.is_file() && metadata.len() <= MAX_BYTES;
        let name = entry.file_name().into_string().ok()?;
        wanted.then(|| Some((name, fs::read(entry.path()).ok()?)))?
    });
    ProjectConfig::of(files)
}
