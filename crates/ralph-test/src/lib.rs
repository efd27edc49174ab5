//! Fixtures and contract suites for the tests of the other crates.
//!
//! - [`sandbox_contract`] checks a sandbox provider against the contract of the port.
//! - [`CollectedOutput`] stores the output of a command.
//! - [`skip_without_docker`] is the first line of a test that needs a Docker Engine.
//! - [`FakeModelApi`] is a model API with scripted responses, [`LiteLlm`] a real proxy.
//! - [`PrivateDockerEngine`] is a Docker Engine that a test may kill.
//! - [`FakeGitHub`] is a GitHub with state, a record of its requests, and faults; [`judge_github`] compares
//!   its exchanges with GitHub's own description.
//! - [`FakeUpstream`] is a model provider that plays a scenario.
//! - [`internet`] is an internet on this machine, with hosts that record their visits.
//! - [`BrowserProcess`] is a real browser.
//! - [`agent_program`] locates a real coding agent, [`agent_image`] is an image that contains it.

mod agent_image;
mod agents;
mod browser;
mod clock;
mod collected_output;
mod docker;
mod git;
mod github;
pub mod internet;
mod litellm;
mod model_api;
mod private_engine;
mod sandbox_contract;
mod upstream;

pub use agent_image::agent_image;
pub use agents::agent_program;
pub use browser::{BrowserProcess, skip_without_browser};
pub use clock::TestClock;
pub use collected_output::CollectedOutput;
pub use docker::{BASE_IMAGE, skip_without_docker};
pub use git::{create_repository, git};
pub use github::{
    FakeCheck, FakeGitHub, FakeGitHubState, FakeGitHubToken, FakeIssue, FakeIssueComment,
    FakeLabel, FakePull, FakeRepo, FakeReview, FakeStatus, FaultRule, GitHubExchange, GitHubFault,
    judge_github, run_github_client, skip_without_github_tools,
};
pub use litellm::{LiteLlm, run_litellm_script, skip_without_litellm};
pub use model_api::{FakeCertificate, FakeModelApi, FakeResponse, ReceivedRequest};
pub use private_engine::PrivateDockerEngine;
pub use sandbox_contract::sandbox_contract;
pub use upstream::{
    FakeUpstream, FakeUpstreamApi, RecordedRequest, ScenarioStep, UpstreamScenario,
};
