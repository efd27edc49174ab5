//! A model that replies from a script.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ralph_core::ports::{FinishReason, Model, ModelError, ModelReply, ModelRequest, TokenUsage};

use super::script::{self, ScriptAnswer, ScriptError, ScriptFailure, ScriptLine, ScriptUsage};

/// Characters per token for estimates.
const CHARS_PER_TOKEN: usize = 4;

/// Replies to prompts with the lines of a JSONL file, each used once, in order.
///
/// A prompt gets the first unused line whose `when` it matches; a line without `when` matches every
/// prompt. When no unused line matches, the last line of the file repeats if it matches.
///
/// The process alone remembers which failures have occurred: a failure is not part of a run's
/// record, so each one occurs again after a restart.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    lines: Vec<ScriptLine>,
    used: Mutex<Vec<bool>>,
}

impl ScriptedModel {
    /// Loads a script; `used` are the sources of the replies that the run has already received.
    pub fn load(path: &Path, used: &[String]) -> Result<Self, ScriptError> {
        let lines = script::read_script(path)?;
        let mut flags = vec![false; lines.len()];
        for source in used {
            let index = position_of_reply(&lines, source).ok_or_else(|| ScriptError::Changed {
                path: PathBuf::from(path),
                used: source.clone(),
            })?;
            flags[index] = true;
        }
        Ok(Self {
            name: format!("scripted:{}", path.display()),
            lines,
            used: Mutex::new(flags),
        })
    }

    /// Returns the line for a prompt, if there is one, and marks it as used.
    fn next_line(&self, prompt: &str) -> Option<&ScriptLine> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = self
            .lines
            .iter()
            .zip(used.iter_mut())
            .find(|(line, used)| !**used && line.matches(prompt));
        if let Some((line, used)) = unused {
            *used = true;
            return Some(line);
        }
        self.lines.last().filter(|line| line.matches(prompt))
    }

    /// Returns the error for a simulated failure.
    fn failure_error(&self, line: &ScriptLine, failure: &ScriptFailure) -> ModelError {
        let model = self.name.clone();
        let message = format!("simulated by {} of the script", line.source());
        let (status, retry_after) = (failure.status, failure.retry_after);
        match status {
            401 | 403 => ModelError::Unauthorized {
                model,
                status,
                message,
                key: None,
            },
            _ if failure.is_quota => ModelError::QuotaUsedUp {
                model,
                resets_in: retry_after,
                message,
            },
            400 | 404 => ModelError::Broken {
                model,
                message: format!("status {status}, {message}"),
                fix: None,
            },
            _ => ModelError::Transient {
                model,
                status,
                retry_after,
                message,
            },
        }
    }
}

fn position_of_reply(lines: &[ScriptLine], source: &str) -> Option<usize> {
    lines.iter().position(|line| match line.answer {
        ScriptAnswer::Reply { .. } => line.source() == source,
        ScriptAnswer::Failure(_) => false,
    })
}

/// Returns the token usage of a call. Missing counts are estimated, never as zero for nonempty
/// text.
fn usage(script: &ScriptUsage, prompt: &str, reply: &str) -> TokenUsage {
    let estimate = |text: &str| text.chars().count().div_ceil(CHARS_PER_TOKEN) as u64;
    TokenUsage {
        input_tokens: script.input.unwrap_or_else(|| estimate(prompt)),
        output_tokens: script.output.unwrap_or_else(|| estimate(reply)),
        cache_read_tokens: script.cache_read,
        cache_write_tokens: script.cache_write,
        ..TokenUsage::default()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask_once(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let prompt = request.text();
        let line = self.next_line(&prompt).ok_or_else(|| ModelError::Broken {
            model: self.name.clone(),
            message: "no line of the script matches this prompt".into(),
            fix: None,
        })?;
        if !line.delay.is_zero() {
            tokio::time::sleep(line.delay).await;
        }
        match &line.answer {
            ScriptAnswer::Reply { text, usage: given } => Ok(ModelReply {
                text: text.clone(),
                usage: usage(given, &prompt, text),
                finish: FinishReason::Complete,
                source: Some(line.source()),
                answered_by: None,
                billed: None,
            }),
            ScriptAnswer::Failure(failure) => Err(self.failure_error(line, failure)),
        }
    }
}

#[cfg(test)]
mod tests;
