//! `ralph store-token`, `check-token`, `get-token`: the credentials of agents.

use std::io::{self, IsTerminal as _};

use ralph_app::planning::worker::{self, UNKNOWN_AGENT_HINT};
use ralph_app::providers;
use ralph_app::tokens::stores::{TokenStoreKind, find_program};
use ralph_app::tokens::{
    AgentAuth, AgentName, AuthMode, AuthToken, FoundToken, ProbeError, SavedToken, StoreSelection,
    TokenError, TokenSlot, TokenStorage, format_date, validate,
};
use ralph_app::{AppError, ErrorKind};
use ralph_core::task::nearest;

use super::args::{StoreName, StoreTokenArgs, TokenArgs};
use super::prompt::{PromptError, prompt_for_token};
use super::setup_token::{SetupError, setup_token};
use super::stdin_token::{PipedTokenError, read_piped};
use crate::cli::context::Context;
use crate::cli::dispatch::block_on;
use crate::cli::exit::ExitCode;
use crate::terminal::styled_line::StyledLine;

/// Obtains a credential, validates it with its API, and stores it.
pub(in crate::cli) fn store(
    args: &StoreTokenArgs,
    context: &Context,
) -> Result<ExitCode, AppError> {
    require_known(&args.token.agent, context)?;
    // Opened before the user types: an unusable store should not cost a token.
    let tokens = tokens_in_store(args.token.store, context)?;
    let agent = AgentAuth::for_agent(&args.token.agent);
    let requested = args.token.auth.map(AuthMode::from);
    if let Some(mode) = requested.filter(|mode| !agent.modes.contains(mode)) {
        let known: Vec<&str> = agent.modes.iter().map(|mode| mode.as_str()).collect();
        return Err(AppError::usage(
            format!(
                "agent {} cannot authenticate with `{mode}`",
                args.token.agent
            ),
            format!("it supports {}", known.join(", ")),
            "choose one of these with `--auth`",
        ));
    }
    let mut token = if io::stdin().is_terminal() {
        obtain_token(args, requested.unwrap_or(agent.modes[0]), context)?
    } else {
        read_piped_token(context)?
    };
    context.app.add_secret("TOKEN", &token.secret);
    if let Some(address) = &args.base_url {
        token.base_url = Some(address.clone());
    }
    let mode = requested.unwrap_or_else(|| match token.base_url {
        Some(_) => AuthMode::Gateway,
        None => agent.infer_mode(token.secret.expose()),
    });
    let slot = TokenSlot {
        agent: args.token.agent.clone(),
        mode,
    };
    if let Some(expired) = token.expires.filter(|_| token.is_expired(tokens.now())) {
        return Err(check_error(TokenError::Expired {
            agent: slot.agent,
            mode,
            expired,
        }));
    }
    block_on(validate_and_store(args, slot, token, &tokens, context))
}

/// Rejects an unknown agent, whose token no run could use.
fn require_known(agent: &AgentName, context: &Context) -> Result<(), AppError> {
    if AgentAuth::KNOWN.contains(&agent.as_str()) {
        return Ok(());
    }
    let agents = context.app.agents()?;
    let Err(error) = agents.get(agent.as_str()) else {
        return Ok(());
    };
    let known = error.known.iter().map(String::as_str);
    let known = known.filter(|name| !AgentAuth::KNOWN.contains(name));
    let known: Vec<&str> = AgentAuth::KNOWN.into_iter().chain(known).collect();
    let what = format!("there is no agent `{agent}`");
    Err(match nearest(agent.as_str(), known.iter().copied()) {
        Some(name) => AppError::usage(what, "", format!("did you mean `{name}`?")),
        None => AppError::usage(
            what,
            format!("known agents: `{}`", known.join("`, `")),
            UNKNOWN_AGENT_HINT,
        ),
    })
}

async fn validate_and_store(
    args: &StoreTokenArgs,
    slot: TokenSlot,
    token: AuthToken,
    tokens: &TokenStorage,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let agent = &slot.agent;
    if slot.mode == AuthMode::Gateway && token.base_url.is_none() {
        return Err(AppError::usage(
            format!("no address for the gateway of agent {agent}"),
            "the key of a gateway is sent to that gateway only",
            "name it with `--base-url URL`, or as `baseUrl` in the JSON",
        ));
    }
    if args.no_validate {
        print_notice(context, "the token was not validated");
    } else {
        validate(&slot, &token)
            .await
            .map_err(|error| validation_error(&slot, &error))?;
    }
    let saved = tokens.save(&slot, &token).await?;
    print_storage_notice(&saved, context);
    let expires = token.expires.map(format_date).map_or_else(
        || "no expiry known".to_owned(),
        |date| format!("expires {date}"),
    );
    let stored = format!("ralph: token stored for agent {agent} ({expires})\n");
    context.output().print_text(&stored)?;
    Ok(ExitCode::Success)
}

/// Checks whether an agent has a valid credential.
pub(in crate::cli) async fn check(
    args: TokenArgs,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let tokens = tokens_in_store(args.store, context)?;
    let found = find_token(&tokens, &args, context)
        .await
        .map_err(check_error)?;
    let token = &found.token;
    let until = match (token.expires, token.days_left(tokens.now())) {
        (Some(expires), Some(days)) => {
            format!("expires {}, {days} days remaining", format_date(expires))
        }
        (_, _) => format!("from {}, no expiry known", found.store),
    };
    let valid = format!("ralph: token valid for agent {} ({until})\n", args.agent);
    context.output().print_text(&valid)?;
    Ok(ExitCode::Success)
}

