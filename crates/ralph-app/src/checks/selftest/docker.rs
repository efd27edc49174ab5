//! The checks of Docker sandboxes.

use ralph_core::plan::ContainerPlan;

use super::SelftestRequest;
use super::account::SelftestAccount;
use super::gate::SelftestGate;
use super::interrupts::Interrupts;
use super::session::{SelftestSession, sandbox_failure};
use super::{PREREQUISITES, skip_checks};
use super::{auth, basics, image, isolation};
use crate::app::App;
use crate::checks::preflight::{PreflightContext, machine, sandbox};
use crate::checks::{CheckOutcome, CheckSink};
use crate::error::{AppError, ErrorKind};
use crate::providers::Providers;

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

/// The checks before the sandbox is created, in their order.
const SETUP_CHECKS: [&str; 6] = [TOKEN, PREREQUISITES, ENGINE, HEALTH, IMAGE, CREATE];
/// The checks that need a sandbox.
const SANDBOX_CHECKS: [&str; 10] = [
    POLICY, GATE, AUTH, NETWORK, EXEC, FILES, USER, TIMEOUT, LIMITS, CLEANUP,
];

/// Tests Docker sandboxes with an agent behind the gate. Skips the remaining checks without a
/// token, an engine, a gate, an image or a sandbox.
pub(super) async fn run(
    request: &SelftestRequest,
    checks: &mut dyn CheckSink,
    app: &App,
) -> Result<(), AppError> {
    let providers = app.providers()?;
    match Box::pin(DockerSelftest::prepare(request, checks, app, &providers)).await? {
        Ok(ready) => {
            let interrupts = Interrupts::listen(request.cancelled.clone());
            ready.run_in_sandboxes(checks, &providers, interrupts).await
        }
        Err(missing) => {
            let after = SETUP_CHECKS
                .iter()
                .skip_while(|name| **name != missing.check);
            let rest: Vec<&str> = after.skip(1).chain(&SANDBOX_CHECKS).copied().collect();
            skip_checks(checks, &rest, missing.why)
        }
    }
}

/// The reason for skipping the remaining checks.
struct MissingPrerequisite {
    /// The last check that was run.
    check: &'static str,
    why: &'static str,
}

/// The prerequisites of a sandbox.
struct DockerSelftest {
    account: SelftestAccount,
    gate: SelftestGate,
    plan: ContainerPlan,
}

impl DockerSelftest {
    /// Checks the prerequisites of a sandbox, and stops at the first missing one.
    async fn prepare(
        request: &SelftestRequest,
        checks: &mut dyn CheckSink,
        app: &App,
        providers: &Providers,
    ) -> Result<Result<Self, MissingPrerequisite>, AppError> {
        let missing = |check, why| Ok(Err(MissingPrerequisite { check, why }));
        let mut account = match SelftestAccount::find(request, app).await {
            Ok(account) => account,
            Err(error) => {
                checks.add(TOKEN, error.into())?;
                return missing(TOKEN, "there is no token");
            }
        };
        checks.add(TOKEN, CheckOutcome::Passed(account.description.clone()))?;
        let machine = PreflightContext::for_provider("docker", app).await;
        if !add_and_test(checks, PREREQUISITES, machine::check_git(&machine))? {
            return missing(PREREQUISITES, "a program is missing");
        }
        let engine = sandbox::check_provider(&machine).await;
        let is_usable = add_and_test(checks, ENGINE, engine)?;
        let Some(Ok(plan)) = machine.container.filter(|_| is_usable) else {
            return missing(ENGINE, "no engine can be used");
        };
        let gate = match SelftestGate::open(&mut account, app, providers).await {
            Ok(gate) => gate,
            Err(error) => {
                checks.add(HEALTH, error.into())?;
                return missing(HEALTH, "there is no gate");
            }
        };
        if !add_and_test(checks, HEALTH, gate.check_health().await)? {
            return missing(HEALTH, "there is no gate");
        }
        let agent = &account.preset.image;
        let built = image::build(agent, &plan, checks, app, providers).await?;
        Ok(match built {
            Some(plan) => Ok(Self {
                account,
                gate,
                plan,
            }),
            None => Err(MissingPrerequisite {
                check: IMAGE,
                why: "there is no image",
            }),
        })
    }

