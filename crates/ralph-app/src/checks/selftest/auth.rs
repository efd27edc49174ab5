//! Checks that the agent can log in through the gate with its placeholder credential.

use std::time::Duration;

use ralph_core::ports::{AgentEnd, Exec, ExecProgram, ExecStatus, OutputSink, OutputStream};
use ralph_providers::agent::{CredentialKind, PresetAgentSettings};
use serde_json::json;

use super::account::SelftestAccount;
use super::gate::{SandboxLogin, SelftestGate};
use super::session::{QUICK_TIMEOUT, SelftestSession, sandbox_failure};
use crate::checks::CheckOutcome;
use crate::format;
use crate::providers::Providers;

/// The prompt for the agent.
const PROMPT: &str = "say ok";
/// The timeout of the agent.
const AGENT_TIMEOUT: Duration = Duration::from_mins(1);
/// The limit of captured output, in bytes.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The number of characters of the output that a message quotes.
const MAX_QUOTED_CHARACTERS: usize = 200;

/// Sends a request through the gate and prints the status of the response, or `untried` without curl
/// and Python.
const REQUEST_SCRIPT: &str = r#"
if command -v curl >/dev/null 2>&1; then
    curl -q -s -m 55 -o /dev/null -w '%{http_code}' ${BODY:+--data "$BODY"} -H "authorization: Bearer $KEY" \
        -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' "$URL"
elif command -v python3 >/dev/null 2>&1; then
    python3 -I -c '
import os, urllib.error, urllib.request
headers = {"authorization": "Bearer " + os.environ["KEY"], "content-type": "application/json", "anthropic-version": "2023-06-01"}
body = os.environ["BODY"].encode() or None
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open(urllib.request.Request(os.environ["URL"], body, headers), timeout=55).status)
except urllib.error.HTTPError as error:
    print(error.code)
'
else
    echo untried
fi"#;

/// Checks that the agent replies to a short prompt. If the image does not contain its program, sends a
/// request in the agent's format instead.
pub(super) async fn check_login(
    session: &SelftestSession<'_>,
    account: &SelftestAccount,
    gate: &SelftestGate,
    providers: &Providers,
) -> CheckOutcome {
    let Some(login) = &gate.login else {
        return CheckOutcome::Passed(format!("`{}` needs no credential", account.preset.name));
    };
    let program = account.preset.command.first().map_or("", String::as_str);
    let found = session.shell(&format!("command -v '{program}'")).await;
    match found {
        Ok(answer) if answer.outcome.ended.is_success() => {
            run_agent(session, account, login, providers).await
        }
        Ok(_) => send_request(session, account, login, program).await,
        Err(error) => sandbox_failure(error),
    }
}

/// The captured output of a program, limited per stream.
#[derive(Default)]
struct SelftestAgentOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutputSink for SelftestAgentOutput {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        let buffer = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let room = MAX_OUTPUT_BYTES.saturating_sub(buffer.len());
        buffer.extend(&bytes[..bytes.len().min(room)]);
    }
}

/// Runs the agent's program with a short prompt.
async fn run_agent(
    session: &SelftestSession<'_>,
    account: &SelftestAccount,
    login: &SandboxLogin,
    providers: &Providers,
) -> CheckOutcome {
    let name = &account.preset.name;
    let settings = PresetAgentSettings {
        model: Some(small_model(account, login.kind)),
        base_url: login.base_url.clone(),
        login: login.environment.clone(),
        clock: providers.clock.clone(),
    };
    let agent = match account.preset.build_agent(&settings) {
        Ok(agent) => agent,
        Err(error) => return CheckOutcome::failed(error.to_string(), "report the problem"),
    };
    let command = agent.command(PROMPT);
    let exec = Exec {
        program: ExecProgram::Argv(command.argv),
        env: command.env,
        ..Exec::shell("", AGENT_TIMEOUT)
    };
    let mut output = SelftestAgentOutput::default();
    let ran = session
        .sandbox
        .exec(exec.with_stdin(command.stdin), None, &mut output);
    let outcome = match ran.await {
        Ok(outcome) => outcome,
        Err(error) => return sandbox_failure(error),
    };
    let mut reader = agent.reader();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        reader.parse_line(line);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let (end, report) = reader.finish(outcome.ended, &stderr);
    match check_agent_end(name, &end, outcome.ended) {
        None => CheckOutcome::Passed(format!(
            "`{name}` replied `{}` in {}",
            truncate(&report.summary),
            format::duration(outcome.duration)
        )),
        Some(failure) => failure,
    }
}

