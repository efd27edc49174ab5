//! Checks that a provider isolates commands: privileges, the network and the rest of the machine.

use std::time::Duration;

use ralph_core::net::Host;
use ralph_core::ports::{Exec, ExecStatus, ProviderProblem};
use ralph_engine::preflight::{PreflightProbe, PreflightReport};
use ralph_guest::best_effort;

use super::session::{QUICK_TIMEOUT, SelftestSession, sandbox_failure};
use crate::checks::CheckOutcome;
use crate::error::AppError;

/// The limits of a selftest sandbox, small enough to be exceeded quickly.
#[derive(Debug, Clone, Copy)]
pub(super) struct SelftestLimits {
    /// In bytes.
    pub(super) memory: u64,
    /// Bytes in the workspace.
    pub(super) disk: u64,
    /// Processes and threads.
    pub(super) processes: u32,
}

/// The limits of the selftest.
pub(super) const LIMITS: SelftestLimits = SelftestLimits {
    memory: 128 << 20,
    disk: 64 << 20,
    processes: 64,
};

/// The timeout of a name lookup.
const DNS_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that commands run as an unprivileged user, without capabilities and without a way to gain
/// privileges.
pub(super) async fn check_user(session: &SelftestSession<'_>) -> CheckOutcome {
    let command = "id -u; sed -n -e 's/^CapEff:[[:space:]]*//p' -e 's/^NoNewPrivs:[[:space:]]*//p' /proc/self/status";
    let output = match session.run_successfully(command).await {
        Ok(output) => output,
        Err(outcome) => return outcome,
    };
    let mut words = output.split_whitespace();
    let mut next = || words.next().unwrap_or("unknown");
    let (id, capabilities, no_new_privileges) = (next(), next(), next());
    let mut problems = Vec::new();
    let mut add_problem = |what: String| {
        let fix = "do not run tasks with this version of ralph; report the problem".to_owned();
        problems.push(ProviderProblem { what, fix });
    };
    if id == "0" || id.parse::<u32>().is_err() {
        add_problem(format!("commands run as the user {id}"));
    }
    if capabilities.chars().any(|digit| digit != '0') {
        add_problem(format!("commands have the capabilities {capabilities}"));
    }
    if no_new_privileges != "1" {
        add_problem("commands can gain privileges through setuid programs".into());
    }
    CheckOutcome::from_problems(problems, || {
        format!("commands run as the user {id} without capabilities")
    })
}

/// Checks that the gate answers from inside the sandbox.
pub(super) fn check_gate(probe: &PreflightProbe, report: &PreflightReport) -> CheckOutcome {
    let mut problems = report.gate_problems(probe);
    for problem in &mut problems {
        problem.fix =
            "check that the engine runs on this machine or is connected to it reliably".into();
    }
    problems.extend(report.missing_results(probe));
    CheckOutcome::from_problems(problems, || {
        let address = probe.gate.map(|gate| gate.to_string()).unwrap_or_default();
        format!("it answers at {address}")
    })
}

/// Checks that the outside is reachable only through the gate, and there only the allowed hosts.
pub(super) async fn check_network(
    session: &SelftestSession<'_>,
    probe: &PreflightProbe,
    report: &PreflightReport,
) -> CheckOutcome {
    let mut problems = report.leaks(probe);
    problems.extend(report.missing_results(probe));
    if !problems.is_empty() {
        return CheckOutcome::from_problems(problems, String::new);
    }
    let mut observations = PreflightReport::blocked_summary(probe);
    for result in [
        check_names(session, probe.forbidden.as_ref()).await,
        check_interfaces(session).await,
    ] {
        match result {
            Ok(text) => observations.extend(text),
            Err(outcome) => return outcome,
        }
    }
    CheckOutcome::Passed(observations.join(", "))
}

fn leak_outcome(what: impl Into<String>) -> CheckOutcome {
    let fix = "do not run tasks on this engine; a sandbox must have no network of its own";
    CheckOutcome::failed(what, fix)
}

/// Checks that only the loopback interface is up. The kernel lists inactive tunnels in every network
/// namespace; they do not count.
async fn check_interfaces(session: &SelftestSession<'_>) -> Result<Option<String>, CheckOutcome> {
    let command = r#"while IFS=: read -r name rest; do
            case $name in *"|"*) continue ;; esac
            name=${name##* }
            flags=$(cat "/sys/class/net/$name/flags" 2>/dev/null) || flags=0x1
            echo "$name $flags"
        done </proc/net/dev"#;
    let output = session.run_successfully(command).await?;
    let active: Vec<&str> = output.lines().filter_map(active_interface).collect();
    if active.is_empty() {
        Ok(Some("the only active interface is lo".into()))
    } else {
        Err(leak_outcome(format!(
            "the sandbox has the network interface {}",
            active.join(", ")
        )))
    }
}

