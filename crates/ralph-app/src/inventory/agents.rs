//! The coding agents of a directory.

use std::path::PathBuf;

use ralph_providers::agent::{Agents, Preset};
use serde::Serialize;
use utoipa::ToSchema;

use super::credentials::CredentialEntry;
use super::program_version::program_version;
use crate::agent::find_credential;
use crate::app::App;
use crate::error::AppError;
use crate::tokens::TokenStorage;
use crate::tokens::stores::find_program;

/// A coding agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AgentEntry {
    pub name: String,
    /// The name of its program.
    pub program: String,
    /// Whether ralph ships its definition.
    pub built_in: bool,
    /// The program on this machine, which only the sandbox `local` uses.
    pub path: Option<String>,
    /// The version of that program; containers have their own.
    pub version: Option<String>,
    /// The agent whose image a container uses.
    pub image: String,
    pub credential: CredentialEntry,
    /// Whether it has a credential, or needs none.
    pub usable: bool,
}

/// Lists the agents of the working directory, with the versions of the built-in ones' programs.
pub async fn list_agents(app: &App) -> Result<Vec<AgentEntry>, AppError> {
    let tokens = app.tokens_read_only()?;
    let built_in = Agents::built_in();
    let mut entries = Vec::new();
    for preset in app.agents()?.all() {
        entries.push(agent_entry(preset, &built_in, &tokens, app).await);
    }
    Ok(entries)
}

async fn agent_entry(
    preset: &Preset,
    built_in: &Agents,
    tokens: &TokenStorage,
    app: &App,
) -> AgentEntry {
    let program = preset.command.first().cloned().unwrap_or_default();
    let own = built_in.get(&preset.name);
    // Only programs that ralph knows are started for their version.
    let is_known = own.is_ok_and(|own| own.command.first() == Some(&program)) && program != "sh";
    let path: Option<PathBuf> = find_program(app.search_path(), &program);
    let version = match (&path, is_known) {
        (Some(path), true) => {
            let home = app.environment().home();
            program_version(path, app.search_path(), home).await
        }
        (Some(_) | None, _) => None,
    };
    let credential = match find_credential(preset, None, tokens).await {
        Ok(None) => CredentialEntry::not_needed(&preset.name),
        Ok(Some(chosen)) => {
            app.add_secret("TOKEN", &chosen.found.token.secret);
            CredentialEntry::found(&preset.name, &chosen.found, tokens.now())
        }
        Err(error) => CredentialEntry::failed(&preset.name, error),
    };
    AgentEntry {
        usable: credential.problem.is_none(),
        name: preset.name.clone(),
        built_in: built_in.get(&preset.name).is_ok(),
        path: path.map(|path| path.display().to_string()),
        program,
        version,
        image: preset.image.clone(),
        credential,
    }
}
