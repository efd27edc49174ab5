//! Provides the image of a run.

use std::path::Path;

use ralph_core::ecosystem::{MAX_DEPENDENCY_FILES, dependency_files};
use ralph_core::id::CommitId;
use ralph_core::image::{
    AgentImage, ImageEffort, ImageSource, ProjectConfig, ProjectConfigFile, ProjectConfigFileKind,
};
use ralph_core::plan::RunPlan;
use ralph_engine::git::{GitError, HostGit};
use ralph_engine::linked_worktrees::LinkedWorktrees;

use super::ImageProgressSink;
use super::engine::problem_error;
use crate::app::App;
use crate::error::{AppError, ErrorDetails};
use crate::providers::Providers;
use crate::providers::image::{ImageBase, ImageError, ImageProject, ImageRecipe};
use crate::trust::unapproved_image;

/// The most bytes of lockfiles and manifests in the context of an image.
const MAX_CONTEXT_BYTES: usize = 32 << 20;

/// Sets the image of a container plan and builds missing parts of it: the agent's image and the
/// project's layer. The project's part is read from the commit that the run starts from.
pub(crate) async fn ensure_image(
    (plan, agent): (&mut RunPlan, AgentImage),
    effort: ImageEffort,
    progress: ImageProgressSink<'_>,
    (app, providers): (&App, &Providers),
) -> Result<(), AppError> {
    let repository = providers.base_repository(plan)?;
    let Some(container) = &mut plan.container else {
        return Ok(());
    };
    let base_image = app.settings()?.sandbox.base_image;
    let base = ImageBase::from_settings(&container.image, &base_image).map_err(|error| {
        AppError::usage(
            "invalid container image name",
            error.to_string(),
            "correct `sandbox_image` in the task file, or `image` in ralph.toml",
        )
    })?;
    let mut project = load_project(&repository, &plan.base, providers).await?;
    // The branch may have moved since the user's approval.
    if let Some(proposal) = unapproved_image(&project.config, &app.layers()) {
        return Err(AppError::usage(
            format!("the image of `{}` is not approved", proposal.file),
            proposal.allows,
            "review and approve it with `ralph trust`",
        ));
    }
    // After the approval, which is about the files of `.agent-loop` only.
    if project.config.image_source() == Some(ImageSource::Dockerfile) {
        let source = (repository.as_path(), &plan.base);
        add_dependency_files(&mut project.config, source, &providers.git()?).await?;
    }
    let recipe = ImageRecipe {
        agent,
        base,
        project: Some(project),
    };
    let images = providers.images(container.engine.as_deref()).await;
    let images = images.map_err(|error| problem_error(&error.problem()))?;
    let ensured = images.ensure(&recipe, effort, progress).await;
    container.image = ensured.map_err(|error| build_error(&error))?.to_string();
    Ok(())
}

/// Adds the lockfiles and manifests of the project, so that its Dockerfile can copy them. A file of
/// `.agent-loop` with the same path precedes.
async fn add_dependency_files(
    config: &mut ProjectConfig,
    (repository, base): (&Path, &CommitId),
    git: &HostGit,
) -> Result<(), AppError> {
    let unreadable = |error: GitError| {
        let what = format!("cannot read the lockfiles of `{}`", repository.display());
        AppError::runtime(what, error.to_string(), error.hint())
    };
    let base = base.as_str();
    let listing = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", base];
    let listed = git.run_as_user(repository, &listing).await;
    let listed = listed.map_err(unreadable)?;
    let mut room = MAX_CONTEXT_BYTES;
    let files = dependency_files(listed.split('\0'), &[]).into_iter();
    for path in files.take(MAX_DEPENDENCY_FILES) {
        let object = format!("{base}:{path}");
        let text = git
            .run_as_user(repository, &["cat-file", "blob", &object])
            .await
            .map_err(unreadable)?;
        // A binary lockfile was changed by the conversion to text.
        if config.files.contains_key(&path)
            || text.contains(char::REPLACEMENT_CHARACTER)
            || text.len() > room
        {
            tracing::debug!("`{path}` is not in the context of the image");
            continue;
        }
        room -= text.len();
        let kind = ProjectConfigFileKind::Regular;
        let bytes = text.into_bytes();
        config.files.insert(path, ProjectConfigFile { kind, bytes });
    }
    Ok(())
}

/// Returns the error of an image that could not be built or pulled, with the end of the build log.
pub(super) fn build_error(error: &ImageError) -> AppError {
    AppError {
        details: Box::new(ErrorDetails::BuildLog(error.tail().to_vec())),
        ..problem_error(&error.problem())
    }
}

/// Returns a repository's image configuration at a commit.
async fn load_project(
    repository: &Path,
    commit: &CommitId,
    providers: &Providers,
) -> Result<ImageProject, AppError> {
    let config = providers
        .git()?
        .project_config(repository, commit)
        .await
        .map_err(|error| {
            let what = format!("cannot read `.agent-loop` of `{}`", repository.display());
            AppError::runtime(what, error.to_string(), error.hint())
        })?;
    // All work trees of a repository share its images.
    let worktrees = LinkedWorktrees::find(repository);
    let name = worktrees.main().file_name().unwrap_or_default();
    Ok(ImageProject {
        name: name.to_string_lossy().trim_end_matches(".git").to_owned(),
        config,
    })
}
