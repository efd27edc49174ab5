//! Checks of the sandbox provider.

use ralph_core::image::AgentImage;
use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{Isolation, ProviderProblem};
use ralph_providers::docker::{DockerEngine, DockerInfo};

use super::preflight_context::PreflightContext;
use crate::checks::CheckOutcome;
use crate::image;
use crate::planning::{self, container, sandbox_choice};
use crate::providers::image::ImageBase;

/// Checks that the provider works on this machine.
pub(in crate::checks) async fn check_provider(context: &PreflightContext<'_>) -> CheckOutcome {
    let (Ok(name), Ok(providers)) = (&context.sandbox, &context.providers) else {
        return CheckOutcome::NotRun("the settings cannot be used".into());
    };
    if let Err(error) = container::require_known(name) {
        return error.into();
    }
    let (request, task) = (&context.request, context.usable_task());
    if let Err(error) = sandbox_choice::require_user_choice(request, task, context.app) {
        return error.into();
    }
    let container = match &context.container {
        Some(Ok(plan)) => Some(plan),
        Some(Err(error)) => {
            let errors = vec![error.clone()];
            let errors = sandbox_choice::explain_default(errors, request, task, context.app);
            return CheckOutcome::Failed(errors);
        }
        None => None,
    };
    let contract = context.usable_task().map(|task| &task.contract);
    let limits = match container::local_limits(contract, context.app) {
        Ok(limits) => limits,
        Err(error) => return error.into(),
    };
    let provider = match providers.sandbox_provider(name, container, limits) {
        Ok(provider) => provider,
        Err(error) => return error.into(),
    };
    let isolation = match provider.isolation() {
        Isolation::None => "no isolation: commands run as you",
        Isolation::Container => "containers without a network",
        Isolation::Machine => "virtual machines",
    };
    let confined = provider
        .confinement()
        .map_or_else(String::new, |confinement| {
            format!(
                "; {}; {}",
                confinement.describe_isolation(),
                confinement.describe_limits()
            )
        });
    let engine = context.engine.as_ref();
    let engine = engine.map_or_else(String::new, |(engine, facts)| {
        format!("; {}", describe_engine(engine, facts))
    });
    let errors = planning::provider_errors(&*provider).await;
    let errors = sandbox_choice::explain_default(errors, request, task, context.app);
    CheckOutcome::from_errors(errors, || format!("{name}: {isolation}{confined}{engine}"))
}

fn describe_engine(engine: &DockerEngine, facts: &DockerInfo) -> String {
    let DockerInfo {
        version,
        api_version,
        architecture,
        cpus,
        ..
    } = facts;
    format!(
        "Docker Engine {version} (API {api_version}) at {}: linux/{architecture}, {cpus} processors, {} GiB of memory",
        engine.address(),
        facts.memory >> 30
    )
}

/// Checks that the image exists for the platform of the Docker Engine.
pub(super) async fn check_image(context: &PreflightContext<'_>) -> Option<CheckOutcome> {
    let plan = context.container.as_ref()?;
    let (Ok(plan), Some((engine, facts))) = (plan, &context.engine) else {
        return Some(CheckOutcome::NotRun("no Docker Engine answers".into()));
    };
    if plan.image == ImageBase::AUTO {
        return Some(check_agent_image(context, plan).await);
    }
    Some(match image::find_image(engine, facts, &plan.image).await {
        Ok(image) => CheckOutcome::Passed(image.to_string()),
        Err(problem) => problem.into(),
    })
}

/// Checks the image of the run's worker. A missing image passes, because the start of a run builds it.
async fn check_agent_image(context: &PreflightContext<'_>, plan: &ContainerPlan) -> CheckOutcome {
    let (Ok(providers), Ok(settings)) = (&context.providers, &context.settings) else {
        return CheckOutcome::NotRun("the settings cannot be used".into());
    };
    let preset = context.worker.preset();
    let agent = preset.map_or(AgentImage::Plain, |preset| {
        AgentImage::for_agent(&preset.image)
    });
    let find_image = async || {
        let base = ImageBase::from_settings(&plan.image, &settings.sandbox.base_image);
        let base = base.map_err(|error| ProviderProblem {
            what: error.to_string(),
            fix: "correct `base_image` in ralph.toml".into(),
        })?;
        let ImageBase::Agent { on } = base else {
            return Ok(None);
        };
        let images = providers.images(plan.engine.as_deref()).await;
        let images = images.map_err(|error| error.problem())?;
        let tag = images.base_tag(agent, on.as_ref()).await;
        let Some(tag) = tag.map_err(|error| error.problem())? else {
            return Ok(None);
        };
        let exists = images.exists(&tag).await;
        let exists = exists.map_err(|error| error.problem())?;
        Ok::<_, ProviderProblem>(Some((tag, exists)))
    };
    match find_image().await {
        Ok(Some((tag, true))) => CheckOutcome::Passed(tag.to_string()),
        Ok(Some((tag, false))) => {
            CheckOutcome::Passed(format!("{tag}, which is built when it is first needed"))
        }
        Ok(None) => CheckOutcome::Passed(format!(
            "the image `{agent}`, which is built when it is first needed"
        )),
        Err(problem) => problem.into(),
    }
}
