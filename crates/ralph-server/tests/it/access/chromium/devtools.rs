//! Controls a tab of a browser with the Chrome `DevTools` protocol.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::WAIT_TIMEOUT;

/// A tab of a browser.
pub(super) struct BrowserTab {
    socket: WebSocketStream<TcpStream>,
    session: Option<String>,
    last_id: u64,
}

impl BrowserTab {
    /// Opens a tab of the browser whose control socket has this address.
    pub(super) async fn open(control: &str) -> Self {
        let host = control.strip_prefix("ws://").unwrap();
        let host = host.split('/').next().unwrap();
        let stream = TcpStream::connect(host).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(control, stream)
            .await
            .unwrap();
        let mut tab = Self {
            socket,
            session: None,
            last_id: 0,
        };
        let target = tab
            .call("Target.createTarget", json!({"url": "about:blank"}))
            .await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = tab.call("Target.attachToTarget", attach).await;
        tab.session = attached["sessionId"].as_str().map(str::to_owned);
        tab
    }

    /// Starts to load a page.
    pub(super) async fn navigate(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url})).await;
    }

    /// Evaluates an expression in the page, and awaits it if it is a promise.
    pub(super) async fn evaluate(&mut self, expression: &str) -> Value {
        let evaluated = self.try_evaluate(expression).await;
        evaluated.unwrap_or_else(|error| panic!("`{expression}`: {error}"))
    }

    /// Waits until an expression is true.
    pub(super) async fn wait_until(&mut self, expression: &str) {
        let start = Instant::now();
        loop {
            // While a page is loading, there may be no context for it.
            if self.try_evaluate(expression).await == Ok(Value::Bool(true)) {
                return;
            }
            if start.elapsed() > WAIT_TIMEOUT {
                let page = self.evaluate("document.documentElement.outerHTML").await;
                panic!("waited {WAIT_TIMEOUT:?} in vain until {expression}: {page}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn try_evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let reply = self.send("Runtime.evaluate", parameters).await;
        if reply["result"].get("exceptionDetails").is_some() || reply.get("error").is_some() {
            return Err(reply.to_string());
        }
        Ok(reply["result"]["result"]["value"].clone())
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        let mut reply = self.send(method, parameters).await;
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    async fn send(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut request = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let exchange = async {
            let message = Message::text(request.to_string());
            self.socket.send(message).await.unwrap();
            loop {
                let message = self.socket.next().await.unwrap().unwrap();
                let Message::Text(text) = message else {
                    continue;
                };
                let reply: Value = serde_json::from_str(&text).unwrap();
                if reply["id"] == self.last_id {
                    return reply;
                }
            }
        };
        let reply = timeout(WAIT_TIMEOUT, exchange).await;
        reply.expect("the browser answers")
    }
}
