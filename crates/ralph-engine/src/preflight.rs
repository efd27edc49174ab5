//! Looks from inside of a sandbox, before work goes on there: it answers, its gate answers, and what is
//! forbidden cannot be reached. `Run::check_sandbox` asks before the first iteration of every process
//! and after every pause; `ralph selftest` asks too.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use ralph_core::event::Event;
use ralph_core::net::{Entry, Host, Rules};
use ralph_core::plan::RunPlan;
use ralph_core::ports::{
    CREDENTIALS, Ended, Exec, ExecOutcome, GateNews, Gatekeeper, Isolation, OutputSink, Problem,
    Sandbox, SandboxError, Stream,
};

use crate::error::RunError;
use crate::live::{take_news, write_down};
use crate::run::Run;

/// What runs inside.
const SCRIPT: &str = include_str!("preflight/inside.sh");
/// How long it may take. Each of its attempts ends after three seconds by itself.
const PATIENCE: Duration = Duration::from_secs(6);
/// How much of what it prints is read.
const MOST_BYTES: usize = 4 << 10;
/// Names that everybody can reach who can reach anything.
const WELL_KNOWN: [&str; 4] = [
    "google.com",
    "example.com",
    "wikipedia.org",
    "cloudflare.com",
];
/// An address that answers everywhere, if there is a network at all.
const PUBLIC: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(1, 1, 1, 1), 443));

/// What is tried from inside of a sandbox, besides that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Where its gate must answer.
    pub gate: Option<SocketAddr>,
    /// A name that must not be reached.
    pub forbidden: Option<Host>,
    /// An address that must not be reached past the gate.
    pub direct: Option<SocketAddr>,
}

impl Look {
    /// Tries nothing: a sandbox without walls only has to answer.
    pub fn nothing() -> Self {
        Self {
            gate: None,
            forbidden: None,
            direct: None,
        }
    }

    /// Tries the walls of a sandbox whose gate has these rules.
    pub fn walls(rules: &Rules) -> Self {
        let is_forbidden = |host: &Host| !rules.decide_name(host).is_allowed();
        let mut known = WELL_KNOWN.iter().filter_map(|name| Host::parse(name).ok());
        Self {
            gate: Some(CREDENTIALS),
            forbidden: known.find(is_forbidden),
            direct: Some(PUBLIC),
        }
    }

    /// Returns the command that tries it.
    pub fn exec(&self) -> Exec {
        let text = |value: Option<String>| value.unwrap_or_default();
        Exec::shell(SCRIPT, PATIENCE)
            .with_env("GATE", text(self.gate.map(|gate| gate.to_string())))
            .with_env(
                "HOST",
                text(self.forbidden.as_ref().map(ToString::to_string)),
            )
            .with_env(
                "ADDRESS",
                text(self.direct.map(|direct| direct.to_string())),
            )
    }

    /// Tries it.
    pub async fn at(&self, sandbox: &dyn Sandbox) -> Result<Seen, SandboxError> {
        let mut printed = Printed::default();
        let outcome = sandbox.exec(self.exec(), &mut printed).await?;
        Ok(Seen::read(&printed.text(), &outcome))
    }

    /// Tells whether a refusal at the gate is one that this look has caused.
    fn has_caused(&self, news: &GateNews) -> bool {
        let GateNews::Blocked { host, .. } = news else {
            return false;
        };
        let forbidden = self.forbidden.as_ref().map(ToString::to_string);
        let direct = self.direct.map(|direct| direct.ip().to_string());
        [forbidden, direct].iter().flatten().any(|own| own == host)
    }
}