/// Returns a cheap model.
fn small_model(account: &SelftestAccount, kind: CredentialKind) -> String {
    let name = match kind {
        CredentialKind::AnthropicApiKey
        | CredentialKind::AnthropicOauth
        | CredentialKind::AnthropicGateway => "haiku",
        CredentialKind::Openai => "gpt-5-nano",
    };
    format!("{}{name}", account.model_prefix)
}

/// Returns the failure of an agent that did not finish.
fn check_agent_end(name: &str, end: &AgentEnd, ended: ExecStatus) -> Option<CheckOutcome> {
    let output_hint = "check its output, then try again".to_owned();
    let (why, fix) = match end {
        AgentEnd::Finished => return None,
        AgentEnd::Unauthorized { why } => (
            format!("its credential was refused: {why}"),
            credential_hint(name),
        ),
        AgentEnd::GaveUp { why } | AgentEnd::Overloaded { why } | AgentEnd::Quota { why, .. } => {
            (why.clone(), output_hint)
        }
        AgentEnd::Crashed { why } => (format!("{why} ({ended})"), output_hint),
        AgentEnd::OutOfBudget => (
            "it used more tokens than the selftest allows".to_owned(),
            output_hint,
        ),
        AgentEnd::Halted => ("it was stopped".to_owned(), output_hint),
        AgentEnd::Stalled | AgentEnd::TimedOut => (
            format!("it did not answer within {} s", AGENT_TIMEOUT.as_secs()),
            "check that its provider can be reached from this machine".to_owned(),
        ),
    };
    Some(CheckOutcome::failed(
        format!("`{name}` did not reply: {}", truncate(&why)),
        fix,
    ))
}

fn credential_hint(name: &str) -> String {
    format!("store a valid one with `ralph store-token --agent {name}`")
}

/// Sends a request in the agent's format with curl or Python.
async fn send_request(
    session: &SelftestSession<'_>,
    account: &SelftestAccount,
    login: &SandboxLogin,
    program: &str,
) -> CheckOutcome {
    let (path, body) = request(account, login.kind);
    let exec = Exec::shell(REQUEST_SCRIPT, AGENT_TIMEOUT.max(QUICK_TIMEOUT))
        .with_env("URL", format!("{}{path}", login.base_url))
        .with_env("KEY", &login.placeholder_token)
        .with_env("BODY", body);
    let answer = match session.run(exec).await {
        Ok(answer) => answer,
        Err(error) => return sandbox_failure(error),
    };
    let name = &account.preset.name;
    match answer.text.parse::<u16>() {
        Ok(status @ 200..300) => CheckOutcome::Passed(format!(
            "a request in the format of `{name}` was answered with {status}; the image has no `{program}`"
        )),
        Ok(status @ (401 | 403)) => CheckOutcome::failed(
            format!("the credential of `{name}` was refused with {status}"),
            credential_hint(name),
        ),
        Ok(status) => CheckOutcome::failed(
            format!("a request in the format of `{name}` was answered with {status}"),
            "check that its provider can be reached from this machine",
        ),
        Err(_) if answer.text == "untried" => CheckOutcome::NotRun(format!(
            "the image has neither `{program}` nor curl nor python3"
        )),
        Err(_) => CheckOutcome::failed(
            format!(
                "a request in the format of `{name}` was not answered: {}",
                truncate(&answer.text)
            ),
            "check that the gate can be reached from inside the sandbox",
        ),
    }
}

/// Returns the path and the body of a small request.
fn request(account: &SelftestAccount, kind: CredentialKind) -> (&'static str, String) {
    match kind {
        CredentialKind::AnthropicApiKey
        | CredentialKind::AnthropicOauth
        | CredentialKind::AnthropicGateway => {
            let model = format!("{}claude-haiku-4-5", account.model_prefix);
            let messages = json!([{"role": "user", "content": PROMPT}]);
            let body = json!({"model": model, "max_tokens": 8, "messages": messages});
            ("/v1/messages", body.to_string())
        }
        CredentialKind::Openai => ("/models", String::new()),
    }
}

fn truncate(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_QUOTED_CHARACTERS).collect()
}
