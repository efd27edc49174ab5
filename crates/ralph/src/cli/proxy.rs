//! `ralph proxy`: the stand-alone port that adds credentials.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget::{Limits as Budgets, Spent};
use ralph_core::id::RunId;
use ralph_core::net::{Allowlist, Policy};
use ralph_gate::{
    Gate, Identity, Limits, Meter, Outside, Rates, Reachable, Resolver as _, Route, Settings,
    SystemResolver,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::dispatch::wait_for;
use super::error::CliError;
use super::exit::ExitCode;
use super::token_args::ProxyArgs;
use crate::proxy::{
    Credential, CredentialError, Ended, Health, LeaseError, Notice, RequestLog, Start, Upstream,
    read_credential, serve, take,
};
use crate::terminal::line::Line;
use crate::tokens::{Agent, AgentName, AuthMode, BaseUrl};

/// How long a connection may carry nothing: a provider that does not answer is given up then.
const SILENCE: Duration = Duration::from_mins(5);

/// Reads the credential and serves until nobody needs it any more.
pub(super) fn run(args: &ProxyArgs, context: &Context) -> Result<ExitCode, CliError> {
    let agent = Agent::of(&args.agent);
    let upstream = Upstream::of(&agent, args.target.as_ref()).ok_or_else(|| {
        CliError::usage(
            format!("cannot be the proxy of agent {}", args.agent),
            "ralph does not know the API of this agent",
            "use the name of an agent whose API it speaks: claude, codex, opencode",
        )
    })?;
    let pipe = "pipe it in: `ralph get-token | ralph proxy`";
    if io::stdin().is_terminal() {
        return Err(CliError::usage(
            "no credential provided on stdin",
            "it is a terminal",
            pipe,
        ));
    }
    let credential = read_credential(io::stdin().lock(), &agent).map_err(|error| match &error {
        CredentialError::Empty => CliError::runtime(error.to_string(), "", pipe),
        CredentialError::Lines { .. }
        | CredentialError::Mode
        | CredentialError::Foreign(_)
        | CredentialError::Read(_) => CliError::runtime(
            "cannot take the credential from stdin",
            error.to_string(),
            pipe,
        ),
    })?;
    context.learn("CREDENTIAL", &credential.secret);
    wait_for(start(args, upstream, credential, context))
}

/// Refuses to send a credential to the provider that may be for somebody else.
async fn require_own(
    agent: &AgentName,
    upstream: &Upstream,
    credential: &Credential,
    context: &Context,
) -> Result<(), CliError> {
    let (own, mark) = (&upstream.address, upstream.wire.own_mark());
    let secret = credential.secret.expose();
    if let Some(address) = stored_address(agent, secret, context).await? {
        return Err(CliError::usage(
            format!("the token of agent {agent} is not for {own}"),
            format!("it was stored for {address} alone"),
            format!("name that with `--target {address}`"),
        ));
    }
    if credential.mode == AuthMode::Gateway {
        return Err(CliError::usage(
            format!("the key of a gateway is not for {own}"),
            "it is sent to its gateway only",
            "name that with `--target URL`",
        ));
    }
    if !upstream.wire.is_own(secret) {
        return Err(CliError::usage(
            format!("the credential does not look like one for {own}"),
            format!("those begin with `{mark}`"),
            "name the API that it is for with `--target URL`",
        ));
    }
    Ok(())
}

/// Returns the address that a credential was stored with, if this very one was.
async fn stored_address(
    agent: &AgentName,
    secret: &str,
    context: &Context,
) -> Result<Option<BaseUrl>, CliError> {
    let tokens = context.tokens_to_look()?;
    for mode in AuthMode::ALL {
        // What cannot be read there was not piped in from there.
        if let Ok(found) = tokens.find(agent, Some(mode)).await
            && found.token.secret.expose() == secret
            && let Some(address) = found.token.base_url
        {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

async fn start(
    args: &ProxyArgs,
    upstream: Upstream,
    credential: Credential,
    context: &Context,
) -> Result<ExitCode, CliError> {
    if args.target.is_none() {
        require_own(&args.agent, &upstream, &credential, context).await?;
    }
    let Credential { mode, secret } = credential;
    let mut notice = Notice::new(args.listen, mode, upstream.address.as_str(), &secret);
    let directory = context.state()?.proxies();
    let lease = match take(&directory, &args.agent, &notice, mode).await? {
        Start::Ours(lease) => lease,
        Start::Runs(notice) => {
            tell(args, "already listens", &notice, context)?;
            return Ok(ExitCode::Success);
        }
    };
    let sockets = TcpListener::bind(args.listen).await;
    let bound = sockets.and_then(|sockets| Ok((sockets.local_addr()?, sockets)));
    let (address, sockets) = bound.map_err(|error| {
        CliError::runtime(
            format!("cannot listen on {}", args.listen),
            error.to_string(),
            "end what listens there, or choose another place with `--listen`",
        )
    })?;
    let route = upstream.route(mode, secret).map_err(|error| {
        CliError::runtime(
            "cannot use the credential",
            error.to_string(),
            "look at what is piped in, and at `--target`",
        )
    })?;
    notice.address = address;
    notice.variables = upstream.variables(mode, &route, address);
    let health = Health { mode, address };
    let gate = gate(route, health, args.target.is_some(), context).await?;
    // Before anybody is told: the one who replaces it ends it this way.
    let told = told_to_end()?;
    lease.publish(&notice)?;
    tell(args, "listens", &notice, context)?;
    let ended = serve(sockets, gate, args.idle_timeout, told).await;
    Ok(match ended.map_err(|error| cannot_start(&error))? {
        Ended::Idle => {
            let seconds = args.idle_timeout.as_secs();
            complain(
                context,
                &format!("ralph: proxy ended — no request for {seconds} seconds"),
            );
            ExitCode::Success
        }
        Ended::Told => ExitCode::Interrupted,
    })
}

/// Makes the gate: it has one credential and no other way out.
async fn gate(
    route: Route,
    health: Health,
    is_named: bool,
    context: &Context,
) -> Result<Gate, CliError> {
    let mut reachable = Reachable::public();
    if is_named {
        // Whoever names an API on the command line means its address, a private one, too.
        let named = SystemResolver.lookup(route.endpoint()).await;
        for address in named.unwrap_or_default() {
            reachable = reachable.and(address);
        }
    }
    let allowed = context.settings()?.sandbox.network.provider_tools;
    let provider_tools = allowed.into_iter().collect();
    let run = RunId::parse("proxy").ok_or_else(|| cannot_start(&"it has no name"))?;
    let settings = Settings {
        identity: Identity {
            run,
            sandbox: "none".to_owned(),
        },
        policy: Policy::Deny,
        inspect: Allowlist::default(),
        routes: vec![route],
        provider_tools,
        limits: Limits {
            idle: SILENCE,
            ..Limits::default()
        },
    };
    let clock = context.clock();
    let budgets = (Budgets::default(), Spent::default(), Rates::default());
    let outside = Outside {
        resolver: Arc::new(SystemResolver),
        reachable: Reachable::public(),
        credential_reachable: reachable,
        roots: ralph_gate::system_roots(),
        meter: Meter::new(&budgets.0, budgets.1, budgets.2, clock.clone()),
        clock,
        sink: Arc::new(RequestLog::start(io::stderr())),
        cassette: None,
    };
    Gate::alone(settings, outside, health.text()).map_err(|error| cannot_start(&error))
}

fn cannot_start(why: &impl ToString) -> CliError {
    CliError::runtime(
        "cannot start the proxy",
        why.to_string(),
        "look at the limits of this user (`ulimit -a`)",
    )
}

/// Says where the proxy is, and prints what programs need to use it.
fn tell(args: &ProxyArgs, does: &str, notice: &Notice, context: &Context) -> Result<(), CliError> {
    let Notice {
        address,
        mode,
        target,
        ..
    } = notice;
    let agent = &args.agent;
    complain(
        context,
        &format!("ralph: proxy for agent {agent} {does} on {address} ({mode}, to {target})"),
    );
    if !is_this_machine(*address) {
        complain(
            context,
            "ralph: other machines reach it, and what they send is not encrypted on the way — use it in a network of your own only",
        );
    }
    let lines: Vec<String> = notice
        .variables
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    context.output().text(&lines.concat())?;
    Ok(())
}

fn is_this_machine(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

fn complain(context: &Context, text: &str) {
    context.output().complain([&Line::of(text)]);
}

/// Returns what waits for a signal that ends the proxy.
fn told_to_end() -> Result<impl Future<Output = ()>, CliError> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else {
        return Err(CliError::runtime(
            "cannot listen for signals",
            "the system does not allow it",
            "look at the limits of this user (`ulimit -a`)",
        ));
    };
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

impl From<LeaseError> for CliError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Store(error) => error.into(),
            LeaseError::Held { .. } => Self::runtime(
                error.to_string(),
                "it neither answers nor ends",
                "look for it with `ps`, and end it",
            ),
        }
    }
}
