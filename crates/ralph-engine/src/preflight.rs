//! Checks a sandbox from inside, before work continues there: the sandbox and its gate respond, and
//! forbidden hosts cannot be reached. `check_sandbox` runs the checks before the first
//! iteration of every process and after every pause; `ralph selftest` runs them, too.
//!
//! The sandbox's own guest probes, not a program of the image. A probe without a result is a
//! failure.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use ralph_core::event::SandboxEvent;
use ralph_core::net::{AllowlistEntry, EgressRules, Host};
use ralph_core::plan::RunPlan;
use ralph_core::ports::{
    CREDENTIAL_ADDRESS, Exec, ExecOutcome, ExecStatus, GateControl, GateEvent, Isolation,
    OutputSink, OutputStream, ProviderProblem, Sandbox, SandboxError,
};

use crate::controls::Controls;
use crate::error::RunError;
use crate::immediate_commands::{record_gate_events, record_pending_gate_events};
use crate::recorder::Recorder;
use crate::workbench::Workbench;

/// The timeout for all probes. Each probe has a timeout of five seconds of its own.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the probe output that are read.
const MAX_PROBE_OUTPUT: usize = 4 << 10;
/// Hosts that respond on any network with internet access. The first one that no rule allows is
/// probed.
const WELL_KNOWN_HOSTS: [&str; 4] = [
    "google.com",
    "example.com",
    "wikipedia.org",
    "cloudflare.com",
];
/// A public address that responds if there is any network.
const PUBLIC_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(1, 1, 1, 1), 443));

/// The probes from inside a sandbox, apart from the check that it responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightProbe {
    /// The address of the gate, which must respond.
    pub gate: Option<SocketAddr>,
    /// A host that must not be reachable.
    pub forbidden: Option<Host>,
    /// An address that must not be reachable without the gate.
    pub direct: Option<SocketAddr>,
}

impl PreflightProbe {
    /// Probes no network: a sandbox without network isolation only has to respond.
    pub fn none() -> Self {
        Self {
            gate: None,
            forbidden: None,
            direct: None,
        }
    }

    /// Probes the isolation of a sandbox whose gate has these rules.
    pub fn for_rules(rules: &EgressRules) -> Self {
        let is_forbidden = |host: &Host| !rules.decide_lookup(host).is_allowed();
        let mut known = WELL_KNOWN_HOSTS.iter().flat_map(|name| Host::parse(name));
        Self {
            gate: Some(CREDENTIAL_ADDRESS),
            forbidden: known.find(is_forbidden),
            direct: Some(PUBLIC_ADDRESS),
        }
    }

    /// Returns the probe command for the probe program of this sandbox. Without a program or network
    /// probes, the command only prints `ok`.
    pub fn command(&self, program: Option<&str>) -> Exec {
        let Some(program) = program.filter(|_| *self != Self::none()) else {
            return Exec::shell("echo ok", PROBE_TIMEOUT);
        };
        let gate = self.gate.map(|gate| ("--gate", gate.to_string()));
        let host = self.forbidden.as_ref();
        let host = host.map(|host| ("--host", host.to_string()));
        let direct = self.direct.map(|direct| ("--direct", direct.to_string()));
        let mut argv = vec![program.to_owned(), "probe-network".to_owned()];
        for (option, value) in [gate, host, direct].into_iter().flatten() {
            argv.extend([option.to_owned(), value]);
        }
        Exec::argv(argv, PROBE_TIMEOUT)
    }

    /// Runs the probes.
    pub async fn run_in(&self, sandbox: &dyn Sandbox) -> Result<PreflightReport, SandboxError> {
        let mut printed = ProbeOutput::default();
        let exec = self.command(sandbox.probe_program());
        let outcome = sandbox.exec(exec, None, &mut printed).await?;
        Ok(PreflightReport::parse(&printed.text(), &outcome))
    }

    /// Returns whether one of these probes caused a refusal at the gate.
    fn caused(&self, event: &GateEvent) -> bool {
        let GateEvent::Blocked { host, .. } = event else {
            return false;
        };
        let forbidden = self.forbidden.as_ref().map(ToString::to_string);
        let direct = self.direct.map(|direct| direct.ip().to_string());
        [forbidden, direct]
            .iter()
            .flatten()
            .any(|probed| probed == host)
    }
}

