//! The checks of Docker sandboxes.

use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{Problem, SandboxProvider};
use ralph_providers::docker::{Engine, Facts};

use super::command::{PREREQUISITES, leave_out, prerequisites, unless_interrupted};
use super::session::{Session, broken};
use super::{basics, image, walls};
use crate::cli::args::SelftestArgs;
use crate::cli::checks::{Checks, Outcome};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::wire::Wiring;

const ENGINE: &str = "engine";
const IMAGE: &str = "build image";
const CREATE: &str = "create sandbox";
const EXEC: &str = "run a command";
const FILES: &str = "files";
const USER: &str = "unprivileged user";
const NETWORK: &str = "network isolation";
const TIMEOUT: &str = "timeout";
const LIMITS: &str = "limits";
const CLEANUP: &str = "cleanup";

/// What needs a sandbox.
const INSIDE: [&str; 7] = [EXEC, FILES, USER, NETWORK, TIMEOUT, LIMITS, CLEANUP];

/// Tries out Docker sandboxes. Without an engine, an image or a sandbox the rest is not tried.
pub(super) async fn run(
    args: &SelftestArgs,
    checks: &mut Checks,
    context: &Context,
) -> Result<(), CliError> {
    let wiring = context.wiring()?;
    let ground = Ground {
        wiring: &wiring,
        plan: container::plan_for(None, context).await,
    };
    let ready = ground.outside(args, checks, context).await?;
    match ready {
        Ok(plan) => ground.inside(checks, &plan).await,
        Err(why) => {
            checks.add(CREATE, Outcome::NotRun(why.into()))?;
            leave_out(checks, &INSIDE, why)
        }
    }
}

/// What the checks need.
struct Ground<'a> {
    wiring: &'a Wiring,
    plan: Result<ContainerPlan, CliError>,
}

impl Ground<'_> {
    /// Looks at everything that a sandbox needs. The answer is what sandboxes are made from, or why none
    /// can be made.
    async fn outside(
        &self,
        args: &SelftestArgs,
        checks: &mut Checks,
        context: &Context,
    ) -> Result<Result<ContainerPlan, &'static str>, CliError> {
        let outcome = prerequisites(context).await;
        let is_missing = outcome.is_failure();
        checks.add(PREREQUISITES, outcome)?;
        if is_missing {
            let why = "a program is missing";
            leave_out(checks, &[ENGINE, IMAGE], why)?;
            return Ok(Err(why));
        }
        let (plan, engine, facts) = match self.engine().await {
            Ok(reached) => reached,
            Err(outcome) => {
                let why = "no engine can be used";
                checks.add(ENGINE, outcome)?;
                leave_out(checks, &[IMAGE], why)?;
                return Ok(Err(why));
            }
        };
        checks.add(ENGINE, Outcome::Passed(told(&engine, &facts)))?;
        let agent = args.agent.as_deref();
        let built = image::build(agent, plan, checks, context, self.wiring).await?;
        Ok(built.ok_or("there is no image to use"))
    }

    /// The engine answers, and its machine has what the settings ask for.
    async fn engine(&self) -> Result<(&ContainerPlan, Engine, Facts), Outcome> {
        let plan = self.plan.as_ref().map_err(Clone::clone)?;
        let problems = self.wiring.docker(Some(plan)).preflight().await;
        if !problems.is_empty() {
            return Err(Outcome::Failed(problems));
        }
        let (engine, facts) = reach(plan).await?;
        Ok((plan, engine, facts))
    }

    /// Makes a sandbox, tries it out, and removes it whatever happens.
    async fn inside(&self, checks: &mut Checks, plan: &ContainerPlan) -> Result<(), CliError> {
        let small = ContainerPlan {
            memory: Some(walls::LIMITS.memory),
            disk: walls::LIMITS.disk,
            processes: walls::LIMITS.processes,
            ..plan.clone()
        };
        let provider = self.wiring.docker(Some(&small));
        let session = match Session::begin(&provider).await {
            Ok(session) => session,
            Err(error) => {
                checks.add(CREATE, broken(error))?;
                return leave_out(checks, &INSIDE, "there is no sandbox");
            }
        };
        let tried = unless_interrupted(try_out(checks, &session)).await;
        let ended = session.end().await;
        let is_green = !ended.is_failure();
        checks.add(CLEANUP, ended)?;
        if is_green {
            checks.note("images are kept: they are the cache of the next run".into())?;
        }
        tried.unwrap_or_else(|| Err(interrupted()))
    }
}

async fn try_out(checks: &mut Checks, session: &Session<'_>) -> Result<(), CliError> {
    checks.add(CREATE, Outcome::Passed(session.sandbox.id().to_string()))?;
    checks.add(EXEC, basics::exec(session).await)?;
    checks.add(FILES, basics::files(session).await)?;
    checks.add(USER, walls::user(session).await)?;
    checks.add(NETWORK, walls::network(session).await)?;
    checks.add(TIMEOUT, basics::timeout(session).await)?;
    checks.add(LIMITS, walls::limits(session).await)
}

/// Says that a person or the system ended the selftest.
pub(super) fn interrupted() -> CliError {
    CliError {
        code: crate::cli::exit::ExitCode::Interrupted,
        ..CliError::runtime(
            "the selftest was interrupted",
            "the program was told to end",
            "start it again",
        )
    }
}

async fn reach(plan: &ContainerPlan) -> Result<(Engine, Facts), Problem> {
    let engine = Engine::connect(plan.engine.as_deref()).await;
    let engine = engine.map_err(|error| error.problem())?;
    let facts = engine.facts().await.map_err(|error| error.problem())?;
    Ok((engine, facts))
}

fn told(engine: &Engine, facts: &Facts) -> String {
    let Facts {
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
