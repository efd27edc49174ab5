//! Serves the dashboard of the demo, with three more runs: the server works on them like on those of a
//! user.

use ralph_app::planning::TASK_FILE;
use ralph_app::server::ServerClient;
use ralph_app::{App, AppError};
use ralph_server::{ServeOptions, Server};
use serde_json::json;

use super::location::DemoLocation;
use super::project::{DemoProject, SERVED};
use crate::cli::context::Context;
use crate::cli::exit::ExitCode;
use crate::cli::output::CliOutput;
use crate::cli::serve;
use crate::cli::signals::ShutdownSignals;

/// Serves the dashboard until a signal.
pub(super) async fn serve(
    location: &DemoLocation,
    port: u16,
    context: Context,
) -> Result<ExitCode, AppError> {
    let output = context.output();
    let options = ServeOptions {
        token: context.app.environment().server_token(),
        ..ServeOptions::local(port, SERVED.len())
    };
    // Registered before the announcement: a script may end the demo as soon as it reads the link.
    let signals = ShutdownSignals::register()?;
    let server = Server::bind(context.app, options).await?;
    output.print_text(&format!(
        "\ndashboard: {}\n\
         The link signs one browser in; `ralph serve --login` prints another one. Ctrl-C ends the demo, and its files stay.\n\
         Three more runs start:\n",
        server.login_link()
    ))?;
    let app = server.app();
    let starting = async {
        for project in &SERVED {
            report_start(project, start(project, location, &app).await, output);
        }
    };
    let ended = serve::serve_until_signal(server, signals, starting, output);
    let code = Box::pin(ended).await?;
    output.print_text(&format!(
        "The files of the demo are in {root}\n\
         \x20 RALPH_HOME={state} ralph serve   continues its runs\n\
         \x20 rm -r {root}   removes everything\n",
        root = location.root(),
        state = location.state(),
    ))?;
    Ok(code)
}

/// Creates a project and hands its run to the server. Returns the id of the run.
async fn start(
    project: &DemoProject,
    location: &DemoLocation,
    app: &App,
) -> Result<String, AppError> {
    project.create(location, &app.providers()?).await?;
    let server = ServerClient::find(app).await?.ok_or_else(|| {
        AppError::runtime(
            "cannot start a run of the demo",
            "its server does not run",
            "",
        )
    })?;
    let request = json!({
        "directory": location.repository(project.name),
        "file": TASK_FILE,
        "model": location.model(project.name),
    });
    let created = server.post("/api/v1/runs", &request, None).await;
    let created = created?.into_result()?;
    Ok(created["id"].as_str().unwrap_or_default().to_owned())
}

/// Prints the id of a started run. A run that does not start does not end the demo.
fn report_start(project: &DemoProject, started: Result<String, AppError>, output: CliOutput) {
    let (name, purpose) = (project.name, project.purpose);
    match started {
        Ok(id) => drop(output.print_text(&format!("  {id}  {name:<6} {purpose}\n"))),
        Err(error) => output.print_error(&error, false),
    }
}
