//! The checks of Docker sandboxes.

use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{Problem, SandboxProvider};
use ralph_providers::docker::{Engine, Facts};

use super::command::{PREREQUISITES, leave_out, prerequisites, unless_interrupted};
use super::session::{Session, broken};
use super::{basics, walls};
use crate::cli::args::SelftestArgs;
use crate::cli::checks::{Checks, Outcome};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::{container, ready_image};
use crate::wire::Wiring;

const ENGINE: &str = "engine";
const IMAGE: &str = "image";
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
    let outcome = prerequisites(context).await;
    let mut why = outcome.is_failure().then_some("a program is missing");
    checks.add(PREREQUISITES, outcome)?;
    let plan = container::plan_for(None, context).await;
    let ground = Ground {
        wiring: &wiring,
        plan: plan?,
    };
    let mut reached = None;
    for name in [ENGINE, IMAGE] {
        let outcome = match (why, name) {
            (Some(why), _) => Outcome::NotRun(why.to_owned()),
            (None, ENGINE) => ground.engine(&mut reached).await,
            (None, _) => ground.image(reached.as_ref()).await,
        };
        if outcome.is_failure() {
            why = Some(match name {
                ENGINE => "no engine can be used",
                _ => "there is no image to use",
            });
        }
        checks.add(name, outcome)?;
    }
    for note in ready_image::notes(args.agent.as_deref(), context.environment().directory()) {
        checks.note(note)?;
    }
    if let Some(why) = why {
        checks.add(CREATE, Outcome::NotRun(why.to_owned()))?;
        return leave_out(checks, &INSIDE, why);
    }
    ground.inside(checks).await
}

/// What the checks need.
struct Ground<'a> {
    wiring: &'a Wiring,
    plan: ContainerPlan,
}

impl Ground<'_> {
    /// The engine answers, and its machine has what the settings ask for.
    async fn engine(&self, reached: &mut Option<(Engine, Facts)>) -> Outcome {
        let provider = self.wiring.docker(Some(&self.plan));
        let problems = provider.preflight().await;
        if !problems.is_empty() {
            return Outcome::Failed(problems);
        }
        match reach(&self.plan).await {
            Ok((engine, facts)) => {
                let seen = told(&engine, &facts);
                *reached = Some((engine, facts));
                Outcome::Passed(seen)
            }
            Err(problem) => problem.into(),
        }
    }

    async fn image(&self, reached: Option<&(Engine, Facts)>) -> Outcome {
        let Some((engine, facts)) = reached else {
            return Outcome::NotRun("no engine can be used".into());
        };
        match ready_image::find(engine, facts, &self.plan.image).await {
            Ok(image) => Outcome::Passed(image.to_string()),
            Err(problem) => problem.into(),
        }
    }

    /// Makes a sandbox, tries it out, and removes it whatever happens.
    async fn inside(&self, checks: &mut Checks) -> Result<(), CliError> {
        let small = ContainerPlan {
            memory: Some(walls::LIMITS.memory),
            disk: walls::LIMITS.disk,
            processes: walls::LIMITS.processes,
            ..self.plan.clone()
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
    let made = format!("{}", session.sandbox.id());
    checks.add(CREATE, Outcome::Passed(made))?;
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
