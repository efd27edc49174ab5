//! Walls with holes are found.

use std::time::Duration;

use async_trait::async_trait;
use ralph_core::net::{Policy, Rules};
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Entry, ExecOutcome, InputSource, Isolation, OutputSink, Program, Sandbox, SandboxError,
    SandboxId, SandboxInfo, SandboxProvider, SandboxSpec, Stream, WriteMode,
};

use super::*;

#[test]
fn only_what_is_up_and_no_loop_is_a_way_out() {
    for (line, expected) in [
        ("lo 0x9", None),
        ("eth0 0x1003", Some("eth0")),
        ("tunl0 0x80", None),
        ("eth0 ", Some("eth0")),
        ("nonsense", None),
    ] {
        assert_eq!(is_up(line), expected, "{line}");
    }
}

/// A sandbox that answers every command with the first text whose key is in it.
#[derive(Clone)]
struct Scripted {
    id: SandboxId,
    answers: Vec<(&'static str, &'static str, Ended)>,
}

impl Scripted {
    fn new(answers: &[(&'static str, &'static str, Ended)]) -> Self {
        Self {
            id: SandboxId("scripted".into()),
            answers: answers.to_vec(),
        }
    }

    fn session(&self) -> Session<'_> {
        Session {
            provider: self,
            sandbox: Box::new(self.clone()),
        }
    }
}

