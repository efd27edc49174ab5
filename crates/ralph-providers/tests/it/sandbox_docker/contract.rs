//! The contract of all sandbox providers.

use ralph_test::{sandbox_contract, skip_without_docker};

use super::fixture::DockerTestEnv;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_socket() {
    if !skip_without_docker() {
        let place = DockerTestEnv::new();
        sandbox_contract(&place.provider).await;
        place.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_the_containers_own_input_and_output() {
    if !skip_without_docker() {
        let place = DockerTestEnv::attached();
        sandbox_contract(&place.provider).await;
        place.assert_empty();
    }
}