/// The output of the probes, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct ProbeOutput(Vec<u8>);

impl ProbeOutput {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl OutputSink for ProbeOutput {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        if stream == OutputStream::Stdout {
            let room = MAX_PROBE_OUTPUT.saturating_sub(self.0.len());
            self.0.extend(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// The result of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeStatus {
    /// A response with this HTTP status; 0 for a connection without HTTP.
    Status(u16),
    /// There was no response.
    NoResponse,
    /// The probe reported no result.
    NotReported,
}

impl ProbeStatus {
    /// Parses a word of the probe's output.
    fn parse(word: Option<&str>) -> Self {
        match word {
            Some("reached") => Self::Status(0),
            Some("blocked") => Self::NoResponse,
            Some(word) => match word.parse() {
                Ok(0) => Self::NoResponse,
                Ok(status) => Self::Status(status),
                Err(_) => Self::NotReported,
            },
            None => Self::NotReported,
        }
    }

    /// Returns whether a forbidden host was reached: the gate's own refusals are 400 and more.
    fn is_leak(self) -> bool {
        matches!(self, Self::Status(0..400))
    }
}

/// The results of all probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightReport {
    responds: bool,
    ended: ExecStatus,
    gate: ProbeStatus,
    /// The forbidden host, through the proxy and by its name.
    forbidden: [ProbeStatus; 2],
    direct: ProbeStatus,
}

impl PreflightReport {
    fn parse(text: &str, outcome: &ExecOutcome) -> Self {
        let probed = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            ProbeStatus::parse(lines.find_map(|(name, word)| (name == key).then_some(word)))
        };
        Self {
            responds: text.lines().next() == Some("ok"),
            ended: outcome.ended,
            gate: probed("gate"),
            forbidden: [probed("host"), probed("name")],
            direct: probed("direct"),
        }
    }

    /// Returns the problems; without any, work can continue in the sandbox.
    pub fn problems(&self, probe: &PreflightProbe) -> Vec<ProviderProblem> {
        if !self.responds {
            return vec![ProviderProblem {
                what: format!(
                    "the sandbox does not answer: the first command failed: {}",
                    self.ended
                ),
                fix: "check the sandbox provider with `ralph preflight`".into(),
            }];
        }
        let mut problems = self.gate_problems(probe);
        problems.extend(self.leaks(probe));
        problems.extend(self.missing_results(probe));
        problems
    }

    /// Returns the problems with the gate's response.
    pub fn gate_problems(&self, probe: &PreflightProbe) -> Vec<ProviderProblem> {
        let is_wrong = match self.gate {
            // A missing result is a problem of its own.
            ProbeStatus::Status(200) | ProbeStatus::NotReported => false,
            ProbeStatus::Status(_) | ProbeStatus::NoResponse => probe.gate.is_some(),
        };
        let problem = is_wrong.then(|| ProviderProblem {
            what: "the gate does not answer from inside the sandbox".into(),
            fix: "check it with `ralph selftest`".into(),
        });
        problem.into_iter().collect()
    }