#[async_trait]
impl Sandbox for Scripted {
    fn id(&self) -> &SandboxId {
        &self.id
    }
    fn prober(&self) -> Option<&str> {
        Some("/guest")
    }
    async fn exec(
        &self,
        exec: Exec,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let command = match exec.program {
            Program::Shell(command) => command,
            Program::Argv(argv) => argv.join(" "),
        };
        let answer = self
            .answers
            .iter()
            .find(|(key, _, _)| command.contains(key));
        let (_, text, ended) = answer.copied().unwrap_or(("", "", Ended::Exited(0)));
        output.chunk(Stream::Stdout, text.as_bytes());
        Ok(ExecOutcome {
            ended,
            duration: Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit: text == "crowded",
        })
    }
    async fn converse(
        &self,
        exec: Exec,
        _: &mut dyn InputSource,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.exec(exec, output).await
    }
    async fn read(&self, path: &SandboxPath, _: u64) -> Result<Vec<u8>, SandboxError> {
        Err(SandboxError::NotFound(path.to_string()))
    }
    async fn write(&self, _: &SandboxPath, _: &[u8], _: WriteMode) -> Result<(), SandboxError> {
        Ok(())
    }
    async fn list(&self, _: &SandboxPath) -> Result<Vec<Entry>, SandboxError> {
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
impl SandboxProvider for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn isolation(&self) -> Isolation {
        Isolation::None
    }
    async fn preflight(&self) -> Vec<Problem> {
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

fn told(outcome: Outcome) -> Vec<String> {
    match outcome {
        Outcome::Passed(text) => vec![format!("passed: {text}")],
        Outcome::Failed(problems) => problems.into_iter().map(|problem| problem.what).collect(),
        Outcome::NotRun(why) => vec![format!("not run: {why}")],
    }
}

const OK: Ended = Ended::Exited(0);

#[tokio::test]
async fn a_network_is_found() {
    let (inside, interfaces, names) = ("/guest probe", "/proc/net/dev", "getent");
    let blocked = (
        inside,
        "ok\ngate 200\nhost 403\nname 000\ndirect blocked\n",
        OK,
    );
    let quiet = (interfaces, "lo 0x9\ntunl0 0x80", OK);
    let good = "passed: `https://google.com` is blocked, `1.1.1.1:443` cannot be reached";
    for (answers, expected) in [
        (
            vec![blocked, quiet, (names, "blocked", OK)],
            format!("{good}, its name cannot be looked up, there is no interface but lo"),
        ),
        (
            vec![blocked, quiet, (names, "untried", OK)],
            format!(
                "{good}, the image has no program to look up a name with, there is no interface but lo"
            ),
        ),
        (
            vec![blocked, (interfaces, "lo 0x9\neth0 0x1003", OK)],
            "the sandbox has the network interface eth0".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\nhost 200\nname 000\ndirect blocked\n", OK)],
            "a command in the sandbox can reach `https://google.com`, which no rule allows: it answered 200".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\nhost 000\nname 000\ndirect reached\n", OK)],
            "a command in the sandbox can reach `1.1.1.1:443` past the gate".into(),
        ),
        (
            vec![(inside, "ok\ngate 200\n", OK)],
            "the probe inside of the sandbox reported nothing about `https://google.com`, `1.1.1.1:443` (exit 0)".into(),
        ),
        (
            vec![blocked, quiet, (names, "resolved", OK)],
            "a command can look up the name `google.com`".into(),
        ),
        (
            vec![blocked, (interfaces, "sh: not found", Ended::Exited(127))],
            "`while IFS=: read -r name rest; do` ended with exit 127: sh: not found".into(),
        ),
    ] {
        let sandbox = Scripted::new(&answers);
        let session = sandbox.session();
        let (look, seen) = looked(&session).await;
        assert_eq!(told(network(&session, &look, &seen).await), [expected]);
    }
}

async fn looked(session: &Session<'_>) -> (Look, Seen) {
    let look = Look::walls(&Rules::new(Policy::Deny));
    let seen = look.at(&*session.sandbox).await.unwrap();
    (look, seen)
}

#[tokio::test]
async fn a_gate_that_does_not_answer_is_found() {
    for (text, expected) in [
        (
            "ok\ngate 200\nhost 000\nname 000\ndirect blocked\n",
            "passed: it answers at 127.0.0.1:4141",
        ),
        (
            "ok\ngate 000\nhost 000\nname 000\ndirect blocked\n",
            "the gate does not answer from inside of the sandbox",
        ),
        (
            "ok\nhost 000\nname 000\ndirect blocked\n",
            "the probe inside of the sandbox reported nothing about the gate at `127.0.0.1:4141` (exit 0)",
        ),
    ] {
        let sandbox = Scripted::new(&[("/guest probe", text, OK)]);
        let (look, seen) = looked(&sandbox.session()).await;
        assert_eq!(told(gate(&look, &seen)), [expected], "{text}");
    }
}

#[tokio::test]
async fn power_is_found() {
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
                "commands can get more power by programs of other users",
            ],
        ),
        (
            "",
            vec![
                "commands run as the user nothing",
                "commands have the capabilities nothing",
                "commands can get more power by programs of other users",
            ],
        ),
    ] {
        let sandbox = Scripted::new(&[("id -u", text, OK)]);
        assert_eq!(told(user(&sandbox.session()).await), expected, "{text}");
    }
}

#[tokio::test]
async fn limits_without_an_effect_are_found() {
    let (memory, disk, processes) = ("| tr", "scratch/full; sleep", "while [ $i");
    let strict = Scripted::new(&[
        (memory, "", Ended::OutOfMemory),
        (disk, "", Ended::DiskLimit),
        (processes, "crowded", OK),
    ]);
    assert_eq!(
        told(limits(&strict.session()).await),
        ["passed: memory, disk and processes end at 128 MiB, 64 MiB and 64"]
    );
    let lax = Scripted::new(&[(memory, "", OK), (disk, "", OK), (processes, "", OK)]);
    assert_eq!(
        told(limits(&lax.session()).await),
        [
            "a command could use more than 128 MiB of memory",
            "a command could write more than 64 MiB",
            "a command could start more than 64 processes",
        ]
    );
}

#[tokio::test]
async fn a_sandbox_that_stays_is_found() {
    let sandbox = Scripted::new(&[]);
    assert_eq!(
        told(sandbox.session().end().await),
        ["sandbox `scripted` is still there"]
    );
}
