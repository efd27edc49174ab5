//! Checks that the image of the sandboxes can be built, including the project layer of this
//! directory.

use std::fs;
use std::path::Path;

use ralph_core::image::{AgentImage, ImageEffort, ProjectConfig};
use ralph_core::plan::ContainerPlan;
use ralph_core::ports::ProviderProblem;
use ralph_engine::linked_worktrees::LinkedWorktrees;
use ralph_guest::available;

use crate::app::App;
use crate::checks::{CheckOutcome, CheckSink};
use crate::error::AppError;
use crate::providers::Providers;
use crate::providers::image::{ImageBase, ImageProject, ImageRecipe};
use crate::trust::unapproved_image;

const IMAGE: &str = "build image";
const PROJECT: &str = "build project image";
/// The size limit of each file of a project's configuration, in bytes.
const MAX_FILE_BYTES: u64 = 20 << 20;

/// Builds the image of the plan and the project image of the working directory. Returns the plan with
/// the last image, or `None` if a build failed.
pub(super) async fn build(
    agent: &str,
    plan: &ContainerPlan,
    checks: &mut dyn CheckSink,
    app: &App,
    providers: &Providers,
) -> Result<Option<ContainerPlan>, AppError> {
    let base_image = app.settings()?.sandbox.base_image;
    let base = match ImageBase::from_settings(&plan.image, &base_image) {
        Ok(base) => base,
        Err(error) => {
            let fix = "correct `image` in ralph.toml".to_owned();
            let what = error.to_string();
            checks.add(IMAGE, ProviderProblem { what, fix }.into())?;
            return Ok(None);
        }
    };
    let mut recipe = ImageRecipe {
        agent: AgentImage::for_agent(agent),
        base,
        project: None,
    };
    let Some(image) = build_and_report(IMAGE, &recipe, plan, checks, providers).await? else {
        return Ok(None);
    };
    let directory = app.environment().working_dir();
    let config = load_project_config(directory);
    let image = if config.image_source().is_none() {
        checks.note("no .agent-loop/ config in cwd, skipping".into())?;
        image
    } else {
        let worktrees = LinkedWorktrees::find(directory);
        let name = worktrees.main().file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if let Some(problem) = unapproved_problem(&config, app) {
            checks.add(PROJECT, problem.into())?;
            return Ok(None);
        }
        recipe.project = Some(ImageProject { name, config });
        match build_and_report(PROJECT, &recipe, plan, checks, providers).await? {
            Some(image) => image,
            None => return Ok(None),
        }
    };
    Ok(Some(ContainerPlan {
        image,
        ..plan.clone()
    }))
}

/// Returns the problem of a project layer that the user has not approved.
fn unapproved_problem(config: &ProjectConfig, app: &App) -> Option<ProviderProblem> {
    let proposal = unapproved_image(config, &app.layers())?;
    Some(ProviderProblem {
        what: format!("`{}` is not approved: {}", proposal.file, proposal.allows),
        fix: "review and approve it with `ralph trust`".to_owned(),
    })
}

/// Builds one image and reports the outcome. Returns `None` if the build failed.
async fn build_and_report(
    check: &'static str,
    recipe: &ImageRecipe,
    plan: &ContainerPlan,
    checks: &mut dyn CheckSink,
    providers: &Providers,
) -> Result<Option<String>, AppError> {
    let images = match providers.images(plan.engine.as_deref()).await {
        Ok(images) => images,
        Err(error) => {
            checks.add(check, error.problem().into())?;
            return Ok(None);
        }
    };
    match images.ensure(recipe, ImageEffort::Reuse, &mut |_| {}).await {
        Ok(image) => {
            checks.add(check, CheckOutcome::Passed(image.to_string()))?;
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

/// Reads the directory that configures a project's image. Skips unreadable and too large files;
/// without the directory, the configuration is empty.
pub fn load_project_config(directory: &Path) -> ProjectConfig {
    let entries = fs::read_dir(directory.join(ProjectConfig::DIRECTORY));
    let files = entries.into_iter().flatten().flatten().filter_map(|entry| {
        // A file that cannot be read is missing in the build, which reports it.
        let metadata = available(entry.metadata())?;
        let is_included = metadata.is_file() && metadata.len() <= MAX_FILE_BYTES;
        let name = available(entry.file_name().into_string())?;
        is_included.then(|| Some((name, available(fs::read(entry.path()))?)))?
    });
    ProjectConfig::from_files(files)
}
