//! The checks of Docker sandboxes.

use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{Problem, SandboxProvider as _};
use ralph_providers::docker::{Engine, Facts};

use super::account::Account;
use super::command::{Interrupts, PREREQUISITES, leave_out, prerequisites};
use super::gateway::Gateway;
use super::session::{Session, broken};
use super::{auth, basics, image, walls};
use crate::cli::care_args::SelftestArgs;
use crate::cli::checks::{Checks, Outcome};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::wire::Wiring;

const TOKEN: &str = "check token";
const ENGINE: &str = "engine";
const HEALTH: &str = "proxy health";
const IMAGE: &str = "build image";
const CREATE: &str = "create sandbox";
const POLICY: &str = "network policy";
const GATE: &str = "gate reachable from sandbox";
const AUTH: &str = "agent auth via gate";
const NETWORK: &str = "network isolation";
const EXEC: &str = "run a command";
const FILES: &str = "files";
const USER: &str = "unprivileged user";
const TIMEOUT: &str = "timeout";
const LIMITS: &str = "limits";
const CLEANUP: &str = "cleanup";

/// What comes before there is a sandbox, in its order.
const OUTSIDE: [&str; 6] = [TOKEN, PREREQUISITES, ENGINE, HEALTH, IMAGE, CREATE];
/// What needs a sandbox.
const INSIDE: [&str; 10] = [
    POLICY, GATE, AUTH, NETWORK, EXEC, FILES, USER, TIMEOUT, LIMITS, CLEANUP,
];

/// Tries out Docker sandboxes with an agent behind the gate. Without a token, an engine, a gate, an
/// image or a sandbox the rest is not tried.
pub(super) async fn run(
    args: &SelftestArgs,
    checks: &mut Checks,
    context: &Context,
) -> Result<(), CliError> {
    let wiring = context.wiring()?;
    match Ready::get(args, checks, context, &wiring).await? {
        Ok(ready) => ready.inside(checks, &wiring).await,
        Err(missing) => {
            let after = OUTSIDE.iter().skip_while(|name| **name != missing.check);
            let rest: Vec<&str> = after.skip(1).chain(&INSIDE).copied().collect();
            leave_out(checks, &rest, missing.why)
        }
    }
}

/// Why the rest cannot be tried.
struct Missing {
    /// The last check that was made.
    check: &'static str,
    why: &'static str,
}

/// Everything that a sandbox needs.
struct Ready {
    account: Account,
    gateway: Gateway,
    plan: ContainerPlan,
}

impl Ready {
    /// Looks at everything that a sandbox needs.
    async fn get(
        args: &SelftestArgs,
        checks: &mut Checks,
        context: &Context,
        wiring: &Wiring,
    ) -> Result<Result<Self, Missing>, CliError> {
        let missing = |check, why| Ok(Err(Missing { check, why }));
        let mut account = match Account::find(args, context).await {
            Ok(account) => account,
            Err(error) => {
                checks.add(TOKEN, error.into())?;
                return missing(TOKEN, "there is no token to use");
            }
        };
        checks.add(TOKEN, Outcome::Passed(account.told.clone()))?;
        if !passes(checks, PREREQUISITES, prerequisites(context).await)? {
            return missing(PREREQUISITES, "a program is missing");
        }
        let plan = container::plan_for(None, context).await;
        let plan = match engine(plan, wiring).await {
            Ok((plan, told)) => {
                checks.add(ENGINE, Outcome::Passed(told))?;
                plan
            }
            Err(outcome) => {
                checks.add(ENGINE, outcome)?;
                return missing(ENGINE, "no engine can be used");
            }
        };
        let gateway = match Gateway::open(&mut account, context, wiring).await {
            Ok(gateway) => gateway,
            Err(error) => {
                checks.add(HEALTH, error.into())?;
                return missing(HEALTH, "there is no gate");
            }
        };
        if !passes(checks, HEALTH, gateway.health().await)? {
            return missing(HEALTH, "there is no gate");
        }
        let agent = &account.preset.image;
        let built = image::build(agent, &plan, checks, context, wiring).await?;
        Ok(match built {
            Some(plan) => Ok(Self {
                account,
                gateway,
                plan,
            }),
            None => Err(Missing {
                check: IMAGE,
                why: "there is no image to use",
            }),
        })
    }