    /// Returns the forbidden destinations that were reached.
    pub fn leaks(&self, probe: &PreflightProbe) -> Vec<ProviderProblem> {
        let leak = |what: String| ProviderProblem {
            what,
            fix: "do not run tasks there; check it with `ralph selftest`".to_owned(),
        };
        let mut leaks = Vec::new();
        let reached = self.forbidden.into_iter().find(|probed| probed.is_leak());
        if let (Some(host), Some(ProbeStatus::Status(status))) = (&probe.forbidden, reached) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `https://{host}`, which no rule allows: it answered {status}"
            )));
        }
        if let (Some(address), ProbeStatus::Status(_)) = (probe.direct, self.direct) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `{address}` past the gate"
            )));
        }
        leaks
    }

    /// Returns the probes without a result, which prove nothing.
    pub fn missing_results(&self, probe: &PreflightProbe) -> Vec<ProviderProblem> {
        let gate = probe.gate.filter(|_| self.gate == ProbeStatus::NotReported);
        let host = probe.forbidden.as_ref();
        let host = host.filter(|_| self.forbidden.contains(&ProbeStatus::NotReported));
        let direct = probe
            .direct
            .filter(|_| self.direct == ProbeStatus::NotReported);
        let probes: Vec<String> = [
            gate.map(|gate| format!("the gate at `{gate}`")),
            host.map(|host| format!("`https://{host}`")),
            direct.map(|direct| format!("`{direct}`")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if probes.is_empty() {
            return Vec::new();
        }
        vec![ProviderProblem {
            what: format!(
                "the probe inside the sandbox reported nothing about {} ({})",
                probes.join(", "),
                self.ended
            ),
            fix: "check it with `ralph selftest`".into(),
        }]
    }

    /// Returns a short summary of the results, if there are no problems.
    pub fn summary(&self, probe: &PreflightProbe) -> Vec<String> {
        let gate = probe.gate.map(|_| "the gate answers".to_owned());
        gate.into_iter()
            .chain(Self::blocked_summary(probe))
            .collect()
    }

    /// Returns a short summary of the unreachable destinations, if there are no problems.
    pub fn blocked_summary(probe: &PreflightProbe) -> Vec<String> {
        let forbidden = probe.forbidden.as_ref();
        let forbidden = forbidden.map(|host| format!("`https://{host}` is blocked"));
        let direct = probe
            .direct
            .map(|address| format!("`{address}` cannot be reached"));
        forbidden.into_iter().chain(direct).collect()
    }
}

/// Returns the probes for the sandbox of a run.
fn probe_for_run(
    plan: &RunPlan,
    allowed: impl IntoIterator<Item = AllowlistEntry>,
) -> PreflightProbe {
    let network = plan.network.as_ref();
    match (plan.isolation, network) {
        (Isolation::None, _) | (_, None) => PreflightProbe::none(),
        (Isolation::Container | Isolation::Machine, Some(network)) => {
            let mut rules = EgressRules::new(network.policy.clone());
            for entry in allowed {
                rules.add(entry);
            }
            PreflightProbe::for_rules(&rules)
        }
    }
}

/// Resets the hosts that the probes were refused: the gate reports each host once, and must report
/// it again when another program tries to reach it.
fn forget_blocked_hosts(gate: &dyn GateControl, own: Vec<GateEvent>) {
    for event in own {
        if let GateEvent::Blocked { host, .. } = event {
            gate.reset_blocked_host(&host);
        }
    }
}

/// Checks from inside the sandbox whether work can continue there; an error pauses the run.
pub(crate) async fn check_sandbox(
    recorder: &mut Recorder,
    bench: &mut Workbench,
    controls: &mut Controls,
) -> Result<(), RunError> {
    let allowed = recorder.state().allowed_hosts.iter();
    let allowed: Vec<AllowlistEntry> = allowed
        .flat_map(|host| AllowlistEntry::parse(host))
        .collect();
    let gate = controls.open_gate().cloned();
    let probe = match &gate {
        Some(_) => probe_for_run(&recorder.state().plan, allowed),
        None => PreflightProbe::none(),
    };
    // Earlier events belong to other commands.
    if let Some(gate) = &gate {
        record_pending_gate_events(&mut recorder.journal, &**gate)?;
    }
    let mut printed = ProbeOutput::default();
    let exec = probe.command(bench.sandbox.probe_program());
    let outcome = bench.exec(recorder, controls, exec, &mut printed).await?;
    if let Some(gate) = &gate {
        let (own, others) = gate
            .drain_events()
            .into_iter()
            .partition(|event| probe.caused(event));
        record_gate_events(&mut recorder.journal, others)?;
        forget_blocked_hosts(&**gate, own);
    }
    let report = PreflightReport::parse(&printed.text(), &outcome);
    record_sandbox_check(recorder, &probe, &report, outcome.duration)?;
    bench.is_checked = true;
    Ok(())
}

fn record_sandbox_check(
    recorder: &mut Recorder,
    probe: &PreflightProbe,
    report: &PreflightReport,
    duration: Duration,
) -> Result<(), RunError> {
    let problems = report.problems(probe);
    if let Some(first) = problems.first() {
        let descriptions: Vec<&str> = problems.iter().map(|problem| &*problem.what).collect();
        return Err(RunError::UnusableSandbox(ProviderProblem {
            what: descriptions.join("; "),
            fix: first.fix.clone(),
        }));
    }
    let summary = report.summary(probe);
    if !summary.is_empty() {
        recorder.append(SandboxEvent::SandboxChecked {
            seen: summary,
            duration_ms: duration.as_millis().try_into().unwrap_or(u64::MAX),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
