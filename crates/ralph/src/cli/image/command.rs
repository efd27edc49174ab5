//! Runs the `ralph image` commands.

use ralph_app::AppError;
use ralph_app::image::{ImageBuildRequest, ImagePull, PreparedImageBuild, image_status};

use super::args::{BuildArgs, ImageArgs, ImageCommand, PullArgs, StatusArgs};
use super::progress::ImageProgressOutput;
use super::status::status_lines;
use crate::cli::context::Context;
use crate::cli::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};

/// Runs the requested command.
pub(in crate::cli) async fn run(args: ImageArgs, context: &Context) -> Result<ExitCode, AppError> {
    match args.command {
        ImageCommand::Build(args) => build(args, context).await,
        ImageCommand::Pull(args) => pull(args, context).await,
        ImageCommand::Status(args) => status(args, context).await,
    }
}

/// Builds an image and prints its names.
async fn build(args: BuildArgs, context: &Context) -> Result<ExitCode, AppError> {
    let request = ImageBuildRequest {
        nix: args.nix,
        dockerfile: args.dockerfile,
        agent: args.agent,
        tag: args.tag,
    };
    let build = PreparedImageBuild::prepare(request, &context.app).await?;
    let mut output = ImageProgressOutput::new(context, &context.app.settings()?);
    if let Some(note) = build.note {
        output.line(&StyledLine::new().quiet(note));
    }
    let mut report = |progress| output.show(progress);
    let result = build.run(&context.app, &mut report).await;
    let images = match result {
        Ok(images) => images,
        Err(error) => return Err(output.into_error(error)),
    };
    for name in &images.names {
        output.line(
            &StyledLine::new()
                .span(Tone::Good, "built ")
                .strong(name.as_str()),
        );
    }
    if let Some(hint) = &images.hint {
        output.line(&StyledLine::new().quiet(hint));
    }
    Ok(ExitCode::Success)
}

/// Pulls an image, unless a local one exists and `sandbox.use_local_image` accepts it.
async fn pull(args: PullArgs, context: &Context) -> Result<ExitCode, AppError> {
    let pull = ImagePull::prepare(args.image, args.force, &context.app).await?;
    let mut output = ImageProgressOutput::new(context, &context.app.settings()?);
    if pull.is_satisfied {
        output.line(
            &StyledLine::from_text("image ")
                .strong(pull.image.as_str())
                .plain(" already exists locally; --force pulls it anyway"),
        );
        return Ok(ExitCode::Success);
    }
    let pulled = pull.run(&mut |progress| output.show(progress)).await;
    if let Err(error) = pulled {
        return Err(output.into_error(error));
    }
    output.line(
        &StyledLine::new()
            .span(Tone::Good, "pulled ")
            .strong(pull.image.as_str()),
    );
    Ok(ExitCode::Success)
}

/// Prints the status of an image. A Docker Engine that does not respond is not an error.
async fn status(args: StatusArgs, context: &Context) -> Result<ExitCode, AppError> {
    let report = image_status(args.image, args.agent, &context.app).await?;
    if args.json {
        context.output().print_json(&report.entry())?;
    } else {
        let now = context.app.clock().now();
        context.output().print_lines(&status_lines(&report, now))?;
    }
    Ok(ExitCode::Success)
}
