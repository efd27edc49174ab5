//! The known providers, with LiteLLM's naming of their variables.

use ralph_core::profile::{ReplyFormat, WireApi};

/// A known provider.
#[derive(Debug)]
pub(super) struct ModelProvider {
    /// The part of a model name before the first slash.
    pub(super) name: &'static str,
    pub(super) wire: WireApi,
    /// The default address; `None` for self-hosted providers.
    pub(super) base: Option<&'static str>,
    /// Variables that may override the address; the first one that is set counts.
    pub(super) bases: &'static [&'static str],
    /// Variables that may contain the API key; the first one that is set counts.
    pub(super) keys: &'static [&'static str],
    /// Whether requests without a key are rejected.
    pub(super) needs_key: bool,
    /// How the reply format is requested.
    pub(super) format: ReplyFormat,
}

const fn chat_provider(
    name: &'static str,
    base: &'static str,
    bases: &'static [&'static str],
    keys: &'static [&'static str],
) -> ModelProvider {
    ModelProvider {
        name,
        wire: WireApi::Chat,
        base: Some(base),
        bases,
        keys,
        needs_key: true,
        format: ReplyFormat::Json,
    }
}

/// A self-hosted provider, with or without a key.
const fn self_hosted_provider(
    name: &'static str,
    base: Option<&'static str>,
    bases: &'static [&'static str],
    keys: &'static [&'static str],
) -> ModelProvider {
    ModelProvider {
        name,
        wire: WireApi::Chat,
        base,
        bases,
        keys,
        needs_key: false,
        format: ReplyFormat::Json,
    }
}

/// The known providers, sorted by name.
pub(super) const PROVIDERS: [ModelProvider; 20] = [
    ModelProvider {
        name: "anthropic",
        wire: WireApi::Messages,
        base: Some("https://api.anthropic.com"),
        bases: &["ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"],
        keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        needs_key: true,
        format: ReplyFormat::Schema,
    },
    chat_provider(
        "cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_BASE"],
        &["CEREBRAS_API_KEY"],
    ),
    chat_provider(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_BASE"],
        &["DASHSCOPE_API_KEY"],
    ),
    chat_provider(
        "deepseek",
        "https://api.deepseek.com/beta",
        &["DEEPSEEK_API_BASE"],
        &["DEEPSEEK_API_KEY"],
    ),
    chat_provider(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_BASE"],
        &["FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"],
    ),
    ModelProvider {
        name: "gemini",
        wire: WireApi::Gemini,
        base: Some("https://generativelanguage.googleapis.com"),
        bases: &["GEMINI_API_BASE"],
        keys: &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        needs_key: true,
        format: ReplyFormat::Json,
    },
    chat_provider(
        "groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_BASE"],
        &["GROQ_API_KEY"],
    ),
    self_hosted_provider(
        "hosted_vllm",
        None,
        &["HOSTED_VLLM_API_BASE"],
        &["HOSTED_VLLM_API_KEY"],
    ),
    self_hosted_provider(
        "litellm_proxy",
        None,
        &["LITELLM_PROXY_API_BASE"],
        &["LITELLM_PROXY_API_KEY"],
    ),
    self_hosted_provider(
        "lm_studio",
        None,
        &["LM_STUDIO_API_BASE"],
        &["LM_STUDIO_API_KEY"],
    ),
    chat_provider(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_BASE"],
        &["MISTRAL_API_KEY"],
    ),
    chat_provider(
        "moonshot",
        "https://api.moonshot.ai/v1",
        &["MOONSHOT_API_BASE"],
        &["MOONSHOT_API_KEY"],
    ),
    chat_provider(
        "nebius",
        "https://api.studio.nebius.ai/v1",
        &["NEBIUS_API_BASE"],
        &["NEBIUS_API_KEY"],
    ),
    chat_provider(
        "nvidia_nim",
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_NIM_API_BASE"],
        &["NVIDIA_NIM_API_KEY"],
    ),
    self_hosted_provider(
        "ollama",
        Some("http://localhost:11434"),
        &["OLLAMA_API_BASE"],
        &["OLLAMA_API_KEY"],
    ),
    ModelProvider {
        name: "openai",
        wire: WireApi::Chat,
        base: Some("https://api.openai.com/v1"),
        bases: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        keys: &["OPENAI_API_KEY"],
        needs_key: true,
        format: ReplyFormat::Schema,
    },
    chat_provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_BASE"],
        &["OPENROUTER_API_KEY"],
    ),
    chat_provider(
        "together_ai",
        "https://api.together.ai/v1",
        &["TOGETHER_AI_API_BASE"],
        &[
            "TOGETHER_API_KEY",
            "TOGETHER_AI_API_KEY",
            "TOGETHERAI_API_KEY",
        ],
    ),
    chat_provider(
        "xai",
        "https://api.x.ai/v1",
        &["XAI_API_BASE"],
        &["XAI_API_KEY"],
    ),
    ModelProvider {
        name: "zai",
        wire: WireApi::Chat,
        base: Some("https://api.z.ai/api/paas/v4"),
        bases: &["ZAI_API_BASE"],
        keys: &["ZAI_API_KEY"],
        needs_key: true,
        // LiteLLM does not request a format from its models; the prompt describes the expected
        // JSON.
        format: ReplyFormat::Text,
    },
];
