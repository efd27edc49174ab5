//! The resources of a run's sandbox, and the Docker Engine of its containers.

use ralph_core::plan::{ContainerPlan, LocalPlan};
use ralph_core::ports::SandboxProvider;
use ralph_core::task::{Contract, SandboxResources, nearest};
use ralph_providers::docker::DockerEngine;

use crate::app::App;
use crate::config::{ResourceSettings, Settings};
use crate::error::AppError;
use crate::planning::PlanPurpose;
use crate::providers::{LocalLimits, SANDBOX_PROVIDERS};

/// Returns an error for an unknown sandbox provider, with the most similar name.
pub(crate) fn require_known(sandbox: &str) -> Result<(), AppError> {
    if SANDBOX_PROVIDERS.contains(&sandbox) {
        return Ok(());
    }
    let fix = match nearest(sandbox, SANDBOX_PROVIDERS) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None => {
            "use `docker`, which runs commands in containers, or `local`, which does not isolate them"
                .to_owned()
        }
    };
    Err(AppError::usage(
        format!("sandbox `{sandbox}` is not available"),
        format!("this version supports {}", SANDBOX_PROVIDERS.join(", ")),
        fix,
    ))
}

/// Returns the container plan, if the provider uses containers, and the limits of commands in a
/// local sandbox.
pub(crate) async fn resource_plans(
    sandbox: &str,
    contract: &Contract,
    app: &App,
    purpose: PlanPurpose,
) -> Result<(Option<ContainerPlan>, LocalLimits), AppError> {
    let container = container_plan(sandbox, contract, app, purpose).await?;
    Ok((container, local_limits(Some(contract), app)?))
}

/// Returns the container plan with the image as requested, or `None` for a provider without
/// containers.
async fn container_plan(
    sandbox: &str,
    contract: &Contract,
    app: &App,
    purpose: PlanPurpose,
) -> Result<Option<ContainerPlan>, AppError> {
    if sandbox != "docker" {
        return Ok(None);
    }
    let settings = app.settings()?;
    let engine = match (find_docker_engine(&settings, app).await, purpose) {
        (Ok(engine), _) => engine,
        (Err(_), PlanPurpose::Preview) => None,
        (Err(error), PlanPurpose::Start) => return Err(error),
    };
    let resources = contract.sandbox_resources.unwrap_or_default();
    let mut plan = with_task_resources(&settings, resources, engine);
    if let Some(image) = &contract.sandbox_image {
        plan.image.clone_from(image);
    }
    Ok(Some(plan))
}

/// Returns the container plan of a task with these resources.
pub(crate) async fn container_plan_for(
    resources: Option<SandboxResources>,
    app: &App,
) -> Result<ContainerPlan, AppError> {
    let settings = app.settings()?;
    let resources = resources.unwrap_or_default();
    let engine = find_docker_engine(&settings, app).await?;
    Ok(with_task_resources(&settings, resources, engine))
}

/// Returns the plan with the task's resources, or else those of the settings.
fn with_task_resources(
    settings: &Settings,
    resources: SandboxResources,
    engine: Option<String>,
) -> ContainerPlan {
    let defaults = ResourceSettings::default();
    let configured = &settings.sandbox.resources;
    ContainerPlan {
        engine,
        image: settings.sandbox.image.clone(),
        // Defaults are reduced to the resources of the machine instead of being rejected.
        millicpus: resources
            .vcpu
            .map(|number| number.saturating_mul(1000))
            .or_else(|| (configured.cpus != defaults.cpus).then(|| configured.cpus.thousandths())),
        memory: resources
            .memory_gib
            .map(gibibytes)
            .or_else(|| (configured.memory != defaults.memory).then(|| configured.memory.bytes())),
        disk: resources
            .disk_gib
            .map_or(configured.disk.bytes(), gibibytes),
        processes: configured.processes,
        read_only: settings.sandbox.docker.read_only,
    }
}

/// Returns the limits of commands in a task's local sandbox.
pub(crate) fn local_limits(
    contract: Option<&Contract>,
    app: &App,
) -> Result<LocalLimits, AppError> {
    let configured = app.settings()?.sandbox.resources;
    let task_resources = contract.and_then(|contract| contract.sandbox_resources);
    let memory = task_resources.and_then(|resources| resources.memory_gib);
    Ok(LocalLimits {
        memory: memory.map_or(configured.memory.bytes(), gibibytes),
        processes: configured.processes,
    })
}

/// Returns the restrictions of a local sandbox, or `None` for a provider that isolates.
pub(crate) fn local_plan(provider: &dyn SandboxProvider, limits: LocalLimits) -> Option<LocalPlan> {
    let LocalLimits { memory, processes } = limits;
    provider.confinement().map(|confinement| LocalPlan {
        memory,
        processes,
        confinement,
    })
}

fn gibibytes(number: u32) -> u64 {
    u64::from(number) << 30
}

/// Returns the engine of `DOCKER_HOST`, or else the first engine of the settings that responds.
/// `None` is the default engine of this machine.
pub async fn find_docker_engine(
    settings: &Settings,
    app: &App,
) -> Result<Option<String>, AppError> {
    if let Some(host) = app.environment().docker_host() {
        return Ok(Some(host.to_owned()));
    }
    let mut last = None;
    for host in &settings.sandbox.docker.hosts {
        match DockerEngine::connect(Some(host)).await {
            Ok(_) => return Ok(Some(host.clone())),
            Err(error) => last = Some(error.problem()),
        }
    }
    match last {
        None => Ok(None),
        Some(problem) => Err(AppError::runtime(
            "no Docker Engine in `sandbox.docker.hosts` responds",
            problem.what,
            problem.fix,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_wins_over_the_settings() {
        let mut settings = Settings::default();
        let none = SandboxResources::default();
        let defaults = ContainerPlan {
            engine: None,
            image: "auto".into(),
            millicpus: None,
            memory: None,
            disk: 20 << 30,
            processes: 512,
            read_only: true,
        };
        assert_eq!(with_task_resources(&settings, none, None), defaults);
        settings.sandbox.resources.memory = crate::config::Memory::from_gibibytes(2);
        settings.sandbox.resources.processes = 100;
        assert_eq!(
            with_task_resources(&settings, none, None),
            ContainerPlan {
                memory: Some(2 << 30),
                processes: 100,
                ..defaults.clone()
            }
        );
        let task_resources = SandboxResources {
            vcpu: Some(1),
            memory_gib: Some(3),
            disk_gib: Some(5),
        };
        assert_eq!(
            with_task_resources(&settings, task_resources, Some("tcp://build:2375".into())),
            ContainerPlan {
                engine: Some("tcp://build:2375".into()),
                millicpus: Some(1000),
                memory: Some(3 << 30),
                disk: 5 << 30,
                processes: 100,
                ..defaults
            }
        );
    }
}
