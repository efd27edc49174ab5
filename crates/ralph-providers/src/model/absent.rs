//! The model of a run whose agent calls its own model.

use async_trait::async_trait;
use ralph_core::ports::{Model, ModelError, ModelReply, ModelRequest};

/// Placeholder for runs without a model that ralph can call.
#[derive(Debug)]
pub struct AbsentModel {
    name: String,
}

impl AbsentModel {
    /// Creates a placeholder for an agent's model, such as `agent:claude`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

#[async_trait]
impl Model for AbsentModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn ask_once(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        Err(ModelError::Broken {
            model: self.name.clone(),
            message: "only the agent can call it; set `doctor_profile` to a profile".into(),
            fix: None,
        })
    }
}
