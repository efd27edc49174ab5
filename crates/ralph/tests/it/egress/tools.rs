//! Unmodified programs that fetch packages and pages work in a sandbox: the project configures its
//! registry, and the programs are unaware of the gate.

use std::fmt::Write as _;

use ralph_core::ports::{Exec, GateControl as _};
use ralph_test::internet::packages::{self, HELLO};
use ralph_test::internet::{FakeInternet, SitePage, SitePages, TrustingImage, tools_image};
use ralph_test::skip_without_docker;

use super::gated_sandbox::{GatedSandbox, GatedSandboxConfig, TEST_TIMEOUT};

const ALLOWED: [&str; 6] = [
    "allowed.example",
    "apt.allowed.example",
    "cargo.allowed.example",
    "git.allowed.example",
    "npm.allowed.example",
    "pip.allowed.example",
];

/// Programs and their command lines. Each prints the greeting of a package or a page.
const TOOLS: [(&str, &str); 15] = [
    (
        "pip",
        "echo '--index-url https://pip.allowed.example/simple/' > requirements.txt
        echo hello_python >> requirements.txt
        pip install --quiet --target packages -r requirements.txt
        PYTHONPATH=packages python3 -c 'import hello_python; print(hello_python.HELLO)'",
    ),
    (
        "npm",
        "echo 'registry=https://npm.allowed.example/' > .npmrc
        echo '{\"dependencies\": {\"hello-npm\": \"^1.0.0\"}}' > package.json
        npm install >&2
        node -p 'require(\"hello-npm\")'",
    ),
    (
        "cargo",
        "mkdir .cargo src
        printf '[registries.here]\\nindex = \"sparse+https://cargo.allowed.example/index/\"\\n' > .cargo/config.toml
        printf '[package]\\nname = \"project\"\\nedition = \"2021\"\\n' > Cargo.toml
        printf '[dependencies]\\nhello-cargo = { version = \"1\", registry = \"here\" }\\n' >> Cargo.toml
        echo 'fn main() { println!(\"{}\", hello_cargo::HELLO); }' > src/main.rs
        cargo run --quiet",
    ),
    (
        // As a user without write access to system directories.
        "apt",
        "mkdir -p state/lists/partial cache/archives/partial
        echo 'deb [trusted=yes] https://apt.allowed.example/debian ./' > sources.list
        printf 'Dir::State \"%s/state\"; Dir::State::status \"/var/lib/dpkg/status\"; ' $PWD > apt.conf
        printf 'Dir::Cache \"%s/cache\"; Dir::Etc::sourcelist \"%s/sources.list\"; ' $PWD $PWD >> apt.conf
        printf 'Dir::Etc::sourceparts \"-\"; Debug::NoLocking \"true\";' >> apt.conf
        apt-get --config-file apt.conf update >&2
        apt-get --config-file apt.conf download hello-apt >&2
        dpkg-deb --fsys-tarfile hello-apt_*.deb | tar -xO usr/share/hello-apt",
    ),
    (
        "git",
        "git clone --quiet https://git.allowed.example/hello-git.git .
        cat hello.txt",
    ),
    ("curl", "curl -sS https://allowed.example/hello"),
    ("curl without TLS", "curl -sS http://allowed.example/hello"),
    (
        "curl with a newer protocol",
        "curl -sS --http2 https://allowed.example/hello",
    ),
    ("wget", "wget -qO- https://allowed.example/hello"),
    ("wget without TLS", "wget -qO- http://allowed.example/hello"),
    (
        "fetch in node",
        "node -e 'fetch(\"https://allowed.example/hello\").then(r => r.text()).then(t => process.stdout.write(t))'",
    ),
    (
        "requests in node",
        "node -e 'require(\"https\").get(\"https://allowed.example/hello\", r => r.pipe(process.stdout))'",
    ),
    (
        "python",
        "python3 -c '
import urllib.request
print(urllib.request.urlopen(\"https://allowed.example/hello\").read().decode(), end=\"\")'",
    ),
    (
        "a socket",
        "python3 -c '
import socket
s = socket.create_connection((\"allowed.example\", 80))
s.sendall(b\"GET /hello HTTP/1.0\\r\\nHost: allowed.example\\r\\n\\r\\n\")
print(s.makefile().read().split(\"\\n\\n\")[1], end=\"\")'",
    ),
    (
        "a socket with TLS",
        "python3 -c '
import socket, ssl
s = socket.create_connection((\"allowed.example\", 443))
s = ssl.create_default_context().wrap_socket(s, server_hostname=\"allowed.example\")
s.sendall(b\"GET /hello HTTP/1.0\\r\\nHost: allowed.example\\r\\n\\r\\n\")
print(s.makefile().read().split(\"\\n\\n\")[1], end=\"\")'",
    ),
];

/// Without the proxy variables, the gate is reached through DNS alone.
const NO_PROXY: &str = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY; ";

/// Returns a fake internet with a registry of each kind.
async fn internet() -> FakeInternet {
    let mut internet = FakeInternet::new();
    let page = SitePage::text(&format!("{HELLO}\n"));
    let mut pages = SitePages::from([("/hello".to_owned(), page)]);
    pages.extend(packages::python("hello_python"));
    pages.extend(packages::npm("https://npm.allowed.example", "hello-npm"));
    pages.extend(packages::cargo(
        "https://cargo.allowed.example",
        "hello-cargo",
    ));
    pages.extend(packages::apt("hello-apt"));
    pages.extend(packages::git("hello-git"));
    internet.start_site(&ALLOWED, pages).await;
    internet
}

/// Runs every program, with and without the proxy, and asserts that each prints its greeting.
async fn assert_all_say_hello(gated: &GatedSandbox) {
    let mut wrong = String::new();
    for (way, before) in [("as it is", ""), ("without the proxy", NO_PROXY)] {
        for (tool, script) in TOOLS {
            let line = format!("set -e; {before} mkdir work; cd work; {script}");
            let exec = Exec::shell(line, TEST_TIMEOUT);
            let (ended, output) = gated.run(exec).await;
            if output.stdout_text().trim() != HELLO {
                let (stdout, stderr) = (output.stdout_text(), output.stderr_text());
                writeln!(wrong, "{tool}, {way}: {ended}: {stdout}\n{stderr}").unwrap();
            }
            gated.sh("rm -rf work").await;
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{:#?}", gated.decisions());
    let mut denied = gated.decisions();
    denied.retain(|decision| decision.contains("denied"));
    assert_eq!((denied, gated.run_gate.drain_events()), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_work_where_tls_stays_closed() {
    if skip_without_docker() {
        return;
    }
    let internet = internet().await;
    let image = TrustingImage::for_authority(internet.authority_pem());
    let plan = GatedSandboxConfig {
        allow: &ALLOWED,
        image: image.name().to_owned(),
        ..GatedSandboxConfig::default()
    };
    let gated = GatedSandbox::open(internet, plan).await;
    assert_all_say_hello(&gated).await;
    gated.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_work_where_tls_is_opened() {
    if skip_without_docker() {
        return;
    }
    let plan = GatedSandboxConfig {
        allow: &ALLOWED,
        inspect: &ALLOWED,
        image: tools_image(),
        ..GatedSandboxConfig::default()
    };
    let gated = GatedSandbox::with_trusted_ca(internet().await, plan).await;
    assert_all_say_hello(&gated).await;
    gated.finish().await;
}
