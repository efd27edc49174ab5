//! Registries are reachable while dependencies are installed, and not before or after.

use ralph_core::ports::{GateControl as _, GateEvent};
use ralph_test::internet::{FakeInternet, SitePage, SitePages};
use ralph_test::skip_without_docker;

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig};

/// Downloads a package through the proxy and prints it, or the status of the refusal.
const DOWNLOAD: &str = r#"python3 -c '
import urllib.request, urllib.error
try: print(urllib.request.urlopen("http://registry.example/package").read().decode())
except urllib.error.HTTPError as error: print(error.code)
'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_is_reachable_during_set_up_only() {
    if skip_without_docker() {
        return;
    }
    let mut internet = FakeInternet::new();
    let pages = SitePages::from([("/package".to_owned(), SitePage::text("package"))]);
    internet.start_site(&["registry.example"], pages).await;
    let gated = GatedSandbox::open(internet, GatedSandboxConfig::default()).await;

    assert_eq!(gated.sh(DOWNLOAD).await.trim(), "403");
    gated.run_gate.drain_events();
    gated
        .run_gate
        .set_setup_hosts(&["registry.example".to_owned()]);
    assert_eq!(gated.sh(DOWNLOAD).await.trim(), "package");
    assert_eq!(gated.run_gate.drain_events(), []);
    gated.run_gate.set_setup_hosts(&[]);
    assert_eq!(gated.sh(DOWNLOAD).await.trim(), "403");

    // A host that is blocked during set-up is attributed to it.
    gated.run_gate.set_running_command(Some("set-up: npm ci"));
    let other = DOWNLOAD.replace("registry.example", "other.example");
    assert_eq!(gated.sh(&other).await.trim(), "403");
    let events = gated.run_gate.drain_events();
    let of_setup = |event: &GateEvent| {
        let GateEvent::Blocked { host, command, .. } = event else {
            return false;
        };
        host == "other.example" && command.as_deref() == Some("set-up: npm ci")
    };
    assert!(events.iter().any(of_setup), "{events:?}");
    gated.finish().await;
}
