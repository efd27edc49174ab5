//! What the sandbox provider must have.

use ralph_core::image::AgentImage;
use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{Isolation, Problem};

use super::ground::Ground;
use crate::cli::checks::Outcome;
use crate::cli::{container, ready_image};
use crate::wire::image::Base;

/// The provider works here.
pub(super) async fn provider(ground: &Ground<'_>) -> Outcome {
    let (Ok(name), Ok(wiring)) = (&ground.sandbox, &ground.wiring) else {
        return Outcome::NotRun("the settings cannot be used".into());
    };
    if let Err(error) = container::require_known(name) {
        return error.into();
    }
    let container = match &ground.container {
        Some(Ok(plan)) => Some(plan),
        Some(Err(error)) => return error.clone().into(),
        None => None,
    };
    let contract = ground.usable_task().map(|task| &task.contract);
    let limits = match container::local_limits(contract, ground.context) {
        Ok(limits) => limits,
        Err(error) => return error.into(),
    };
    let provider = match wiring.sandboxes(name, container, limits) {
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
            format!("; {}; {}", confinement.walls(), confinement.limits())
        });
    let engine = ground.engine.as_ref();
    let engine = engine.map_or_else(String::new, |(engine, facts)| {
        let (version, address) = (&facts.version, engine.address());
        format!("; Docker Engine {version} at {address}")
    });
    Outcome::of(provider.preflight().await, || {
        format!("{name}: {isolation}{confined}{engine}")
    })
}

/// The image is there, for the engine's machine.
pub(super) async fn image(ground: &Ground<'_>) -> Option<Outcome> {
    let plan = ground.container.as_ref()?;
    let (Ok(plan), Some((engine, facts))) = (plan, &ground.engine) else {
        return Some(Outcome::NotRun("no Docker Engine answers".into()));
    };
    if plan.image == Base::AUTO {
        return Some(agents_image(ground, plan).await);
    }
    Some(match ready_image::find(engine, facts, &plan.image).await {
        Ok(image) => Outcome::Passed(image.to_string()),
        Err(problem) => problem.into(),
    })
}

/// Looks at the image that ships for whoever does the work. That it is missing is fine: it is built.
async fn agents_image(ground: &Ground<'_>, plan: &ContainerPlan) -> Outcome {
    let (Ok(wiring), Ok(settings)) = (&ground.wiring, &ground.settings) else {
        return Outcome::NotRun("the settings cannot be used".into());
    };
    let preset = ground.worker.preset();
    let agent = preset.map_or(AgentImage::Plain, |preset| {
        AgentImage::of_agent(&preset.image)
    });
    let looked = async || {
        let base = Base::of_settings(&plan.image, &settings.sandbox.base_image);
        let base = base.map_err(|error| Problem {
            what: error.to_string(),
            fix: "correct `base_image` in ralph.toml".into(),
        })?;
        let Base::Agent { on } = base else {
            return Ok(None);
        };
        let images = wiring.images(plan.engine.as_deref()).await;
        let images = images.map_err(|error| error.problem())?;
        let tag = images.base_tag(agent, on.as_ref()).await;
        let Some(tag) = tag.map_err(|error| error.problem())? else {
            return Ok(None);
        };
        let is_here = images.exists(&tag).await;
        let is_here = is_here.map_err(|error| error.problem())?;
        Ok::<_, Problem>(Some((tag, is_here)))
    };
    match looked().await {
        Ok(Some((tag, true))) => Outcome::Passed(tag.to_string()),
        Ok(Some((tag, false))) => {
            Outcome::Passed(format!("{tag}, which is built when it is first needed"))
        }
        Ok(None) => Outcome::Passed(format!(
            "the image `{agent}`, which is built when it is first needed"
        )),
        Err(problem) => problem.into(),
    }
}