    /// Makes sandboxes, tries them out, and removes them whatever happens.
    async fn inside(&self, checks: &mut Checks, wiring: &Wiring) -> Result<(), CliError> {
        let mut interrupts = Interrupts::listen();
        let provider = wiring.docker(Some(&self.plan));
        let provider = provider.with_way_out(self.gateway.way_out());
        let name = format!("agent-loop-selftest-{}", self.account.preset.name);
        let session = match Session::begin(&provider, &name).await {
            Ok(session) => session,
            Err(error) => {
                checks.add(CREATE, broken(error))?;
                return leave_out(checks, &INSIDE, "there is no sandbox");
            }
        };
        let told = format!("{} for {name}", session.sandbox.id());
        checks.add(CREATE, Outcome::Passed(told))?;
        let tried = interrupts.unless(self.try_out(checks, &session, wiring));
        let (tried, small) = match tried.await {
            Some(Ok(())) => self.limits(checks, &name, &mut interrupts, wiring).await,
            other => (other, None),
        };
        let ended = all([Some(session.end().await), small]);
        let is_green = !ended.is_failure();
        checks.add(CLEANUP, ended)?;
        if is_green {
            checks.note("images are kept: they are the cache of the next run".into())?;
        }
        tried.unwrap_or_else(|| Err(interrupted()))
    }

    /// Tries out the limits in a sandbox that has little, so that it is quick to use more. The answer
    /// is none if it was interrupted, and how the sandbox was removed.
    async fn limits(
        &self,
        checks: &mut Checks,
        name: &str,
        interrupts: &mut Interrupts,
        wiring: &Wiring,
    ) -> (Option<Result<(), CliError>>, Option<Outcome>) {
        let little = wiring.docker(Some(&ContainerPlan {
            memory: Some(walls::LIMITS.memory),
            disk: walls::LIMITS.disk,
            processes: walls::LIMITS.processes,
            ..self.plan.clone()
        }));
        let small = match Session::begin(&little, name).await {
            Ok(small) => small,
            Err(error) => return (Some(checks.add(LIMITS, broken(error))), None),
        };
        let outcome = interrupts.unless(walls::limits(&small)).await;
        let ended = small.end().await;
        let added = outcome.map(|outcome| checks.add(LIMITS, outcome));
        (added, Some(ended))
    }

    async fn try_out(
        &self,
        checks: &mut Checks,
        session: &Session<'_>,
        wiring: &Wiring,
    ) -> Result<(), CliError> {
        let Self {
            account, gateway, ..
        } = self;
        let look = gateway.look();
        match look.at(&*session.sandbox).await {
            Ok(seen) => {
                checks.add(POLICY, gateway.policy())?;
                checks.add(GATE, walls::gate(&look, &seen))?;
                let auth = auth::through_gate(session, account, gateway, wiring).await;
                checks.add(AUTH, auth)?;
                checks.add(NETWORK, walls::network(session, &look, &seen).await)?;
            }
            Err(error) => {
                checks.add(POLICY, broken(error))?;
                leave_out(checks, &[GATE, AUTH, NETWORK], "no command can be run")?;
            }
        }
        checks.add(EXEC, basics::exec(session).await)?;
        checks.add(FILES, basics::files(session).await)?;
        checks.add(USER, walls::user(session).await)?;
        checks.add(TIMEOUT, basics::timeout(session).await)
    }
}

/// Adds a check and tells whether nothing is wrong.
fn passes(checks: &mut Checks, name: &'static str, outcome: Outcome) -> Result<bool, CliError> {
    let passed = !outcome.is_failure();
    checks.add(name, outcome)?;
    Ok(passed)
}

/// Makes one outcome of several.
fn all(outcomes: [Option<Outcome>; 2]) -> Outcome {
    let (mut problems, mut seen) = (Vec::new(), Vec::new());
    for outcome in outcomes.into_iter().flatten() {
        match outcome {
            Outcome::Passed(text) | Outcome::NotRun(text) => seen.push(text),
            Outcome::Failed(more) => problems.extend(more),
        }
    }
    Outcome::of(problems, || seen.join(", "))
}

/// The engine answers, and its machine has what the settings ask for.
async fn engine(
    plan: Result<ContainerPlan, CliError>,
    wiring: &Wiring,
) -> Result<(ContainerPlan, String), Outcome> {
    let plan = plan?;
    let problems = wiring.docker(Some(&plan)).preflight().await;
    if !problems.is_empty() {
        return Err(Outcome::Failed(problems));
    }
    let (engine, facts) = reach(&plan).await?;
    Ok((plan, told(&engine, &facts)))
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
