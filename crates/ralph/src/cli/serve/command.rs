//! Starts the server, or asks the running one.

use std::time::Duration;

use ralph_app::{App, AppError};
use ralph_server::{Server, ServerAddress};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::args::ServeArgs;
use super::{browser, machine_state, running};
use crate::cli::context::Context;
use crate::cli::exit::ExitCode;
use crate::cli::output::CliOutput;
use crate::cli::signals::ShutdownSignals;
use crate::terminal::styled_line::StyledLine;

/// Threads for requests: they wait most of the time, and each run has a thread of its own.
const REQUEST_THREADS: usize = 2;

/// How long the end waits for the threads of requests.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until a signal ends the server.
pub(in crate::cli) fn run(args: &ServeArgs, context: Context) -> Result<ExitCode, AppError> {
    block_on(serve(args, context))
}

/// Works on the runtime of a server.
pub(in crate::cli) fn block_on<T>(
    work: impl Future<Output = Result<T, AppError>>,
) -> Result<T, AppError> {
    let runtime = runtime()?;
    let ended = runtime.block_on(work);
    // Requests in progress do not delay the end.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    ended
}

fn runtime() -> Result<Runtime, AppError> {
    Builder::new_multi_thread()
        .worker_threads(REQUEST_THREADS)
        .enable_all()
        .build()
        .map_err(|error| {
            AppError::runtime(
                "cannot start the async runtime",
                error.to_string(),
                "check the limits of this user (`ulimit -a`)",
            )
        })
}

async fn serve(args: &ServeArgs, context: Context) -> Result<ExitCode, AppError> {
    let output = context.output();
    if args.login {
        return running::print_login_link(args.json, &context.app, output).await;
    }
    if args.rotate_token {
        return running::replace_token(args.json, &context.app, output).await;
    }
    let options = args.options(context.app.environment())?;
    if context.app.environment().has_ignored_server_token() {
        notice(
            output,
            "`RALPH_TOKEN` of `.env` is not used — a repository could contain it — set it in the environment",
        );
    }
    // Registered before the announcement: a script may end the server as soon as it reads the link.
    let signals = ShutdownSignals::register()?;
    let server = Server::bind(context.app, options).await?;
    let link = server.login_link();
    announce(args, server.address(), &link, output)?;
    if !ralph_server::has_dashboard() {
        notice(
            output,
            "this build has no dashboard — it was made without Node 20 or newer — install Node and build again",
        );
    }
    if args.open
        && let Err(why) = browser::open(&link).await
    {
        notice(
            output,
            &format!("no browser was opened — {why} — open the link yourself"),
        );
    }
    let app = server.app();
    let printing = async {
        if !args.json {
            print_state(&app, output).await;
        }
    };
    Box::pin(serve_until_signal(server, signals, printing, output)).await
}

/// Serves until a signal. `beside` runs at the same time; its end does not end the server.
pub(in crate::cli) async fn serve_until_signal(
    server: Server,
    mut signals: ShutdownSignals,
    beside: impl Future<Output = ()>,
    output: CliOutput,
) -> Result<ExitCode, AppError> {
    let (stop, stopped) = watch::channel(false);
    let serving = server.serve(stopped);
    tokio::pin!(serving);
    let signalled = async {
        tokio::select! {
            () = beside => {}
            () = signals.received() => return,
        }
        signals.received().await;
    };
    tokio::select! {
        ended = &mut serving => return ended.map(|()| ExitCode::Success),
        () = signalled => {}
    }
    notice(
        output,
        "stopping: runs are parked, and continue when the server starts again",
    );
    stop.send_replace(true);
    tokio::select! {
        ended = &mut serving => ended.map(|()| ExitCode::Success),
        () = signals.received() => Ok(ExitCode::Interrupted),
    }
}

/// Prints the login link as the first line.
fn announce(
    args: &ServeArgs,
    address: &ServerAddress,
    link: &str,
    output: CliOutput,
) -> Result<(), AppError> {
    if args.json {
        let pid = std::process::id();
        output.print_json(&json!({"url": address.url, "login": link, "pid": pid}))?;
    } else {
        output.print_text(&format!("dashboard: {link}\n"))?;
    }
    Ok(())
}

/// Prints what runs can use. A failure does not end the server.
async fn print_state(app: &App, output: CliOutput) {
    let printed = match machine_state::lines(app).await {
        Ok(lines) => output.print_lines(&lines).map(|_| ()),
        Err(error) => Err(error),
    };
    if let Err(error) = printed {
        notice(output, &error.to_string());
    }
}

fn notice(output: CliOutput, text: &str) {
    output.print_stderr_lines([&StyledLine::from_text(&format!("ralph: {text}"))]);
}
