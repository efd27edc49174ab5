//! An agent as its preset describes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ralph_core::ports::{Agent, AgentCommand, AgentReader, Clock, Patience};
use serde_json::json;

use super::preset::{Output, Preset, PromptForm};
use super::{claude, codex, lines, opencode};

/// What an agent is to work with.
#[derive(Clone)]
pub struct ProgramSettings {
    /// The model, unless it is the agent's own choice.
    pub model: Option<String>,
    /// Where the gate is inside of the sandbox, in the form of the credential's provider.
    pub base_url: String,
    /// What it logs in with: never a credential itself.
    pub login: BTreeMap<String, String>,
    /// What tells the time until a limit is lifted.
    pub clock: Arc<dyn Clock>,
}

/// An agent cannot choose a model by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent `{agent}` needs a model")]
pub struct ModelNeeded {
    /// The agent.
    pub agent: String,
}

struct Program {
    preset: Preset,
    clock: Arc<dyn Clock>,
}

impl Preset {
    /// Returns the agent.
    pub fn program(&self, settings: &ProgramSettings) -> Result<Box<dyn Agent>, ModelNeeded> {
        let mut preset = self.clone();
        if settings.model.is_some() {
            preset.command.append(&mut preset.model_arguments);
        }
        let texts = preset
            .command
            .iter_mut()
            .chain(preset.environment.values_mut());
        for text in texts {
            *text = text.replace("{base_url}", &settings.base_url);
            if text.contains("{model}") {
                let model = settings.model.as_ref().ok_or_else(|| ModelNeeded {
                    agent: self.name.clone(),
                })?;
                *text = text.replace("{model}", model);
            }
        }
        preset.environment.extend(settings.login.clone());
        Ok(Box::new(Program {
            preset,
            clock: Arc::clone(&settings.clock),
        }))
    }
}

impl Agent for Program {
    fn name(&self) -> &str {
        &self.preset.name
    }

    fn command(&self, prompt: &str) -> AgentCommand {
        let mut argv = self.preset.command.clone();
        let stdin = match self.preset.prompt {
            PromptForm::Text => prompt.into(),
            PromptForm::Messages => message(prompt),
            PromptForm::Argument => {
                argv.push(prompt.to_owned());
                Vec::new()
            }
        };
        AgentCommand {
            argv,
            env: self.preset.environment.clone(),
            stdin,
        }
    }

    fn reader(&self) -> Box<dyn AgentReader> {
        match self.preset.output {
            Output::StreamJson => Box::new(claude::Reader::new(Arc::clone(&self.clock))),
            Output::CodexJson => Box::new(codex::Reader::default()),
            Output::OpencodeJson => Box::new(opencode::Reader::default()),
            Output::Lines => Box::new(lines::Reader::default()),
        }
    }

    fn patience(&self) -> Patience {
        let timeouts = self.preset.timeouts;
        Patience {
            first: timeouts.first_output,
            idle: timeouts.idle,
            total: timeouts.total,
            ..Patience::default()
        }
    }

    fn message(&self, text: &str) -> Option<Vec<u8>> {
        match self.preset.prompt {
            PromptForm::Messages => Some(message(text)),
            PromptForm::Text | PromptForm::Argument => None,
        }
    }
}

/// Writes a message as `claude --input-format stream-json` reads it.
fn message(text: &str) -> Vec<u8> {
    let content = json!([{"type": "text", "text": text}]);
    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
    format!("{line}\n").into()
}
