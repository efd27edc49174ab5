//! Fixtures and contract suites for the tests of the other crates.
//!
//! - [`sandbox_contract`] holds a sandbox provider to every promise of the port.
//! - [`TestClock`] is a clock that a test sets; [`create_repository`] and [`git`] are for repositories.
//! - [`CollectedOutput`] keeps what a command printed.
//! - [`skip_without_docker`] is the first line of a test that needs a Docker Engine.
//! - [`FakeModelApi`] is a model API whose answers a test writes, [`LiteLlm`] a real one.
//! - [`PrivateDockerEngine`] is an engine that a test may kill.
//! - [`FakeUpstream`] is a model provider that says what a test wrote down.
//! - [`internet`] is an internet on this machine, with hosts that count what arrives at them.
//! - [`agent_program`] is where a real coding agent's program is, [`agent_image`] an image with it.

mod agent_image;
mod agents;
mod clock;
mod collected_output;
mod docker;
mod git;
pub mod internet;
mod litellm;
mod model_api;
mod private_engine;
mod sandbox_contract;
mod upstream;

pub use agent_image::agent_image;
pub use agents::agent_program;
pub use clock::TestClock;
pub use collected_output::CollectedOutput;
pub use docker::{BASE_IMAGE, skip_without_docker};
pub use git::{create_repository, git};
pub use litellm::{LiteLlm, run_litellm_script, skip_without_litellm};
pub use model_api::{FakeCertificate, FakeModelApi, FakeResponse, ReceivedRequest};
pub use private_engine::PrivateDockerEngine;
pub use sandbox_contract::sandbox_contract;
pub use upstream::{
    FakeUpstream, FakeUpstreamApi, RecordedRequest, ScenarioStep, UpstreamScenario,
};
