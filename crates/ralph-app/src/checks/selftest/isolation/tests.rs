//! Tests that gaps in the isolation are found.

use std::time::Duration;

use async_trait::async_trait;
use ralph_core::net::{EgressPolicy, EgressRules};
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    ExecOutcome, ExecProgram, InputSource, Isolation, OutputSink, OutputStream, Sandbox,
    SandboxEntry, SandboxError, SandboxId, SandboxInfo, SandboxProvider, SandboxSpec, WriteMode,
};

use super::*;

#[test]
fn only_active_non_loopback_interfaces_count() {
    for (line, expected) in [
        ("lo 0x9", None),
        ("eth0 0x1003", Some("eth0")),
        ("tunl0 0x80", None),
        ("eth0 ", Some("eth0")),
        ("nonsense", None),
    ] {
        assert_eq!(active_interface(line), expected, "{line}");
    }
}

/// A sandbox that answers every command with the first text whose key the command contains.
#[derive(Clone)]
struct ScriptedSelftestSandbox {
    id: SandboxId,
    outputs: Vec<(&'static str, &'static str, ExecStatus)>,
}

impl ScriptedSelftestSandbox {
    fn new(answers: &[(&'static str, &'static str, ExecStatus)]) -> Self {
        Self {
            id: SandboxId("scripted".into()),
            outputs: answers.to_vec(),
        }
    }

    fn session(&self) -> SelftestSession<'_> {
        SelftestSession {
            provider: self,
            sandbox: Box::new(self.clone()),
        }
    }
}

#[async_trait]
impl Sandbox for ScriptedSelftestSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }
    fn probe_program(&self) -> Option<&str> {
        Some("/guest")
    }
    async fn exec(
        &self,
        exec: Exec,
        _: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let command = match exec.program {
            ExecProgram::Shell(command) => command,
            ExecProgram::Argv(argv) => argv.join(" "),
        };
        let answer = self
            .outputs
            .iter()
            .find(|(key, _, _)| command.contains(key));
        let (_, text, ended) = answer.copied().unwrap_or(("", "", ExecStatus::Exited(0)));
        output.chunk(OutputStream::Stdout, text.as_bytes());
        Ok(ExecOutcome {
            ended,
            duration: Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit: text == "crowded",
        })
    }
    async fn read(&self, path: &SandboxPath, _: u64) -> Result<Vec<u8>, SandboxError> {
        Err(SandboxError::NotFound(path.to_string()))
    }
    async fn write(&self, _: &SandboxPath, _: &[u8], _: WriteMode) -> Result<(), SandboxError> {
        Ok(())
    }
    async fn list(&self, _: &SandboxPath) -> Result<Vec<SandboxEntry>, SandboxError> {
        Ok(Vec::new())
    }
    async fn delete(&self, _: &SandboxPath) -> Result<(), SandboxError> {
        Ok(())
    }
    async fn sync(&self) -> Result<(), SandboxError> {
        Ok(())
    }
    async fn remove(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

#[async_trait]
impl SandboxProvider for ScriptedSelftestSandbox {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn isolation(&self) -> Isolation {
        Isolation::None
    }
    async fn preflight(&self) -> Vec<ProviderProblem> {
        Vec::new()
    }
    async fn create(&self, _: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.clone()))
    }
    async fn attach(&self, _: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError> {
        Ok(None)
    }
    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        Ok(vec![SandboxInfo {
            id: self.id.clone(),
            labels: [].into(),
        }])
    }
}

fn problem_texts(outcome: CheckOutcome) -> Vec<String> {
    match outcome {
        CheckOutcome::Passed(text) => vec![format!("passed: {text}")],
        CheckOutcome::Failed(problems) => {
            problems.into_iter().map(|problem| problem.what).collect()
        }
        CheckOutcome::NotRun(why) => vec![format!("not run: {why}")],
    }
}

const EXIT_OK: ExecStatus = ExecStatus::Exited(0);

