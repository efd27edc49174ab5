//! Parsing of agent definition files.

use std::time::Duration;

use super::super::CredentialKind::{AnthropicApiKey, AnthropicGateway, AnthropicOauth, Openai};
use super::super::{
    AgentOutputFormat, Agents, ModelRequired, Preset, PresetTimeouts, PromptDelivery,
    UnknownAgentName,
};
use super::{built_in, settings};

fn built_in_and(text: &str) -> Result<Agents, crate::agent::AgentsError> {
    let mut agents = Agents::built_in();
    agents.extend(text)?;
    Ok(agents)
}

#[test]
fn the_built_in_agents() {
    let agents = Agents::built_in();
    let summary = |preset: &Preset| {
        let kinds: Vec<_> = preset.credentials.iter().map(|c| c.kind).collect();
        (
            preset.name.clone(),
            preset.image.clone(),
            kinds,
            preset.output,
        )
    };
    let expected = [
        (
            "claude",
            "claude",
            vec![AnthropicOauth, AnthropicApiKey, AnthropicGateway],
            AgentOutputFormat::StreamJson,
        ),
        ("codex", "codex", vec![Openai], AgentOutputFormat::CodexJson),
        ("command", "plain", vec![], AgentOutputFormat::Lines),
        (
            "opencode",
            "plain",
            vec![Openai],
            AgentOutputFormat::OpencodeJson,
        ),
    ]
    .map(|(name, image, kinds, output)| (name.to_owned(), image.to_owned(), kinds, output));
    assert_eq!(agents.all().map(summary).collect::<Vec<_>>(), expected);
}

#[test]
fn the_model_and_the_gate_address_are_filled_in() {
    let prompt = "say \"hi\"\n";
    let claude = built_in("claude").command(prompt);
    assert_eq!(claude.argv[claude.argv.len() - 2..], ["--model", "m1"]);
    assert_eq!(
        String::from_utf8(claude.stdin).unwrap(),
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\
         [{\"type\":\"text\",\"text\":\"say \\\"hi\\\"\\n\"}]}}\n"
    );
    let codex = built_in("codex").command(prompt);
    assert_eq!(
        codex.argv,
        [
            "codex",
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-c",
            "analytics.enabled=false",
            "-c",
            "features.plugins=false",
            "-c",
            "model_provider=ralph",
            "-c",
            "model_providers.ralph={name=\"ralph\",base_url=\"http://127.0.0.1:4141/openai/v1\",\
             env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}",
            "-",
            "-m",
            "m1",
        ]
    );
    assert_eq!((codex.stdin, codex.env.len()), (prompt.into(), 0));
    assert_eq!(built_in("codex").message("more"), None);
    assert!(built_in("claude").message("more").is_some());
    let opencode = built_in("opencode").command(prompt);
    let config: serde_json::Value =
        serde_json::from_str(&opencode.env["OPENCODE_CONFIG_CONTENT"]).unwrap();
    let provider = &config["provider"]["ralph"];
    assert_eq!(provider["models"]["m1"]["name"], "m1");
    assert_eq!(
        provider["options"]["baseURL"],
        "http://127.0.0.1:4141/openai/v1"
    );
}

#[test]
fn without_a_model_an_agent_uses_its_default_or_fails() {
    let agents = Agents::built_in();
    let program = |name: &str| agents.get(name).unwrap().build_agent(&settings(None));
    let claude = program("claude").unwrap().command("hi");
    assert!(!claude.argv.contains(&"--model".to_owned()));
    assert_eq!(
        program("opencode").err(),
        Some(ModelRequired {
            agent: "opencode".into()
        })
    );
}

#[test]
fn a_credential_sets_its_variables() {
    let agents = Agents::built_in();
    let oauth = &agents.get("claude").unwrap().credentials[0];
    assert_eq!(
        oauth.environment("sk-ant-oat01-x", "http://127.0.0.1:4141/anthropic"),
        [
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:4141/anthropic"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-x"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    );
}

#[test]
fn a_project_adds_agents_and_changes_keys() {
    let agents = built_in_and(
        "[mine]\ncommand = [\"my-agent\", \"--once\"]\nprompt = \"argument\"\n\
         [claude.environment]\nMORE = \"1\"\n[claude.timeouts]\nidle_seconds = 60\n\
         [fast]\nlike = \"claude\"\nmodel_arguments = []\nhosts = [\"example.com\"]\n",
    )
    .unwrap();
    let mine = agents.get("mine").unwrap();
    assert_eq!(
        *mine,
        Preset {
            name: "mine".into(),
            command: vec!["my-agent".into(), "--once".into()],
            model_arguments: vec![],
            environment: [].into(),
            image: "plain".into(),
            hosts: vec![],
            credentials: vec![],
            prompt: PromptDelivery::Argument,
            output: AgentOutputFormat::Lines,
            timeouts: PresetTimeouts::default(),
        }
    );
    let command = mine.build_agent(&settings(None)).unwrap().command("do it");
    assert_eq!(command.argv, ["my-agent", "--once", "do it"]);
    assert!(command.stdin.is_empty());
    let known = Agents::built_in();
    let mut claude = known.get("claude").unwrap().clone();
    let mut fast = claude.clone();
    claude.environment.insert("MORE".into(), "1".into());
    claude.timeouts.idle = Duration::from_mins(1);
    assert_eq!(agents.get("claude"), Ok(&claude));
    fast.name = "fast".into();
    fast.model_arguments.clear();
    fast.hosts.push("example.com".into());
    assert_eq!(agents.get("fast"), Ok(&fast));
}

#[test]
fn a_mistyped_name_gets_a_suggestion() {
    let known = ["claude", "codex", "command", "opencode"].map(String::from);
    for (typed, meant) in [
        ("cluade", Some("claude")),
        ("codx", Some("codex")),
        ("x", None),
    ] {
        assert_eq!(
            Agents::built_in().get(typed),
            Err(UnknownAgentName {
                name: typed.into(),
                closest: meant.map(str::to_owned),
                known: known.to_vec(),
            })
        );
    }
}

#[test]
fn an_invalid_entry_is_an_error_with_its_location() {
    for (text, expected) in [
        (
            "[a]\ncomand = []\n",
            (
                4,
                "unknown field `comand`, expected one of `like`, `command`, `model_arguments`, \
                 `environment`, `image`, `hosts`, `credentials`, `prompt`, `output`, `timeouts`",
            ),
        ),
        (
            "\n[a]\nhosts = []\n",
            (2, "agent `a` has neither `command` nor `like`"),
        ),
        (
            "[a]\ncommand = []\n",
            (14, "`command` does not name a program"),
        ),
        (
            "[A]\ncommand = [\"x\"]\n",
            (
                1,
                "invalid agent name `A`: a name has at most 40 characters of a-z, 0-9 and -",
            ),
        ),
        (
            "[a]\nlike = \"cluade\"\n",
            (
                11,
                "`like`: there is no agent `cluade`; did you mean `claude`?",
            ),
        ),
        (
            "[a]\ncommand = [\"x\", \"{token}\"]\n",
            (
                14,
                "`{token}` is only allowed in the environment of `credentials`",
            ),
        ),
        (
            "[claude]\noutput = \"xml\"\n",
            (
                18,
                "unknown variant `xml`, expected one of `stream-json`, `codex-json`, \
                 `opencode-json`, `lines`",
            ),
        ),
    ] {
        let error = built_in_and(text).unwrap_err();
        assert_eq!((error.offset, error.why.as_str()), expected, "{text}");
    }
}
