//! What every provider promises.

use ralph_test::{left_out_without_docker, sandbox_contract};

use super::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_socket() {
    if !left_out_without_docker() {
        let place = Place::new();
        sandbox_contract(&place.provider).await;
        place.assert_empty();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_the_containers_own_input_and_output() {
    if !left_out_without_docker() {
        let place = Place::attached();
        sandbox_contract(&place.provider).await;
        place.assert_empty();
    }
}
