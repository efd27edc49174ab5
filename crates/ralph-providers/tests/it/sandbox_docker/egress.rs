//! Outbound connections of a sandbox, served by this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::ports::{Exec, ExecStatus, SandboxProvider as _, SandboxSpec};
use ralph_guest::wire::ListenKind;
use ralph_providers::sandbox::DockerProvider;
use ralph_providers::sandbox::egress::{EgressConnection, EgressListener, SandboxEgress};
use ralph_test::{CollectedOutput, skip_without_docker};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::fixture::{DockerTestEnv, root_sh, sh};

/// Reports the origin of a connection and echoes its data.
struct EchoEgress;

#[async_trait]
impl SandboxEgress for EchoEgress {
    fn listeners(&self) -> Vec<EgressListener> {
        [
            ("high", "127.0.0.1:3128", ListenKind::Connections),
            ("low", "0.0.0.0:80", ListenKind::Connections),
            ("names", "127.0.0.1:53", ListenKind::Datagrams),
        ]
        .map(|(name, address, listening)| EgressListener {
            name: name.into(),
            address: address.into(),
            listening,
        })
        .into()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("TEST_PROXY".to_owned(), "127.0.0.1:3128".to_owned())])
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        ["one", "two"]
            .map(|name| (name.to_owned(), format!("file {name}\n").into_bytes()))
            .into()
    }

    async fn serve(&self, connection: EgressConnection) {
        let EgressConnection {
            listener,
            local,
            mut stream,
        } = connection;
        if listener == "names" {
            let mut question = vec![0; usize::from(stream.read_u16().await.unwrap())];
            stream.read_exact(&mut question).await.unwrap();
            stream
                .write_u16(2 * u16::try_from(question.len()).unwrap())
                .await
                .unwrap();
            stream.write_all(&question.repeat(2)).await.unwrap();
            return;
        }
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        let head = format!("{listener} {local}: ");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&received).await.unwrap();
        stream.shutdown().await.unwrap();
    }
}

const CLIENT: &str = r"
import os, socket
def ask(address, data):
    s = socket.create_connection(address, 5); s.sendall(data); s.shutdown(socket.SHUT_WR)
    got = b''
    while True:
        piece = s.recv(65536)
        if not piece: return got
        got += piece
host, port = os.environ['TEST_PROXY'].split(':')
print(ask((host, int(port)), b'hello').decode())
print(ask(('127.1.2.3', 80), b'there').decode())
big = os.urandom(3_000_000)
print(ask((host, int(port)), big) == b'high 127.0.0.1:3128: ' + big)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(5)
u.sendto(b'abc', ('127.0.0.1', 53)); print(u.recvfrom(100)[0].decode())
try: socket.create_connection(('192.0.2.1', 80), 2); print('out!')
except OSError as error: print(error.errno)
";

async fn assert_answered(env: DockerTestEnv) {
    let provider: DockerProvider = env.second_provider().with_egress(Arc::new(EchoEgress));
    let sandbox = provider.create(&SandboxSpec::default()).await.unwrap();
    let mut output = CollectedOutput::default();
    let exec = Exec::argv(["python3", "-c", CLIENT], Duration::from_secs(30));
    let outcome = sandbox.exec(exec, None, &mut output).await;
    sandbox.remove().await.unwrap();
    assert_eq!(output.stderr_text(), "");
    assert_eq!(
        output.stdout_text(),
        "high 127.0.0.1:3128: hello\nlow 127.1.2.3:80: there\nTrue\nabcabc\n101\n"
    );
    assert_eq!(outcome.unwrap().ended, ExecStatus::Exited(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_reach_the_gate_and_nothing_else() {
    if !skip_without_docker() {
        assert_answered(DockerTestEnv::new()).await;
        assert_answered(DockerTestEnv::attached()).await;
    }
}

/// Ways for a command to tamper with the egress files.
const OBSTACLES: [&str; 3] = [
    "rm one; mkdir -p one/two; chmod 0 one .",
    "rm one two; ln -s /etc/passwd one; mkfifo two",
    "echo mine > one; chmod 0 one; chmod 555 .",
];

/// Replacements of their directory, for commands that may write next to it.
const REPLACEMENTS: [&str; 4] = [
    "echo mine > .way-out",
    "ln -s /etc .way-out",
    "ln -s nowhere .way-out",
    "mkfifo .way-out",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_cannot_block_the_egress_files() {
    if skip_without_docker() {
        return;
    }
    let env = DockerTestEnv::new();
    let provider = || env.second_provider().with_egress(Arc::new(EchoEgress));
    let mut sandbox = provider().create(&SandboxSpec::default()).await.unwrap();
    for obstacle in OBSTACLES.into_iter().chain(REPLACEMENTS) {
        if OBSTACLES.contains(&obstacle) {
            sh(&*sandbox, &format!("cd /workspace/.way-out && {obstacle}")).await;
        } else {
            let line = format!("cd /workspace && rm -r .way-out && {obstacle}");
            root_sh(&env, &*sandbox, &line);
        }
        let again = provider().attach(sandbox.id()).await;
        sandbox = again
            .unwrap_or_else(|error| panic!("`{obstacle}`: {error}"))
            .unwrap();
        let found = sh(&*sandbox, "cd /workspace/.way-out && ls -A && cat one two").await;
        assert_eq!(found, "one\ntwo\nfile one\nfile two\n", "`{obstacle}`");
    }
    env.finish().await;
}