#[tokio::test]
async fn an_open_network_is_detected() {
    let (inside, interfaces, names) = ("/guest probe", "/proc/net/dev", "getent");
    let blocked = (
        inside,
        "ok\ngate 200\nhost 403\nname 000\ndirect blocked\n",
        EXIT_OK,
    );
    let quiet = (interfaces, "lo 0x9\ntunl0 0x80", EXIT_OK);
    let good = "passed: `https://google.com` is blocked, `1.1.1.1:443` cannot be reached";
    for (answers, expected) in [
        (
            vec![blocked, quiet, (names, "blocked", EXIT_OK)],
            format!("{good}, its name does not resolve, the only active interface is lo"),
        ),
        (
            vec![blocked, quiet, (names, "untried", EXIT_OK)],
            format!(
                "{good}, the image has no program to resolve names, the only active interface is lo"
            ),
        ),
        (
            vec![blocked, (interfaces, "lo 0x9\neth0 0x1003", EXIT_OK)],
            "the sandbox has the network interface eth0".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\nhost 200\nname 000\ndirect blocked\n", EXIT_OK)],
            "a command in the sandbox can reach `https://google.com`, which no rule allows: it answered 200".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\nhost 000\nname 000\ndirect reached\n", EXIT_OK)],
            "a command in the sandbox can reach `1.1.1.1:443` past the gate".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\n", EXIT_OK)],
            "the probe inside the sandbox reported nothing about `https://google.com`, `1.1.1.1:443` (exit 0)".into(),
        ),
        (
            vec![blocked, quiet, (names, "resolved", EXIT_OK)],
            "a command can resolve the name `google.com`".into(),
        ),
        (
            vec![blocked, (interfaces, "sh: not found", ExecStatus::Exited(127))],
            "`while IFS=: read -r name rest; do` ended with exit 127: sh: not found".into(),
        ),
    ] {
        let sandbox = ScriptedSelftestSandbox::new(&answers);
        let session = sandbox.session();
        let (probe, report) = probe_network(&session).await;
        assert_eq!(problem_texts(check_network(&session, &probe, &report).await), [expected]);
    }
}

async fn probe_network(session: &SelftestSession<'_>) -> (PreflightProbe, PreflightReport) {
    let probe = PreflightProbe::for_rules(&EgressRules::new(EgressPolicy::Deny));
    let report = probe.run_in(&*session.sandbox).await.unwrap();
    (probe, report)
}

#[tokio::test]
async fn an_unresponsive_gate_is_detected() {
    for (text, expected) in [
        (
            "ok\ngate 200\nhost 000\nname 000\ndirect blocked\n",
            "passed: it answers at 127.0.0.1:4141",
        ),
        (
            "ok\ngate 000\nhost 000\nname 000\ndirect blocked\n",
            "the gate does not answer from inside the sandbox",
        ),
        (
            "ok\nhost 000\nname 000\ndirect blocked\n",
            "the probe inside the sandbox reported nothing about the gate at `127.0.0.1:4141` (exit 0)",
        ),
    ] {
        let sandbox = ScriptedSelftestSandbox::new(&[("/guest probe", text, EXIT_OK)]);
        let (probe, report) = probe_network(&sandbox.session()).await;
        assert_eq!(
            problem_texts(check_gate(&probe, &report)),
            [expected],
            "{text}"
        );
    }
}

#[tokio::test]
async fn privileges_are_detected() {
    for (text, expected) in [
        (
            "10001\n0000000000000000\n1",
            vec!["passed: commands run as the user 10001 without capabilities"],
        ),
        (
            "0\n00000000a80425fb\n0",
            vec![
                "commands run as the user 0",
                "commands have the capabilities 00000000a80425fb",
                "commands can gain privileges through setuid programs",
            ],
        ),
        (
            "",
            vec![
                "commands run as the user unknown",
                "commands have the capabilities unknown",
                "commands can gain privileges through setuid programs",
            ],
        ),
    ] {
        let sandbox = ScriptedSelftestSandbox::new(&[("id -u", text, EXIT_OK)]);
        assert_eq!(
            problem_texts(check_user(&sandbox.session()).await),
            expected,
            "{text}"
        );
    }
}

#[tokio::test]
async fn ineffective_limits_are_detected() {
    let (memory, disk, processes) = ("| tr", "scratch/full; sleep", "while [ $i");
    let strict = ScriptedSelftestSandbox::new(&[
        (memory, "", ExecStatus::OutOfMemory),
        (disk, "", ExecStatus::DiskLimit),
        (processes, "crowded", EXIT_OK),
    ]);
    assert_eq!(
        problem_texts(check_limits(&strict.session()).await),
        ["passed: memory, disk and processes are limited to 128 MiB, 64 MiB and 64"]
    );
    let lax = ScriptedSelftestSandbox::new(&[
        (memory, "", EXIT_OK),
        (disk, "", EXIT_OK),
        (processes, "", EXIT_OK),
    ]);
    assert_eq!(
        problem_texts(check_limits(&lax.session()).await),
        [
            "a command could use more than 128 MiB of memory",
            "a command could write more than 64 MiB",
            "a command could start more than 64 processes",
        ]
    );
}

#[tokio::test]
async fn a_sandbox_that_is_not_removed_is_detected() {
    let sandbox = ScriptedSelftestSandbox::new(&[]);
    assert_eq!(
        problem_texts(sandbox.session().remove_and_verify().await),
        ["sandbox `scripted` still exists"]
    );
}
