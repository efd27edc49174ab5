//! `ralph proxy`: serves an agent's API to other programs and adds the credential.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use ralph_app::AppError;
use ralph_app::proxy::{
    CredentialError, Health, LeaseOutcome, ProxyCredential, ProxyExit, ProxyNotice, ProxyUpstream,
    acquire_lease, open_gate, read_credential, serve, start_error,
};
use ralph_app::tokens::{AgentAuth, AgentName, AuthMode, BaseUrl};
use tokio::net::TcpListener;

use super::context::Context;
use super::dispatch::block_on;
use super::exit::ExitCode;
use super::signals::ShutdownSignals;
use crate::terminal::styled_line::StyledLine;
use ralph_app::duration;

/// Arguments of `proxy`.
#[derive(Debug, Args)]
pub(super) struct ProxyArgs {
    /// The agent whose API the proxy serves
    #[arg(long, value_name = "NAME", default_value = AgentName::DEFAULT, value_parser = AgentName::parse)]
    pub agent: AgentName,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:18080")]
    pub listen: SocketAddr,
    /// Send requests to this API instead of the provider's own
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    pub target: Option<BaseUrl>,
    /// Exit after this time without a request, such as 300s; 0 disables the timeout
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration::parse)]
    pub idle_timeout: Duration,
}

/// Reads the credential and serves until the idle timeout or a signal.
pub(super) fn run(args: &ProxyArgs, context: &Context) -> Result<ExitCode, AppError> {
    let agent = AgentAuth::for_agent(&args.agent);
    let upstream = ProxyUpstream::for_agent(&agent, args.target.as_ref()).ok_or_else(|| {
        AppError::usage(
            format!("cannot start a proxy for agent {}", args.agent),
            "ralph does not know the API of this agent",
            "name an agent whose API it knows: claude, codex, opencode",
        )
    })?;
    let pipe_hint = "pipe it in: `ralph get-token | ralph proxy`";
    if io::stdin().is_terminal() {
        return Err(AppError::usage(
            "no credential provided on stdin",
            "standard input is a terminal",
            pipe_hint,
        ));
    }
    let credential = read_credential(io::stdin().lock(), &agent).map_err(|error| match &error {
        CredentialError::Empty => AppError::runtime(error.to_string(), "", pipe_hint),
        CredentialError::Lines { .. }
        | CredentialError::Mode
        | CredentialError::UnsupportedMode(_)
        | CredentialError::Read(_) => AppError::runtime(
            "cannot read the credential from stdin",
            error.to_string(),
            pipe_hint,
        ),
    })?;
    context.app.add_secret("CREDENTIAL", &credential.secret);
    block_on(serve_proxy(args, upstream, credential, context))
}

/// Refuses a credential that may belong to another API than the provider's own.
async fn require_own_credential(
    agent: &AgentName,
    upstream: &ProxyUpstream,
    credential: &ProxyCredential,
    context: &Context,
) -> Result<(), AppError> {
    let (own, prefix) = (&upstream.address, upstream.wire.key_prefix());
    let secret = credential.secret.expose();
    if let Some(address) = stored_address(agent, secret, context).await? {
        return Err(AppError::usage(
            format!("the token of agent {agent} cannot be sent to {own}"),
            format!("it was stored for {address} only"),
            format!("use `--target {address}`"),
        ));
    }
    if credential.mode == AuthMode::Gateway {
        return Err(AppError::usage(
            format!("the key of a gateway cannot be sent to {own}"),
            "it is sent to its gateway only",
            "name the gateway with `--target URL`",
        ));
    }
    if !upstream.wire.matches_key(secret) {
        return Err(AppError::usage(
            format!("the credential does not look like one for {own}"),
            format!("its credentials start with `{prefix}`"),
            "name the API of the credential with `--target URL`",
        ));
    }
    Ok(())
}

/// Returns the address that this credential was stored with, if it is stored with one.
async fn stored_address(
    agent: &AgentName,
    secret: &str,
    context: &Context,
) -> Result<Option<BaseUrl>, AppError> {
    let tokens = context.app.tokens_read_only()?;
    for mode in AuthMode::ALL {
        // An unreadable credential cannot be the piped one.
        if let Ok(found) = tokens.find(agent, Some(mode)).await
            && found.token.secret.expose() == secret
            && let Some(address) = found.token.base_url
        {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

async fn serve_proxy(
    args: &ProxyArgs,
    upstream: ProxyUpstream,
    credential: ProxyCredential,
    context: &Context,
) -> Result<ExitCode, AppError> {
    if args.target.is_none() {
        require_own_credential(&args.agent, &upstream, &credential, context).await?;
    }
    let ProxyCredential { mode, secret } = credential;
    let mut notice = ProxyNotice::new(args.listen, mode, upstream.address.as_str(), &secret);
    let directory = context.app.state_dir()?.proxies();
    let lease = match acquire_lease(&directory, &args.agent, &notice, mode).await? {
        LeaseOutcome::Acquired(lease) => lease,
        LeaseOutcome::AlreadyRunning(notice) => {
            announce(args, "already listens", &notice, context)?;
            return Ok(ExitCode::Success);
        }
    };
    let listener = TcpListener::bind(args.listen).await;
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        AppError::runtime(
            format!("cannot listen on {}", args.listen),
            error.to_string(),
            "end the program that listens there, or choose another address with `--listen`",
        )
    })?;
    let route = upstream.route(mode, secret).map_err(|error| {
        AppError::runtime(
            "cannot use the credential",
            error.to_string(),
            "check the piped credential and `--target`",
        )
    })?;
    notice.address = address;
    notice.variables = upstream.variables(mode, &route, address);
    let health = Health { mode, address };
    let tools = context.app.settings()?.sandbox.network.provider_tools;
    let gate = open_gate(
        route,
        health,
        args.target.is_some(),
        tools,
        context.app.clock(),
    )
    .await?;
    // Registered before the announcement: a replacing proxy ends this one with a signal.
    let mut signals = ShutdownSignals::register()?;
    lease.publish(&notice)?;
    announce(args, "listens", &notice, context)?;
    let exit = serve(listener, gate, args.idle_timeout, signals.received()).await;
    Ok(match exit.map_err(|error| start_error(&error))? {
        ProxyExit::Idle => {
            let seconds = args.idle_timeout.as_secs();
            print_notice(
                context,
                &format!("ralph: proxy ended — no request for {seconds} seconds"),
            );
            ExitCode::Success
        }
        ProxyExit::Requested => ExitCode::Interrupted,
    })
}

/// Announces the proxy on standard error and prints the variables that programs need to use it.
fn announce(
    args: &ProxyArgs,
    verb: &str,
    notice: &ProxyNotice,
    context: &Context,
) -> Result<(), AppError> {
    let ProxyNotice {
        address,
        mode,
        target,
        ..
    } = notice;
    let agent = &args.agent;
    print_notice(
        context,
        &format!("ralph: proxy for agent {agent} {verb} on {address} ({mode}, to {target})"),
    );
    if !is_loopback(*address) {
        print_notice(
            context,
            "ralph: other machines can reach it, and their requests are not encrypted — use it only in a network that you trust",
        );
    }
    let lines: Vec<String> = notice
        .variables
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    context.output().print_text(&lines.concat())?;
    Ok(())
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}

fn print_notice(context: &Context, text: &str) {
    context
        .output()
        .print_stderr_lines([&StyledLine::from_text(text)]);
}
