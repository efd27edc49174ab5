//! Requests to the running server: a new login link, a new token.

use ralph_app::server::ServerClient;
use ralph_app::{App, AppError};
use serde_json::{Value, json};

use crate::cli::exit::ExitCode;
use crate::cli::output::CliOutput;

/// Prints a new login link.
pub(super) async fn print_login_link(
    is_json: bool,
    app: &App,
    output: CliOutput,
) -> Result<ExitCode, AppError> {
    let server = find(app).await?;
    let created = server.post("/api/v1/login-links", &Value::Null, None).await;
    let created = created?.into_result()?;
    let link = created["url"].as_str().unwrap_or_default();
    if is_json {
        let url = link.split("/login?").next();
        output.print_json(&json!({"url": url, "login": link, "pid": server.pid()}))?;
    } else {
        output.print_text(&format!("dashboard: {link}\n"))?;
    }
    Ok(ExitCode::Success)
}

/// Replaces the token of the server.
pub(super) async fn replace_token(
    is_json: bool,
    app: &App,
    output: CliOutput,
) -> Result<ExitCode, AppError> {
    let server = find(app).await?;
    let replaced = server.post("/api/v1/token", &Value::Null, None).await;
    replaced?.into_result()?;
    if is_json {
        output.print_json(&json!({"pid": server.pid()}))?;
    } else {
        output.print_text("the token was replaced, and all sessions ended\n")?;
    }
    Ok(ExitCode::Success)
}

async fn find(app: &App) -> Result<ServerClient, AppError> {
    ServerClient::find(app).await?.ok_or_else(|| {
        AppError::runtime(
            "there is no running server",
            "no process serves this state directory",
            "start one with `ralph serve`",
        )
    })
}
