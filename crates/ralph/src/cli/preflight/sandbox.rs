//! What the sandbox provider must have.

use ralph_core::ports::Isolation;

use super::ground::Ground;
use crate::cli::checks::Outcome;
use crate::cli::ready_image;
use crate::wire::image::Base;

/// The provider works here.
pub(super) async fn provider(ground: &Ground<'_>) -> Outcome {
    let (Ok(name), Ok(wiring)) = (&ground.sandbox, &ground.wiring) else {
        return Outcome::NotRun("the settings cannot be used".into());
    };
    let container = match &ground.container {
        Some(Ok(plan)) => Some(plan),
        Some(Err(error)) => return error.clone().into(),
        None => None,
    };
    let provider = match wiring.sandboxes(name, container) {
        Ok(provider) => provider,
        Err(error) => return error.into(),
    };
    let isolation = match provider.isolation() {
        Isolation::None => "no isolation: commands run as you",
        Isolation::Container => "containers without a network",
        Isolation::Machine => "virtual machines",
    };
    Outcome::of(provider.preflight().await, || match &ground.engine {
        Some((engine, facts)) => format!(
            "{name}: {isolation}; Docker Engine {} at {}",
            facts.version,
            engine.address()
        ),
        None => format!("{name}: {isolation}"),
    })
}

/// The image is there, for the engine's machine.
pub(super) async fn image(ground: &Ground<'_>) -> Option<Outcome> {
    let plan = ground.container.as_ref()?;
    let (Ok(plan), Some((engine, facts))) = (plan, &ground.engine) else {
        return Some(Outcome::NotRun("no Docker Engine answers".into()));
    };
    if plan.image == Base::AUTO {
        let words = "the agent's own image, which is built when it is first needed";
        return Some(Outcome::Passed(words.into()));
    }
    Some(match ready_image::find(engine, facts, &plan.image).await {
        Ok(image) => Outcome::Passed(image.to_string()),
        Err(problem) => problem.into(),
    })
}
