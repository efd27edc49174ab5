//! The body of `POST /runs`.

use std::path::PathBuf;
use std::time::Duration;

use ralph_app::planning::{RunRequest, TASK_FILE};
use ralph_app::runs::UnfinishedRunChoice;
use ralph_app::server::environment::CallerEnvironment;
use ralph_core::budget::BudgetLimits;
use ralph_core::image::ImageEffort;
use ralph_core::money::Usd;
use ralph_core::plan::EngineKind;
use ralph_core::task::RunMode;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::supervisor::{GivenAnswers, StartRequest, TaskSource};

/// A new run: everything that `ralph run` accepts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRun {
    /// The directory whose configuration and `.env` count, and to which `file` is relative. Without it,
    /// the repository if that is a path, or else the working directory of the server.
    #[schema(value_type = Option<String>)]
    directory: Option<PathBuf>,
    /// The task file; `ralph_task.md` by default.
    #[schema(value_type = Option<String>)]
    file: Option<PathBuf>,
    /// The text of a task file, instead of `file`.
    task: Option<String>,
    /// One sentence from which a task is made, instead of `file`.
    prompt: Option<String>,
    /// The repository to use instead of the task's: a path or an address.
    repo: Option<String>,
    /// The sandbox provider.
    sandbox: Option<String>,
    engine: Option<RequestedEngine>,
    /// The agent: `claude`, `codex`, `opencode`, or one from `config/agents.toml`.
    agent: Option<String>,
    /// The model profile.
    profile: Option<String>,
    /// The model, such as `zai/glm-4.7`, instead of a profile.
    model: Option<String>,
    mode: Option<RequestedMode>,
    #[serde(default)]
    budgets: RequestedBudgets,
    #[serde(default)]
    image: RequestedImage,
    /// What to do if the task has an unfinished run.
    unfinished_run: Option<RequestedContinuation>,
    #[serde(default)]
    answers: RequestedAnswers,
    /// Return the plan with everything that is missing for a start, and start nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
    /// The variables of the command that hands its run over.
    #[schema(value_type = Option<Object>)]
    environment: Option<CallerEnvironment>,
}

/// The two engines.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedEngine {
    Actions,
    Agent,
}

/// How far the user may intervene.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedMode {
    Autonomous,
    Guided,
    Debug,
}

/// The budgets that replace those of the task.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields of requests are named like the keys of tasks"
)]
struct RequestedBudgets {
    #[schema(minimum = 1)]
    max_iterations: Option<u32>,
    /// In US dollars.
    max_cost_usd: Option<f64>,
    /// The active time.
    #[schema(minimum = 1)]
    max_time_seconds: Option<u64>,
    /// Input and output tokens.
    #[schema(minimum = 1)]
    max_tokens: Option<u64>,
}

/// Whether an existing image is used.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedImage {
    #[default]
    Reuse,
    /// Check for newer base images and rebuild.
    Rebuild,
}

/// What to do if the task has an unfinished run.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedContinuation {
    Resume,
    New,
}

/// The answers to the questions of a start.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RequestedAnswers {
    /// The `digest` of the proposals that the user has seen and approves.
    approved_proposals: Option<String>,
    /// The user lets an agent work without isolation.
    #[serde(default)]
    accept_local: bool,
}

impl NewRun {
    /// Returns the request for the supervisor. The error names the invalid field.
    pub(super) fn into_request(self, working_dir: PathBuf) -> Result<StartRequest, InvalidField> {
        let source = match (self.file, self.task, self.prompt) {
            (Some(file), None, None) => TaskSource::File(file),
            (None, Some(text), None) => TaskSource::Text(text),
            (None, None, Some(sentence)) => TaskSource::Sentence(sentence),
            (None, None, None) => TaskSource::File(TASK_FILE.into()),
            (_, _, _) => return Err(InvalidField("task", "use one of file, task and prompt")),
        };
        if self.profile.is_some() && self.model.is_some() {
            return Err(InvalidField("model", "use one of profile and model"));
        }
        let named = [
            ("repo", &self.repo),
            ("sandbox", &self.sandbox),
            ("agent", &self.agent),
            ("profile", &self.profile),
            ("model", &self.model),
        ];
        if let Some((field, _)) = named
            .into_iter()
            .find(|(_, value)| value.as_deref() == Some(""))
        {
            return Err(InvalidField(field, "omit it or give it a value"));
        }
        let repo_dir = self.repo.as_deref().map(PathBuf::from);
        let repo_dir = repo_dir.filter(|path| path.is_absolute() && path.is_dir());
        let directory = self.directory.or(repo_dir).unwrap_or(working_dir);
        if !directory.is_absolute() {
            return Err(InvalidField("directory", "use an absolute path"));
        }
        if !directory.is_dir() {
            return Err(InvalidField("directory", "name an existing directory"));
        }
        Ok(StartRequest {
            directory,
            source,
            request: RunRequest {
                repo: self.repo,
                sandbox: self.sandbox,
                engine: self.engine.map(EngineKind::from),
                agent: self.agent,
                profile: self.profile,
                model: self.model,
                limits: self.budgets.limits()?,
                ..RunRequest::for_file("")
            },
            mode: self.mode.map(RunMode::from),
            effort: match self.image {
                RequestedImage::Reuse => ImageEffort::Reuse,
                RequestedImage::Rebuild => ImageEffort::Rebuild,
            },
            unfinished: self.unfinished_run.map(|choice| match choice {
                RequestedContinuation::Resume => UnfinishedRunChoice::Resume,
                RequestedContinuation::New => UnfinishedRunChoice::New,
            }),
            answers: GivenAnswers {
                approved_proposals: self.answers.approved_proposals,
                accepts_local: self.answers.accept_local,
            },
            environment: self.environment,
        })
    }
}

