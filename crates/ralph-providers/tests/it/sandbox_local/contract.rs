//! The contract of all sandbox providers.

use ralph_core::ports::SandboxProvider as _;
use ralph_test::sandbox_contract;

use super::fixture::LocalTestEnv;

#[tokio::test]
async fn it_keeps_the_contract() {
    let place = LocalTestEnv::new();
    assert_eq!(place.provider.preflight().await, []);
    sandbox_contract(&place.provider).await;
    assert_eq!(place.provider.list().await.unwrap(), []);
}
