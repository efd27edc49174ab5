//! Checks a sandbox from inside, before work continues there: it answers, its gate answers, and forbidden
//! hosts cannot be reached. `Run::check_sandbox` checks before the first iteration of every process and
//! after every pause; `ralph selftest` checks too.
//!
//! The sandbox's own guest probes, not a program of the image. A probe without a result is a failure.

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

/// How long the probes may take. They end after five seconds by themselves.
const PATIENCE: Duration = Duration::from_secs(10);
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

    /// Returns the command that tries it, with the program that probes in this sandbox. Without one,
    /// nothing is tried.
    pub fn exec(&self, prober: Option<&str>) -> Exec {
        let Some(prober) = prober.filter(|_| *self != Self::nothing()) else {
            return Exec::shell("echo ok", PATIENCE);
        };
        let gate = self.gate.map(|gate| ("--gate", gate.to_string()));
        let host = self.forbidden.as_ref();
        let host = host.map(|host| ("--host", host.to_string()));
        let direct = self.direct.map(|direct| ("--direct", direct.to_string()));
        let mut argv = vec![prober.to_owned(), "probe-network".to_owned()];
        for (option, value) in [gate, host, direct].into_iter().flatten() {
            argv.extend([option.to_owned(), value]);
        }
        Exec::argv(argv, PATIENCE)
    }

    /// Tries it.
    pub async fn at(&self, sandbox: &dyn Sandbox) -> Result<Seen, SandboxError> {
        let mut printed = Printed::default();
        let exec = self.exec(sandbox.prober());
        let outcome = sandbox.exec(exec, &mut printed).await?;
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

/// The result of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probed {
    /// There was an answer with this HTTP status; 0 for a connection without HTTP.
    Status(u16),
    /// There was no answer.
    Nothing,
    /// The probe reported no result.
    Missing,
}

impl Probed {
    /// Reads a word of the probe's output.
    fn read(word: Option<&str>) -> Self {
        match word {
            Some("reached") => Self::Status(0),
            Some("blocked") => Self::Nothing,
            Some(word) => match word.parse() {
                Ok(0) => Self::Nothing,
                Ok(status) => Self::Status(status),
                Err(_) => Self::Missing,
            },
            None => Self::Missing,
        }
    }

    /// Tells whether a forbidden host was reached: the gate's own refusals are 400 and more.
    fn is_leak(self) -> bool {
        matches!(self, Self::Status(0..400))
    }
}

/// The results of all probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    answers: bool,
    ended: Ended,
    gate: Probed,
    /// The forbidden host, through the proxy and by its name.
    forbidden: [Probed; 2],
    direct: Probed,
}

impl Seen {
    fn read(text: &str, outcome: &ExecOutcome) -> Self {
        let probed = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            Probed::read(lines.find_map(|(name, word)| (name == key).then_some(word)))
        };
        Self {
            answers: text.lines().next() == Some("ok"),
            ended: outcome.ended,
            gate: probed("gate"),
            forbidden: [probed("host"), probed("name")],
            direct: probed("direct"),
        }
    }

    /// Returns what is wrong; nothing means that work can continue there.
    pub fn problems(&self, look: &Look) -> Vec<Problem> {
        if !self.answers {
            return vec![Problem {
                what: format!(
                    "the sandbox does not answer: the first command {}",
                    self.ended
                ),
                fix: "look at the sandbox provider with `ralph preflight`".into(),
            }];
        }
        let mut problems = self.gate_problems(look);
        problems.extend(self.leaks(look));
        problems.extend(self.missing(look));
        problems
    }

    /// Returns what is wrong with the gate's answer.
    pub fn gate_problems(&self, look: &Look) -> Vec<Problem> {
        let is_wrong = match self.gate {
            // A missing result is a problem of its own.
            Probed::Status(200) | Probed::Missing => false,
            Probed::Status(_) | Probed::Nothing => look.gate.is_some(),
        };
        let silent = is_wrong.then(|| Problem {
            what: "the gate does not answer from inside of the sandbox".into(),
            fix: "look at it with `ralph selftest`".into(),
        });
        silent.into_iter().collect()
    }

    /// Returns what was reached that must not be.
    pub fn leaks(&self, look: &Look) -> Vec<Problem> {
        let leak = |what: String| Problem {
            what,
            fix: "do not let tasks work there; look at it with `ralph selftest`".to_owned(),
        };
        let mut leaks = Vec::new();
        let reached = self.forbidden.into_iter().find(|probed| probed.is_leak());
        if let (Some(host), Some(Probed::Status(status))) = (&look.forbidden, reached) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `https://{host}`, which no rule allows: it answered {status}"
            )));
        }
        if let (Some(address), Probed::Status(_)) = (look.direct, self.direct) {
            leaks.push(leak(format!(
                "a command in the sandbox can reach `{address}` past the gate"
            )));
        }
        leaks
    }

    /// Returns the probes without a result. Nothing is known about them, so nothing may be assumed.
    pub fn missing(&self, look: &Look) -> Vec<Problem> {
        let gate = look.gate.filter(|_| self.gate == Probed::Missing);
        let host = look.forbidden.as_ref();
        let host = host.filter(|_| self.forbidden.contains(&Probed::Missing));
        let direct = look.direct.filter(|_| self.direct == Probed::Missing);
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
        vec![Problem {
            what: format!(
                "the probe inside of the sandbox reported nothing about {} ({})",
                probes.join(", "),
                self.ended
            ),
            fix: "look at it with `ralph selftest`".into(),
        }]
    }

    /// Returns what was seen, each in a few words, if nothing is wrong.
    pub fn words(&self, look: &Look) -> Vec<String> {
        let gate = look.gate.map(|_| "the gate answers".to_owned());
        gate.into_iter().chain(Self::walls(look)).collect()
    }

    /// Returns what could not be reached, each in a few words, if nothing is wrong.
    pub fn walls(look: &Look) -> Vec<String> {
        let forbidden = look.forbidden.as_ref();
        let forbidden = forbidden.map(|host| format!("`https://{host}` is blocked"));
        let direct = look
            .direct
            .map(|address| format!("`{address}` cannot be reached"));
        forbidden.into_iter().chain(direct).collect()
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
        let exec = look.exec(self.sandbox.prober());
        let outcome = self.exec(exec, &mut printed).await?;
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
        Ok(())
    }
}

#[cfg(test)]
mod tests;