    /// Creates sandboxes, tests them, and removes them in any case.
    async fn run_in_sandboxes(
        &self,
        checks: &mut dyn CheckSink,
        providers: &Providers,
        mut interrupts: Interrupts,
    ) -> Result<(), AppError> {
        let provider = providers.docker_provider(Some(&self.plan));
        let provider = provider.with_egress(self.gate.egress());
        let name = format!("agent-loop-selftest-{}", self.account.preset.name);
        let session = match SelftestSession::start(&provider, &name).await {
            Ok(session) => session,
            Err(error) => {
                checks.add(CREATE, sandbox_failure(error))?;
                return skip_checks(checks, &SANDBOX_CHECKS, "there is no sandbox");
            }
        };
        let description = format!("{} for {name}", session.sandbox.id());
        checks.add(CREATE, CheckOutcome::Passed(description))?;
        let checked =
            interrupts.run_until_signal(self.run_sandbox_checks(checks, &session, providers));
        let (checked, removed) = match checked.await {
            Some(Ok(())) => {
                self.check_limits(checks, &name, &mut interrupts, providers)
                    .await
            }
            other => (other, None),
        };
        let cleanup = combine_outcomes([Some(session.remove_and_verify().await), removed]);
        let is_clean = !cleanup.is_failure();
        checks.add(CLEANUP, cleanup)?;
        if is_clean {
            checks.note("images are kept as a cache for the next run".into())?;
        }
        checked.unwrap_or_else(|| Err(interrupted_error()))
    }

    /// Tests the limits in a second sandbox with small ones, so that they are exceeded quickly. The
    /// first value is `None` if a signal interrupted the test; the second is the outcome of removing
    /// the sandbox, if there was one.
    async fn check_limits(
        &self,
        checks: &mut dyn CheckSink,
        name: &str,
        interrupts: &mut Interrupts,
        providers: &Providers,
    ) -> (Option<Result<(), AppError>>, Option<CheckOutcome>) {
        let provider = providers.docker_provider(Some(&ContainerPlan {
            memory: Some(isolation::LIMITS.memory),
            disk: isolation::LIMITS.disk,
            processes: isolation::LIMITS.processes,
            ..self.plan.clone()
        }));
        let session = match SelftestSession::start(&provider, name).await {
            Ok(session) => session,
            Err(error) => return (Some(checks.add(LIMITS, sandbox_failure(error))), None),
        };
        let outcome = interrupts
            .run_until_signal(isolation::check_limits(&session))
            .await;
        let removed = session.remove_and_verify().await;
        let added = outcome.map(|outcome| checks.add(LIMITS, outcome));
        (added, Some(removed))
    }

    async fn run_sandbox_checks(
        &self,
        checks: &mut dyn CheckSink,
        session: &SelftestSession<'_>,
        providers: &Providers,
    ) -> Result<(), AppError> {
        let Self { account, gate, .. } = self;
        let probe = gate.network_probe();
        match probe.run_in(&*session.sandbox).await {
            Ok(report) => {
                checks.add(POLICY, gate.check_policy())?;
                checks.add(GATE, isolation::check_gate(&probe, &report))?;
                let auth = auth::check_login(session, account, gate, providers).await;
                checks.add(AUTH, auth)?;
                checks.add(
                    NETWORK,
                    isolation::check_network(session, &probe, &report).await,
                )?;
            }
            Err(error) => {
                checks.add(POLICY, sandbox_failure(error))?;
                skip_checks(checks, &[GATE, AUTH, NETWORK], "no command can be run")?;
            }
        }
        checks.add(EXEC, basics::check_exec(session).await)?;
        checks.add(FILES, basics::check_files(session).await)?;
        checks.add(USER, isolation::check_user(session).await)?;
        checks.add(TIMEOUT, basics::check_timeout(session).await)
    }
}

/// Adds a check and returns whether it found no problem.
fn add_and_test(
    checks: &mut dyn CheckSink,
    name: &'static str,
    outcome: CheckOutcome,
) -> Result<bool, AppError> {
    let passed = !outcome.is_failure();
    checks.add(name, outcome)?;
    Ok(passed)
}

/// Combines several outcomes into one.
fn combine_outcomes(outcomes: [Option<CheckOutcome>; 2]) -> CheckOutcome {
    let (mut problems, mut seen) = (Vec::new(), Vec::new());
    for outcome in outcomes.into_iter().flatten() {
        match outcome {
            CheckOutcome::Passed(text) | CheckOutcome::NotRun(text) => seen.push(text),
            CheckOutcome::Failed(more) => problems.extend(more),
        }
    }
    CheckOutcome::from_errors(problems, || seen.join(", "))
}

/// Returns the error for a selftest that a signal ended.
pub(super) fn interrupted_error() -> AppError {
    AppError::new(
        ErrorKind::Interrupted,
        "the selftest did not finish",
        "the program was interrupted",
        "run it again",
    )
}