/// Prints the credential of an agent and nothing else.
pub(in crate::cli) async fn get(args: TokenArgs, context: &Context) -> Result<ExitCode, AppError> {
    let tokens = tokens_in_store(args.store, context)?;
    let found = find_token(&tokens, &args, context).await?;
    context.output().print_text(found.token.secret.expose())?;
    Ok(ExitCode::Success)
}

/// Returns the credential that a run of this agent would use.
async fn find_token(
    tokens: &TokenStorage,
    args: &TokenArgs,
    context: &Context,
) -> Result<FoundToken, TokenError> {
    let mode = args.auth.map(AuthMode::from);
    let found = worker::find_token(&args.agent, mode, tokens, &context.app).await?;
    context.app.add_secret("TOKEN", &found.token.secret);
    Ok(found)
}

/// Returns the credentials in the requested store.
fn tokens_in_store(store: Option<StoreName>, context: &Context) -> Result<TokenStorage, AppError> {
    let path = context.app.search_path();
    let (keyring, program) = match store {
        None => return context.app.tokens(StoreSelection::All),
        Some(StoreName::File) => return context.app.tokens(StoreSelection::Files),
        Some(StoreName::Keychain) => (providers::keychain(path), "security"),
        Some(StoreName::SecretTool) => (providers::secret_tool(path), "secret-tool"),
    };
    let keyring = keyring.ok_or(TokenError::NoKeyring { program })?;
    Ok(context
        .app
        .tokens(StoreSelection::Keyring)?
        .with_keyring(keyring))
}

fn read_piped_token(context: &Context) -> Result<AuthToken, AppError> {
    let piped = read_piped(io::stdin().lock()).map_err(|error| match &error {
        PipedTokenError::Empty => AppError::runtime(error.to_string(), "", ""),
        PipedTokenError::TooLong | PipedTokenError::Read(_) | PipedTokenError::Bad(_) => {
            AppError::runtime(
                "cannot read the token from stdin",
                error.to_string(),
                "pipe in the bare token, or JSON with `accessToken`",
            )
        }
    })?;
    if piped.is_unrecognized_json {
        print_notice(
            context,
            "the input is JSON without `accessToken`, used as a bare token",
        );
    }
    Ok(piped.token)
}

/// Lets the agent's program create a token if it can, or else asks for one.
fn obtain_token(
    args: &StoreTokenArgs,
    mode: AuthMode,
    context: &Context,
) -> Result<AuthToken, AppError> {
    let agent = &args.token.agent;
    let program = find_program(context.app.search_path(), "claude")
        .filter(|_| agent.as_str() == "claude" && mode == AuthMode::Oauth);
    if let Some(program) = program {
        print_notice(
            context,
            "`claude setup-token` creates a token; follow its instructions",
        );
        let path = context.app.search_path();
        return setup_token(&program, path, io::stdin(), io::stdout()).map_err(
            |error| match &error {
                SetupError::Interrupted => interrupted_error(),
                SetupError::NoToken { .. } | SetupError::Terminal(_) | SetupError::Bad(_) => {
                    AppError::runtime(
                        "`claude setup-token` created no token",
                        error.to_string(),
                        "run it yourself and pipe the token into `ralph store-token`",
                    )
                }
            },
        );
    }
    let question = format!("ralph: {mode} token for agent {agent} (it is not shown): ");
    prompt_for_token(io::stdin(), io::stderr(), &question).map_err(|error| match &error {
        PromptError::Interrupted => interrupted_error(),
        PromptError::Empty | PromptError::Terminal(_) | PromptError::Bad(_) => AppError::runtime(
            "cannot read the token from the terminal",
            error.to_string(),
            "type or paste it, or pipe it into `ralph store-token`",
        ),
    })
}

fn interrupted_error() -> AppError {
    AppError::new(
        ErrorKind::Interrupted,
        "interrupted",
        "nothing was stored",
        "",
    )
}

fn validation_error(slot: &TokenSlot, error: &ProbeError) -> AppError {
    let agent = &slot.agent;
    let (what, fix) = match error {
        ProbeError::Rejected { .. } => (
            format!("token rejected for agent {agent}"),
            format!(
                "nothing was stored; get another one, or choose its mode with `--auth` (this was {})",
                slot.mode
            ),
        ),
        ProbeError::Unclear { .. } | ProbeError::Unreachable { .. } => (
            format!("token not validated for agent {agent}"),
            "try again later, or store it unvalidated with `--no-validate`".to_owned(),
        ),
        ProbeError::NoApi | ProbeError::NoAddress => (
            format!("token not validated for agent {agent}"),
            "store it unvalidated with `--no-validate`".to_owned(),
        ),
    };
    AppError::runtime(what, error.to_string(), fix)
}

/// Prints the location of a token that is stored in a file, because it is not encrypted there.
fn print_storage_notice(saved: &SavedToken, context: &Context) {
    let TokenStoreKind::File(path) = &saved.store else {
        return;
    };
    let why = saved
        .keyring_error
        .as_ref()
        .map_or_else(String::new, |error| {
            format!(" — the keyring cannot be used: {error}")
        });
    let notice = format!(
        "the token is stored in `{}`, unencrypted and readable only by you{why}",
        path.display()
    );
    print_notice(context, &notice);
}

fn print_notice(context: &Context, text: &str) {
    let text = context.app.redactor().redact(text).into_owned();
    let line = StyledLine::from_text(&format!("ralph: {text}"));
    context.output().print_stderr_lines([&line]);
}

/// Returns the error of a check. Scripts compare its text, so the one of an expired token has no
/// hint.
fn check_error(error: TokenError) -> AppError {
    let is_expired = matches!(error, TokenError::Expired { .. });
    let mut error = AppError::from(error);
    if is_expired {
        error.fix.clear();
    }
    error
}