/// Returns the name of an interface that is up and is not the loopback.
fn active_interface(line: &str) -> Option<&str> {
    let (name, flags) = line.split_once(' ')?;
    let digits = flags.trim().trim_start_matches("0x");
    let flags = u32::from_str_radix(digits, 16).unwrap_or(1);
    (name != "lo" && flags & 1 == 1).then_some(name)
}

/// Checks that the name of a forbidden host does not resolve inside the sandbox.
async fn check_names(
    session: &SelftestSession<'_>,
    forbidden: Option<&Host>,
) -> Result<Option<String>, CheckOutcome> {
    let Some(host) = forbidden else {
        return Ok(None);
    };
    let command = format!(
        r#"if command -v getent >/dev/null 2>&1; then
            getent hosts {host} >/dev/null 2>&1 && echo resolved || echo blocked
        elif command -v python3 >/dev/null 2>&1; then
            python3 -I -c 'import socket; socket.getaddrinfo("{host}", 443)' >/dev/null 2>&1 &&
                echo resolved || echo blocked
        else
            echo untried
        fi"#
    );
    let exec = Exec::shell(command, DNS_TIMEOUT);
    let answer = session.run(exec).await.map_err(sandbox_failure)?;
    match answer.text.as_str() {
        "resolved" => Err(leak_outcome(format!(
            "a command can resolve the name `{host}`"
        ))),
        "untried" => Ok(Some("the image has no program to resolve names".into())),
        _ => Ok(Some("its name does not resolve".into())),
    }
}

/// Checks that commands that exceed a limit are stopped and that the reason is reported.
pub(super) async fn check_limits(session: &SelftestSession<'_>) -> CheckOutcome {
    let mut problems = Vec::new();
    let mut check = |found: Result<bool, CheckOutcome>, what: String| match found {
        Ok(false) => problems.push(AppError::runtime(
            what,
            "",
            "check that the engine's machine has cgroups and that the engine uses them",
        )),
        Err(CheckOutcome::Failed(more)) => problems.extend(more),
        Ok(true) | Err(CheckOutcome::Passed(_) | CheckOutcome::NotRun(_)) => {}
    };
    let SelftestLimits {
        memory,
        disk,
        processes,
    } = LIMITS;
    let megabytes = |bytes: u64| bytes >> 20;
    let use_memory = format!("x=$(head -c {} /dev/zero | tr '\\0' x)", memory * 2);
    check(
        ends_with(session, &use_memory, ExecStatus::OutOfMemory).await,
        format!(
            "a command could use more than {} MiB of memory",
            megabytes(memory)
        ),
    );
    // While other processes free space on the same disk, detection can take half a minute.
    let fill_disk = format!("head -c {} /dev/zero >../scratch/full; sleep 50", disk * 2);
    let filled = session.run(Exec::shell(fill_disk, LIMIT_TIMEOUT)).await;
    let filled = filled.map_err(sandbox_failure);
    check(
        filled.map(|answer| answer.outcome.ended == ExecStatus::DiskLimit),
        format!("a command could write more than {} MiB", megabytes(disk)),
    );
    // The sandbox is removed anyway.
    best_effort(session.shell("rm -f ../scratch/full").await);
    let start_processes = format!(
        "i=0; while [ $i -lt {} ]; do sleep 5 & i=$((i + 1)); done 2>/dev/null",
        processes * 2
    );
    check(
        hits_process_limit(session, &start_processes).await,
        format!("a command could start more than {processes} processes"),
    );
    CheckOutcome::from_errors(problems, || {
        format!(
            "memory, disk and processes are limited to {} MiB, {} MiB and {processes}",
            megabytes(memory),
            megabytes(disk)
        )
    })
}

/// The timeout for a violation that is usually detected immediately.
const LIMIT_TIMEOUT: Duration = Duration::from_mins(1);

async fn ends_with(
    session: &SelftestSession<'_>,
    command: &str,
    ended: ExecStatus,
) -> Result<bool, CheckOutcome> {
    let answer = session.run(Exec::shell(command, QUICK_TIMEOUT)).await;
    Ok(answer.map_err(sandbox_failure)?.outcome.ended == ended)
}

async fn hits_process_limit(
    session: &SelftestSession<'_>,
    command: &str,
) -> Result<bool, CheckOutcome> {
    let answer = session.run(Exec::shell(command, QUICK_TIMEOUT)).await;
    Ok(answer.map_err(sandbox_failure)?.outcome.process_limit)
}

#[cfg(test)]
mod tests;
