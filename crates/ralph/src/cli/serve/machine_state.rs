//! What the runs of a server can use: sandbox providers and agents.

use ralph_app::inventory::{AgentEntry, SandboxProviderState, list_agents, list_sandbox_providers};
use ralph_app::{App, AppError};

use crate::terminal::styled_line::StyledLine;

/// Returns a line for sandboxes and one for agents.
pub(super) async fn lines(app: &App) -> Result<Vec<StyledLine>, AppError> {
    let sandboxes = list_sandbox_providers(app).await?;
    let sandboxes: Vec<String> = sandboxes.iter().map(describe_provider).collect();
    let agents: Vec<String> = list_agents(app).await?.iter().map(describe_agent).collect();
    let lines = [("sandboxes", sandboxes), ("agents", agents)];
    Ok(lines
        .into_iter()
        .map(|(title, entries)| StyledLine::from_text(&format!("{title}: {}", entries.join(", "))))
        .collect())
}

fn describe_provider(state: &SandboxProviderState) -> String {
    match &state.problem {
        None => format!("{} works", state.name),
        Some(problem) => format!("{} does not work ({})", state.name, problem.what),
    }
}

fn describe_agent(agent: &AgentEntry) -> String {
    match &agent.credential.problem {
        None => format!("{} has its credential", agent.name),
        Some(_) => format!("{} has no credential", agent.name),
    }
}