/// What a look has printed, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Printed(Vec<u8>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl OutputSink for Printed {
    fn chunk(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout {
            let room = MOST_BYTES.saturating_sub(self.0.len());
            self.0.extend(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// What somebody answered, as far as anybody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// This status of HTTP.
    Status(u16),
    /// Nothing: refused, or no answer in time.
    Nothing,
    /// It was not tried.
    Untried,
}

/// What was seen from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    answers: bool,
    ended: Ended,
    /// What it was tried with, if the image has anything.
    tool: Option<String>,
    gate: Answer,
    forbidden: Answer,
    direct: Answer,
}

impl Seen {
    fn read(text: &str, outcome: &ExecOutcome) -> Self {
        let mut lines = text.lines();
        let answers = lines.next() == Some("ok");
        let value = |key: &str| {
            let of_key = |line: &str| Some(line.strip_prefix(key)?.trim().to_owned());
            text.lines().find_map(of_key)
        };
        // Whoever waits until the end of the time has reached nobody.
        let usual = match outcome.ended {
            Ended::TimedOut => Answer::Nothing,
            Ended::Exited(_)
            | Ended::Signalled(_)
            | Ended::OutputLimit
            | Ended::DiskLimit
            | Ended::OutOfMemory => Answer::Untried,
        };
        let answer = |key: &str| match value(key) {
            None => usual,
            // Not even its tool answered.
            Some(word) if word.is_empty() => Answer::Untried,
            Some(word) if word == "reached" => Answer::Status(0),
            Some(word) => match word.parse() {
                Ok(0) | Err(_) => Answer::Nothing,
                Ok(status) => Answer::Status(status),
            },
        };
        Self {
            answers,
            ended: outcome.ended,
            tool: value("tool ").filter(|tool| tool != "none"),
            gate: answer("gate "),
            forbidden: answer("host "),
            direct: answer("direct "),
        }
    }

    /// Returns what is wrong; nothing means that work can go on there.
    pub fn problems(&self, look: &Look) -> Vec<Problem> {
        if !self.answers {
            return vec![Problem {
                what: format!("the sandbox does not answer: `echo ok` {}", self.ended),
                fix: "look at the sandbox provider with `ralph preflight`".into(),
            }];
        }
        let silent = (self.gate_answers(look) == Some(false)).then(|| Problem {
            what: "the gate does not answer from inside of the sandbox".into(),
            fix: "look at it with `ralph selftest`".into(),
        });
        silent.into_iter().chain(self.leaks(look)).collect()
    }

    /// Tells whether the gate answers; none if nobody tried.
    pub fn gate_answers(&self, look: &Look) -> Option<bool> {
        look.gate?;
        self.tool.as_ref()?;
        match self.gate {
            Answer::Status(_) => Some(true),
            Answer::Nothing => Some(false),
            Answer::Untried => None,
        }
    }

    /// Returns what was reached that must not be.
    pub fn leaks(&self, look: &Look) -> Vec<Problem> {
        let leak = |what: String| Problem {
            what,
            fix: "do not let tasks work there; look at it with `ralph selftest`".to_owned(),
        };
        let mut leaks = Vec::new();
        if let (Some(host), Answer::Status(status @ 200..400)) = (&look.forbidden, self.forbidden) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `https://{host}`, which no rule allows: it answered {status}"
            )));
        }
        if let (Some(address), Answer::Status(_)) = (look.direct, self.direct) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `{address}` past the gate"
            )));
        }
        leaks
    }

    /// Returns what was seen, each in a few words, if nothing is wrong.
    pub fn words(&self, look: &Look) -> Vec<String> {
        let gate = self
            .gate_answers(look)
            .map(|_| "the gate answers".to_owned());
        gate.into_iter().chain(self.walls(look)).collect()
    }

    /// Returns what could not be reached, each in a few words, if nothing leaks.
    pub fn walls(&self, look: &Look) -> Vec<String> {
        let forbidden = look.forbidden.as_ref();
        let forbidden = forbidden.filter(|_| self.forbidden != Answer::Untried);
        let direct = look.direct.filter(|_| self.direct != Answer::Untried);
        let forbidden = forbidden.map(|host| format!("`https://{host}` is blocked"));
        let direct = direct.map(|address| format!("`{address}` cannot be reached"));
        forbidden.into_iter().chain(direct).collect()
    }

    /// Says what could not be tried, if there is such a thing.
    pub fn left_out(&self, look: &Look) -> Option<String> {
        if *look == Look::nothing() {
            return None;
        }
        if self.tool.is_none() {
            return Some(
                "the image has neither curl, wget, python3 nor bash, so nobody tried what can be reached from inside of the sandbox"
                    .into(),
            );
        }
        let tried = [
            (look.gate.is_some(), self.gate),
            (look.forbidden.is_some(), self.forbidden),
            (look.direct.is_some(), self.direct),
        ];
        let tool = self.tool.as_deref().unwrap_or_default();
        tried.contains(&(true, Answer::Untried)).then(|| {
            format!(
                "`{tool}` of the image broke down ({}), so not everything was tried that could be reached from inside of the sandbox",
                self.ended
            )
        })
    }
}

/// Returns what has to be tried in the sandbox of a run.
fn of_run(plan: &RunPlan, allowed: impl IntoIterator<Item = Entry>) -> Look {
    let network = plan.network.as_ref();
    match (plan.isolation, network) {
        (Isolation::None, _) | (_, None) => Look::nothing(),
        (Isolation::Container | Isolation::Machine, Some(network)) => {
            let mut rules = Rules::new(network.policy.clone());
            for entry in allowed {
                rules.add(entry);
            }
            Look::walls(&rules)
        }
    }
}

/// Lets a gate tell of a host again when somebody else wants to reach it.
fn forget(gate: &dyn Gatekeeper, own: Vec<GateNews>) {
    for news in own {
        if let GateNews::Blocked { host, .. } = news {
            gate.forget_host(&host);
        }
    }
}

impl Run {
    /// Looks from inside of the sandbox whether work can go on there; an error pauses the run.
    pub(crate) async fn check_sandbox(&mut self) -> Result<(), RunError> {
        let allowed = self.state().allowed_hosts.iter();
        let allowed: Vec<Entry> = allowed.filter_map(|host| Entry::parse(host).ok()).collect();
        let gate = self.outside.gate.clone();
        let look = match &gate {
            Some(_) => of_run(&self.state().plan, allowed),
            None => Look::nothing(),
        };
        // What others have done before is told as theirs.
        if let Some(gate) = &gate {
            take_news(&mut self.journal, &**gate)?;
        }
        let mut printed = Printed::default();
        let outcome = self.exec(look.exec(), &mut printed).await?;
        if let Some(gate) = &gate {
            let (own, others) = gate
                .news()
                .into_iter()
                .partition(|news| look.has_caused(news));
            write_down(&mut self.journal, others)?;
            forget(&**gate, own);
        }
        let seen = Seen::read(&printed.text(), &outcome);
        self.tell_check(&look, &seen, outcome.duration)?;
        self.is_checked = true;
        Ok(())
    }

    fn tell_check(&mut self, look: &Look, seen: &Seen, took: Duration) -> Result<(), RunError> {
        let problems = seen.problems(look);
        if let Some(first) = problems.first() {
            let whats: Vec<&str> = problems.iter().map(|problem| &*problem.what).collect();
            return Err(RunError::Unfit(Problem {
                what: whats.join("; "),
                fix: first.fix.clone(),
            }));
        }
        let words = seen.words(look);
        if !words.is_empty() {
            self.journal.append(Event::SandboxChecked {
                seen: words,
                duration_ms: took.as_millis().try_into().unwrap_or(u64::MAX),
            })?;
        }
        if let Some(message) = seen.left_out(look) {
            self.journal.append(Event::Notice { message })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