/// A field with an invalid value, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidField(pub(super) &'static str, pub(super) &'static str);

impl RequestedBudgets {
    fn limits(self) -> Result<BudgetLimits, InvalidField> {
        let invalid = |field| InvalidField(field, "give a number above 0");
        if self.max_iterations == Some(0) {
            return Err(invalid("budgets.max_iterations"));
        }
        if self.max_time_seconds == Some(0) {
            return Err(invalid("budgets.max_time_seconds"));
        }
        if self.max_tokens == Some(0) {
            return Err(invalid("budgets.max_tokens"));
        }
        let max_cost = match self.max_cost_usd {
            Some(dollars) => {
                let amount = Usd::from_dollars(dollars).filter(|amount| *amount > Usd::ZERO);
                Some(amount.ok_or_else(|| invalid("budgets.max_cost_usd"))?)
            }
            None => None,
        };
        Ok(BudgetLimits {
            max_iterations: self.max_iterations,
            max_wall_time: self.max_time_seconds.map(Duration::from_secs),
            max_cost,
            max_tokens: self.max_tokens,
        })
    }
}

impl From<RequestedEngine> for EngineKind {
    fn from(engine: RequestedEngine) -> Self {
        match engine {
            RequestedEngine::Actions => Self::Actions,
            RequestedEngine::Agent => Self::Agent,
        }
    }
}

impl From<RequestedMode> for RunMode {
    fn from(mode: RequestedMode) -> Self {
        match mode {
            RequestedMode::Autonomous => Self::Autonomous,
            RequestedMode::Guided => Self::Guided,
            RequestedMode::Debug => Self::Debug,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StartRequest, String> {
        let new: NewRun = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let parsed = new.into_request("/".into());
        parsed.map_err(|InvalidField(field, fix)| format!("{field}: {fix}"))
    }

    #[test]
    fn every_option_of_the_command_line_is_accepted_and_others_are_not() {
        let request = parse(
            r#"{"directory":"/tmp","prompt":"Add x","repo":"/r","sandbox":"local","engine":"agent",
                "agent":"claude","model":"m","mode":"guided","image":"rebuild","unfinished_run":"new",
                "budgets":{"max_iterations":3,"max_cost_usd":2.5,"max_time_seconds":60,"max_tokens":9},
                "answers":{"approved_proposals":"d","accept_local":true}}"#,
        )
        .unwrap();
        assert_eq!(request.source, TaskSource::Sentence("Add x".into()));
        assert_eq!(request.request.engine, Some(EngineKind::Agent));
        assert_eq!(request.request.limits.max_cost, Usd::from_dollars(2.5));
        assert_eq!(request.mode, Some(RunMode::Guided));
        assert_eq!(request.unfinished, Some(UnfinishedRunChoice::New));
        assert!(request.answers.accepts_local);
        assert_eq!(
            parse("{}").unwrap().source,
            TaskSource::File(TASK_FILE.into())
        );
        for (body, expected) in [
            (
                r#"{"file":"a","task":"b"}"#,
                "task: use one of file, task and prompt",
            ),
            (
                r#"{"profile":"a","model":"b"}"#,
                "model: use one of profile and model",
            ),
            (r#"{"sandbox":""}"#, "sandbox: omit it or give it a value"),
            (r#"{"directory":"a"}"#, "directory: use an absolute path"),
            (
                r#"{"directory":"/missing/x"}"#,
                "directory: name an existing directory",
            ),
            (
                r#"{"budgets":{"max_tokens":0}}"#,
                "budgets.max_tokens: give a number above 0",
            ),
            (
                r#"{"budgets":{"max_cost_usd":-1}}"#,
                "budgets.max_cost_usd: give a number above 0",
            ),
        ] {
            assert_eq!(parse(body).unwrap_err(), expected);
        }
        let unknown = parse(r#"{"status":"succeeded"}"#).unwrap_err();
        assert!(unknown.contains("unknown field `status`"), "{unknown}");
    }
}
