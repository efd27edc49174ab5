//! An agent that is driven by its preset.

use std::collections::BTreeMap;
use std::sync::Arc;

use ralph_core::ports::{Agent, AgentCommand, AgentReader, AgentTimeouts, Clock, TranscriptFormat};
use serde_json::json;

use super::preset::{AgentOutputFormat, Preset, PromptDelivery};
use super::{claude, codex, opencode, plain_text};

/// The settings of one agent instance.
#[derive(Clone)]
pub struct PresetAgentSettings {
    /// `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// The gate's address inside the sandbox, in the format the credential's provider expects.
    pub base_url: String,
    /// Login variables; they contain placeholder tokens, never a credential.
    pub login: BTreeMap<String, String>,
    /// Used to compute the time until a usage limit is reset.
    pub clock: Arc<dyn Clock>,
}

/// The agent cannot choose a model, so one must be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent `{agent}` needs a model")]
pub struct ModelRequired {
    pub agent: String,
}

struct PresetAgent {
    preset: Preset,
    clock: Arc<dyn Clock>,
}

impl Preset {
    /// Builds the agent.
    pub fn build_agent(
        &self,
        settings: &PresetAgentSettings,
    ) -> Result<Box<dyn Agent>, ModelRequired> {
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
                let model = settings.model.as_ref().ok_or_else(|| ModelRequired {
                    agent: self.name.clone(),
                })?;
                *text = text.replace("{model}", model);
            }
        }
        preset.environment.extend(settings.login.clone());
        Ok(Box::new(PresetAgent {
            preset,
            clock: Arc::clone(&settings.clock),
        }))
    }
}

impl Agent for PresetAgent {
    fn name(&self) -> &str {
        &self.preset.name
    }

    fn command(&self, prompt: &str) -> AgentCommand {
        let mut argv = self.preset.command.clone();
        let stdin = match self.preset.prompt {
            PromptDelivery::Text => prompt.into(),
            PromptDelivery::Messages => stream_json_message(prompt),
            PromptDelivery::Argument => {
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
            AgentOutputFormat::StreamJson => {
                Box::new(claude::ClaudeReader::new(Arc::clone(&self.clock)))
            }
            AgentOutputFormat::CodexJson => Box::new(codex::CodexReader::default()),
            AgentOutputFormat::OpencodeJson => Box::new(opencode::OpencodeReader::default()),
            AgentOutputFormat::Lines => Box::new(plain_text::PlainTextReader::default()),
        }
    }

    fn transcript_format(&self) -> TranscriptFormat {
        match self.preset.output {
            AgentOutputFormat::StreamJson
            | AgentOutputFormat::CodexJson
            | AgentOutputFormat::OpencodeJson => TranscriptFormat::JsonLines,
            AgentOutputFormat::Lines => TranscriptFormat::Text,
        }
    }

    fn timeouts(&self) -> AgentTimeouts {
        let timeouts = self.preset.timeouts;
        AgentTimeouts {
            first_output: timeouts.first_output,
            idle: timeouts.idle,
            total: timeouts.total,
            ..AgentTimeouts::default()
        }
    }

    fn message(&self, text: &str) -> Option<Vec<u8>> {
        match self.preset.prompt {
            PromptDelivery::Messages => Some(stream_json_message(text)),
            PromptDelivery::Text | PromptDelivery::Argument => None,
        }
    }
}

/// Encodes a message for `claude --input-format stream-json`.
fn stream_json_message(text: &str) -> Vec<u8> {
    let content = json!([{"type": "text", "text": text}]);
    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
    format!("{line}\n").into()
}
