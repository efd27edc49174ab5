//! The contract of all sandbox providers.

use ralph_core::ports::SandboxProvider as _;
use ralph_test::sandbox_contract;

use super::fixture::LocalTestEnv;

#[tokio::test]
async fn it_keeps_the_contract() {
    let env = LocalTestEnv::new();
    assert_eq!(env.provider.preflight().await, []);
    sandbox_contract(&env.provider).await;
    assert_eq!(env.provider.list().await.unwrap(), []);
}
