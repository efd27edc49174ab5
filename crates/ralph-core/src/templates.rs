//! Placeholder until the starter files land.

/// `ralph_task.md`.
pub const TASK: &str = "---\ntask_id: \"task-001\"\n---\n";

/// `config/models.yaml`: the model profiles.
pub const MODELS: &str = r#"profiles:
  default-cheap:
    litellm_model: "zai/glm-4.7"
    max_output_tokens: 2048
    temperature: 0.2
    tags: ["default", "cheap"]

  strong-doctor:
    # choose a stronger model you trust for diagnosis (can be swapped)
    litellm_model: "openai/gpt-5"   # example; replace with your actual preference
    max_output_tokens: 2048
    temperature: 0.1
    tags: ["doctor", "strong"]

  codex-like:
    litellm_model: "openai/gpt-codex"  # example; replace as needed
    max_output_tokens: 2048
    temperature: 0.2
    tags: ["implementation"]
"#;
