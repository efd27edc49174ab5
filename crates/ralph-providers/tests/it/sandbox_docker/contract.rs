//! The contract of all sandbox providers.

use ralph_test::{sandbox_contract, skip_without_docker};

use super::fixture::DockerTestEnv;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_socket() {
    if !skip_without_docker() {
        let env = DockerTestEnv::new();
        sandbox_contract(&env.provider).await;
        env.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_the_containers_own_input_and_output() {
    if !skip_without_docker() {
        let env = DockerTestEnv::attached();
        sandbox_contract(&env.provider).await;
        env.assert_empty();
    }
}
