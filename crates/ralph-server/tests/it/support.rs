//! A server on a free port, the project of its runs, and a client.
//!
//! [`TestServer::start`] is the first line of most tests. The server runs in the test's process, with a
//! state directory of its own; [`TestServer::stop`] stops it like a signal would.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use ralph_app::config::Environment;
use ralph_app::{App, AppError};
use ralph_server::{ServeOptions, Server, ServerAddress};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Longer than anything takes on a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// The task of the project: two boxes, each verified by a file that the base does not have.
const TASK: &str = "\
---
task_id: task
base_branch: main
max_iterations: 5
max_wall_time_minutes: 5
max_tokens_total: 1000000
test_command: test -s base.txt
verification: {baseline: false}
---

# Task: Make two files

## Success criteria

### Milestone M1 — Files
- [ ] M1.1 One is there
  - verify: `grep -q one a.txt`
- [ ] M1.2 Two is there
  - verify: `grep -q two b.txt`
";

/// A repository with one commit on `main`, a task, a script of a model, and a state directory.
pub(crate) struct TestProject {
    temporary: TempDir,
    /// Variables of the server besides the usual ones.
    more_variables: Vec<(OsString, OsString)>,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        // In memory if possible: every record is synced, but the files need not survive.
        let temporary = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let project = Self {
            temporary: temporary.unwrap(),
            more_variables: Vec::new(),
        };
        fs::create_dir(project.repo()).unwrap();
        fs::create_dir(project.path("user")).unwrap();
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        fs::write(project.repo().join("base.txt"), "base\n").unwrap();
        fs::write(project.repo().join("ralph_task.md"), TASK).unwrap();
        project.git(&["add", "--", "base.txt"]);
        project.git(&["commit", "--quiet", "--message", "base"]);
        project.write_script(&[finishing_reply()]);
        project
    }

    /// Adds a variable to the environment of the server.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.more_variables.push((name.into(), value.into()));
        self
    }

    /// Returns a path in the temporary directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// Returns the state directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Returns the directory of a run.
    pub(crate) fn run_dir(&self, run: &str) -> PathBuf {
        self.home().join("runs").join(run)
    }

    /// Writes the model's script.
    pub(crate) fn write_script(&self, lines: &[Value]) {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::write(self.path("replies.jsonl"), lines.join("\n")).unwrap();
    }

    /// Runs git in the user's repository.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(args)
            .current_dir(self.repo())
            .env_clear()
            .envs(self.variables());
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().into()
    }

    /// Returns the environment of the server: that of a user without configuration.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("RALPH_HOME".into(), self.home().into()),
            ("HOME".into(), self.path("user").into()),
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        for role in ["AUTHOR", "COMMITTER"] {
            variables.extend([
                (format!("GIT_{role}_NAME").into(), "user".into()),
                (format!("GIT_{role}_EMAIL").into(), "user@localhost".into()),
            ]);
        }
        variables.extend(self.more_variables.iter().cloned());
        variables
    }

    /// Returns the body of a request for a run with the scripted model in a local sandbox.
    pub(crate) fn new_run(&self) -> Value {
        json!({
            "directory": self.repo(),
            "file": "ralph_task.md",
            "model": format!("scripted:{}", self.path("replies.jsonl").display()),
            "sandbox": "local",
        })
    }

    /// Returns the events of a run, complete records only.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.run_dir(run).join("journal.jsonl")).unwrap();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
            .collect()
    }

    /// Returns the context of the application.
    pub(crate) fn app(&self) -> App {
        App::new(Environment::new(self.variables(), self.repo()))
    }
}

/// A line of a script: a reply with these actions and no claims.
pub(crate) fn reply(actions: &[Value]) -> Value {
    json!({"reply": {"summary": "work", "actions": actions},
           "usage": {"input_tokens": 10, "output_tokens": 10}})
}

/// A line of a script that completes the whole task.
pub(crate) fn finishing_reply() -> Value {
    let mut line = reply(&[
        json!({"type": "write", "path": "a.txt", "content": "one\n"}),
        json!({"type": "write", "path": "b.txt", "content": "two\n"}),
        json!({"type": "commit", "message": "Make two files"}),
    ]);
    line["reply"]["claims"] = json!({"checkboxes_checked": ["M1.1", "M1.2"]});
    line
}

