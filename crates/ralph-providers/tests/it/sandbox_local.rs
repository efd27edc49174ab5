//! The local sandbox: the contract, and what only it can be asked.

use ralph_core::ports::SandboxProvider as _;
use ralph_providers::sandbox::LocalProvider;
use ralph_test::sandbox_contract;
use tempfile::TempDir;

/// A provider with a root that is removed with it.
fn provider() -> (TempDir, LocalProvider) {
    let root = TempDir::new().unwrap();
    let search_path = std::env::var_os("PATH").unwrap();
    let provider = LocalProvider::new(root.path().join("sandboxes"), search_path);
    (root, provider)
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let (_root, provider) = provider();
    assert_eq!(provider.preflight().await, []);
    sandbox_contract(&provider).await;
    assert_eq!(provider.list().await.unwrap(), []);
}
