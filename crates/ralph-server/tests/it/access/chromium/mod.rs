//! Tests with a real browser: what pages of other origins can do with the session of the user.

mod devtools;
mod foreign_page;

use ralph_test::{BrowserProcess, skip_without_browser};
use serde_json::{Value, json};

use crate::support::TestServer;
use devtools::BrowserTab;
use foreign_page::ForeignPage;

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_cannot_use_the_session_of_the_user() {
    if skip_without_browser() {
        return;
    }
    let server = TestServer::start().await;
    let browser = BrowserProcess::start();
    let mut tab = BrowserTab::open(browser.control()).await;
    tab.navigate(&server.login_link).await;
    tab.wait_until("location.pathname === '/' && document.title === 'ralph'")
        .await;
    // Scripts cannot read the cookie, and the browser sends it.
    assert_eq!(tab.evaluate("document.cookie").await, json!(""));
    assert_eq!(session_scope(&mut tab, &server).await, "full");

    let address = server.address.socket;
    let page = ForeignPage::serve(address).await;
    // `localhost` is another site than 127.0.0.1, another port of 127.0.0.1 is the same site.
    for origin in ["localhost", "127.0.0.1"] {
        tab.navigate(&page.url(origin)).await;
        tab.wait_until("window.results !== undefined").await;
        let results = tab.evaluate("window.results").await;
        let expected = json!({
            "read": "TypeError", "write": "TypeError", "text": "TypeError", "form": "TypeError",
            "image": "error", "stream": "closed", "frame": "blocked", "forms": "sent",
        });
        assert_eq!(results, expected, "{origin}");
    }
    let shares = server.get_json("/api/v1/shares").await;
    assert_eq!(shares["shares"], json!([]));
    let runs = server.get_json("/api/v1/runs").await;
    assert_eq!(runs["runs"], json!([]));

    assert_eq!(session_scope(&mut tab, &server).await, "full");
}

/// Returns the rights of the browser's session.
async fn session_scope(tab: &mut BrowserTab, server: &TestServer) -> Value {
    let url = format!("http://{}/api/v1/session", server.address.socket);
    tab.navigate(&url).await;
    tab.wait_until("location.pathname === '/api/v1/session'")
        .await;
    let text = tab.evaluate("document.body.innerText").await;
    serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["scope"].take()
}