/// A line of a script that runs a command.
pub(crate) fn command_reply(command: &str) -> Value {
    reply(&[json!({"type": "run", "command": command, "timeout_s": 60})])
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpReply {
    /// Asserts the status; prints the body on a mismatch.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) project: TestProject,
    pub(crate) address: ServerAddress,
    pub(crate) token: String,
    pub(crate) login_link: String,
    stop: watch::Sender<bool>,
    ended: JoinHandle<Result<(), AppError>>,
}

impl TestServer {
    /// Starts a server for a new project.
    pub(crate) async fn start() -> Self {
        Self::start_for(TestProject::new()).await
    }

    /// Starts a server for an existing project, such as one of a stopped server.
    pub(crate) async fn start_for(project: TestProject) -> Self {
        Self::start_with(project, ServeOptions::local(0, 2)).await
    }

    /// Starts a server with these options.
    pub(crate) async fn start_with(project: TestProject, options: ServeOptions) -> Self {
        let app = project.app();
        Self::start_app(project, app, options).await
    }

    /// Starts a server with this context of the application.
    pub(crate) async fn start_app(project: TestProject, app: App, options: ServeOptions) -> Self {
        let server = Server::bind(app, options).await.unwrap();
        let address = server.address().clone();
        let token = server.token().expose().to_owned();
        let login_link = server.login_link();
        let (stop, stopped) = watch::channel(false);
        let ended = tokio::spawn(server.serve(stopped));
        Self {
            project,
            address,
            token,
            login_link,
            stop,
            ended,
        }
    }

    /// Stops the server and returns its project.
    pub(crate) async fn stop(self) -> TestProject {
        self.stop.send_replace(true);
        let ended = timeout(WAIT_TIMEOUT, self.ended).await;
        ended.expect("the server stops").unwrap().unwrap();
        self.project
    }

    /// Starts a request with the token. Paths start with `/`.
    pub(crate) fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        self.bare_request(method, path)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
    }

    /// Starts a request without a credential.
    pub(crate) fn bare_request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.socket.to_string())
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> HttpReply {
        let exchange = async {
            let stream = TcpStream::connect(self.address.socket).await.unwrap();
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            let connection = tokio::spawn(connection);
            let response = sender.send_request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            drop(sender);
            connection.await.unwrap().unwrap();
            HttpReply {
                status: parts.status,
                headers: parts.headers,
                body,
            }
        };
        let reply = timeout(WAIT_TIMEOUT, exchange).await;
        reply.expect("the server responds")
    }

    pub(crate) async fn get(&self, path: &str) -> HttpReply {
        let request = self.request(Method::GET, path);
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// Returns the JSON of a resource that exists.
    pub(crate) async fn get_json(&self, path: &str) -> Value {
        self.get(path).await.expect(200).json()
    }

    pub(crate) async fn delete(&self, path: &str) -> HttpReply {
        let request = self.request(Method::DELETE, path);
        self.send(request.body(Full::default()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpReply {
        self.send_json(self.request(Method::POST, path), body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> HttpReply {
        self.send_json(self.request(Method::PUT, path), body).await
    }

    /// Sends a request with a JSON body; null means none.
    pub(crate) async fn send_json(
        &self,
        request: hyper::http::request::Builder,
        body: &Value,
    ) -> HttpReply {
        if body.is_null() {
            return self.send(request.body(Full::default()).unwrap()).await;
        }
        let request = request.header(CONTENT_TYPE, "application/json");
        let body = Full::from(body.to_string());
        self.send(request.body(body).unwrap()).await
    }

    /// Starts a run of the project and returns its id.
    pub(crate) async fn start_run(&self) -> String {
        let reply = self.post("/api/v1/runs", &self.project.new_run()).await;
        let id = reply.expect(201).json()["id"].as_str().map(str::to_owned);
        id.unwrap()
    }

    /// Waits until the details of a run meet a condition, and returns them.
    pub(crate) async fn wait_for_run(
        &self,
        run: &str,
        expected: &str,
        is_true: impl Fn(&Value) -> bool,
    ) -> Value {
        let start = Instant::now();
        loop {
            let details = self.get(&format!("/api/v1/runs/{run}")).await;
            let details = details.expect(200).json();
            if is_true(&details) {
                return details;
            }
            assert!(
                start.elapsed() < WAIT_TIMEOUT,
                "waited {WAIT_TIMEOUT:?} in vain until {expected}: {details}"
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a run has a status.
    pub(crate) async fn wait_for_status(&self, run: &str, status: &str) -> Value {
        let has_status = |details: &Value| details["status"] == status;
        self.wait_for_run(run, status, has_status).await
    }
}

/// A WebSocket of the server.
pub(crate) struct TestStream(WebSocketStream<TcpStream>);

impl TestStream {
    /// Opens a stream with a header as the credential, as a page of the server does.
    pub(crate) async fn open(server: &TestServer, path: &str, credential: (&str, &str)) -> Self {
        let address = server.address.socket;
        let handshake = Request::builder()
            .uri(format!("ws://{address}{path}"))
            .header(HOST, address.to_string())
            .header("origin", format!("http://{address}"))
            .header(credential.0, credential.1)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let opened = tokio_tungstenite::client_async(handshake, stream).await;
        Self(opened.unwrap().0)
    }

    /// Returns the next frame, or the code with which the server closed the stream.
    pub(crate) async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let message = timeout(WAIT_TIMEOUT, self.0.next()).await;
            match message.expect("the server sends a frame") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.unwrap().code.into()),
                Some(Ok(_)) => {}
                lost @ (Some(Err(_)) | None) => panic!("the connection is lost: {lost:?}"),
            }
        }
    }

    /// Waits for the end of the stream and returns its code.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }
}

/// Returns the value of the session's cookie in a response, with its name: `ralph_session=…`.
pub(crate) fn session_cookie(reply: &HttpReply) -> String {
    let cookie = reply.header("set-cookie");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

/// Returns the path and the query of a link.
pub(crate) fn path_of(link: &str) -> &str {
    let after_scheme = link.find("://").map_or(0, |at| at + "://".len());
    let path = link[after_scheme..].find('/').unwrap();
    &link[after_scheme + path..]
}

/// Sends bytes on a connection and returns all that the server sends until it closes the connection.
/// The bytes should ask for that with `Connection: close`.
pub(crate) async fn send_bytes(server: &TestServer, bytes: &[u8]) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(server.address.socket).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        String::from_utf8_lossy(&reply).into_owned()
    };
    let reply = timeout(WAIT_TIMEOUT, exchange).await;
    reply.expect("the server responds")
}

/// Returns the status code of a response that is a text.
pub(crate) fn status_of(reply: &str) -> u16 {
    let code = reply.split(' ').nth(1).unwrap_or_default();
    code.parse()
        .unwrap_or_else(|_| panic!("no response: {reply:?}"))
}
