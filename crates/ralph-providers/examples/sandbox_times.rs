//! Benchmarks a Docker sandbox against the Docker Engine and the host. `bench/sandbox` runs it and
//! explains the numbers.
//!
//! usage: `sandbox_times IMAGE ROUNDS PART...`, with the parts `exec`, `create` and `files`
//!
//! Prints a line `{"part": …, "name": …, "microseconds": […]}` per measurement. The variants run in
//! turn, so that load on the machine affects all of them equally.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use ralph_core::path::{SandboxPath, WorkspacePath};
use ralph_core::ports::{
    Exec, OutputSink, OutputStream, Sandbox, SandboxProvider as _, SandboxSpec, WriteMode,
};
use ralph_providers::docker::DockerEngine;
use ralph_providers::sandbox::{DockerProvider, DockerSettings};

type BenchmarkError = Box<dyn std::error::Error + Send + Sync>;

const MINUTE: Duration = Duration::from_mins(1);
const MANY: usize = 1000;
/// Number of uncounted rounds.
const WARM_UP: usize = 10;

/// All measurements, by part and name.
#[derive(Default)]
struct BenchmarkTimes(BTreeMap<(&'static str, &'static str), Vec<u64>>);

impl BenchmarkTimes {
    fn add(&mut self, part: &'static str, name: &'static str, started: Instant) {
        let microseconds = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.0.entry((part, name)).or_default().push(microseconds);
    }

    #[expect(clippy::print_stdout, reason = "the results are printed")]
    fn print(&self) {
        for ((part, name), microseconds) in &self.0 {
            let line =
                serde_json::json!({"part": part, "name": name, "microseconds": microseconds});
            println!("{line}");
        }
    }
}

/// Discards output.
struct BenchmarkSink;

impl OutputSink for BenchmarkSink {
    fn chunk(&mut self, _stream: OutputStream, _bytes: &[u8]) {}
}

/// The benchmark and its environment.
struct SandboxBenchmark {
    provider: DockerProvider,
    image: String,
    rounds: usize,
    times: BenchmarkTimes,
    directory: tempfile::TempDir,
}

#[tokio::main]
async fn main() -> Result<(), BenchmarkError> {
    // As in a run: in its own task, not on the main thread.
    tokio::spawn(measure(std::env::args().collect())).await??;
    Ok(())
}

async fn measure(arguments: Vec<String>) -> Result<(), BenchmarkError> {
    let mut arguments = arguments.into_iter().skip(1);
    let (Some(image), Some(rounds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: sandbox_times IMAGE ROUNDS PART...".into());
    };
    let directory = tempfile::tempdir()?;
    let mut bench = SandboxBenchmark {
        provider: DockerProvider::new(DockerSettings::new(&image, directory.path().join("state"))),
        image,
        rounds: rounds.parse()?,
        times: BenchmarkTimes::default(),
        directory,
    };
    for part in arguments {
        match part.as_str() {
            "exec" => bench.exec().await?,
            "create" => bench.create().await?,
            "files" => bench.files().await?,
            _ => return Err(format!("unknown part `{part}`").into()),
        }
    }
    bench.times.print();
    Ok(())
}

impl SandboxBenchmark {
    async fn sandbox(&self) -> Result<Box<dyn Sandbox>, BenchmarkError> {
        Ok(self.provider.create(&SandboxSpec::default()).await?)
    }

    /// The shortest possible command: in a warm sandbox, on the host, and with `docker exec`.
    async fn exec(&mut self) -> Result<(), BenchmarkError> {
        let sandbox = self.sandbox().await?;
        let container = object_name(&*sandbox);
        let names = ["sandbox", "host", "sandbox, by a shell", "host, by a shell"];
        for round in 0..self.rounds + WARM_UP {
            // Rotates the order, so that no variant always follows the same one.
            for name in (0..4).map(|step| names[(round + step) % 4]) {
                let started = Instant::now();
                match name {
                    "sandbox" => run(&*sandbox, Exec::argv(["true"], MINUTE)).await?,
                    "host" => run_on_host(&mut Command::new("true"))?,
                    "sandbox, by a shell" => run(&*sandbox, Exec::shell("true", MINUTE)).await?,
                    _ => run_on_host(Command::new("sh").args(["-c", "true"]))?,
                }
                if round >= WARM_UP {
                    self.times.add("exec", name, started);
                }
            }
        }
        for _ in 0..self.rounds {
            let started = Instant::now();
            docker(&["exec", &container, "true"])?;
            self.times.add("exec", "docker exec", started);
        }
        sandbox.remove().await?;
        Ok(())
    }

    /// Creates a sandbox and runs its first command, next to a bare container with the same limits
    /// and mounts.
    async fn create(&mut self) -> Result<(), BenchmarkError> {
        let engine = DockerEngine::connect(None).await?;
        let reference = self.sandbox().await?;
        let inspected = engine
            .api()
            .inspect_container(&object_name(&*reference), None)
            .await?;
        let mut host_config = inspected
            .host_config
            .ok_or("the Docker Engine does not report the host config")?;
        for round in 0..self.rounds {
            let started = Instant::now();
            let sandbox = self.sandbox().await?;
            self.times.add("create", "sandbox", started);
            run(&*sandbox, Exec::argv(["true"], MINUTE)).await?;
            self.times
                .add("create", "sandbox, to its first command", started);
            sandbox.remove().await?;

            let name = format!("ralph-bare-{}-{round}", std::process::id());
            for mount in host_config.mounts.iter_mut().flatten() {
                if mount.target.as_deref() == Some("/workspace") {
                    mount.source = Some(name.clone());
                }
            }
            let body = ContainerCreateBody {
                image: Some(self.image.clone()),
                entrypoint: Some(vec!["sleep".into(), "600".into()]),
                host_config: Some(host_config.clone()),
                ..ContainerCreateBody::default()
            };
            let options = CreateContainerOptionsBuilder::new().name(&name).build();
            let started = Instant::now();
            engine.api().create_container(Some(options), body).await?;
            engine.api().start_container(&name, None).await?;
            self.times.add("create", "bare container", started);
            let options = RemoveContainerOptionsBuilder::new().force(true).build();
            engine.api().remove_container(&name, Some(options)).await?;
            docker(&["volume", "rm", &name])?;
        }
        reference.remove().await?;
        Ok(())
    }

    /// Copies files in and out, next to `docker cp`. Uses new names each time: file systems are
    /// slower after many deletions.
    async fn files(&mut self) -> Result<(), BenchmarkError> {
        let sandbox = self.sandbox().await?;
        let small = vec![b'x'; 4096];
        for round in 0..self.rounds {
            let path = repo(&format!("small/{round}"))?;
            let started = Instant::now();
            sandbox.write(&path, &small, WriteMode::Replace).await?;
            self.times.add("files", "4 KB in", started);
            let started = Instant::now();
            sandbox.read(&path, 4096).await?;
            self.times.add("files", "4 KB out", started);
        }
        // On the same file system as the Docker Engine's data, if this user may write there.
        let data = DockerEngine::connect(None).await?.info().await?.data_root;
        let volume = format!("{data}/volumes/{}/_data/scratch", object_name(&*sandbox));
        let host = Some(PathBuf::from(volume)).filter(|path| path.is_dir());
        let host = host.unwrap_or_else(|| self.directory.path().to_owned());
        for round in 0..self.rounds.div_ceil(40) {
            self.many(&*sandbox, &host, round).await?;
        }
        self.large(&*sandbox).await?;
        sandbox.remove().await?;
        Ok(())
    }

    async fn many(
        &mut self,
        sandbox: &dyn Sandbox,
        host: &Path,
        round: usize,
    ) -> Result<(), BenchmarkError> {
        let names: Vec<String> = (0..MANY)
            .map(|number| format!("many-{round}/{}/{number}", number % 10))
            .collect();
        let text = b"a small file\n";
        let started = Instant::now();
        for name in &names {
            sandbox
                .write(&repo(name)?, text, WriteMode::Replace)
                .await?;
        }
        self.times.add("files", "1,000 small files in", started);
        let started = Instant::now();
        for name in &names {
            sandbox.read(&repo(name)?, 100).await?;
        }
        self.times.add("files", "1,000 small files out", started);
        let started = Instant::now();
        for name in &names {
            let path = host.join(name);
            let parent = path.parent().ok_or("it is in a directory")?;
            std::fs::create_dir_all(parent)?;
            let temporary = host.join("temporary");
            std::fs::write(&temporary, text)?;
            std::fs::rename(temporary, path)?;
        }
        self.times
            .add("files", "1,000 small files on the host", started);
        Ok(())
    }

    async fn large(&mut self, sandbox: &dyn Sandbox) -> Result<(), BenchmarkError> {
        let bytes = vec![b'x'; 10_000_000];
        let local = self.directory.path().join("large");
        std::fs::write(&local, &bytes)?;
        let local = local.to_string_lossy().into_owned();
        let remote = format!("{}:/workspace/repo/copied", object_name(sandbox));
        for round in 0..self.rounds {
            let path = repo(&format!("large-{}", round % 10))?;
            let started = Instant::now();
            sandbox.write(&path, &bytes, WriteMode::Replace).await?;
            self.times.add("files", "10 MB in", started);
            let started = Instant::now();
            let read = sandbox.read(&path, 1 << 30).await?;
            self.times.add("files", "10 MB out", started);
            if read != bytes {
                return Err("the file has changed".into());
            }
            if round % 10 == 0 {
                let started = Instant::now();
                docker(&["cp", &local, &remote])?;
                self.times.add("files", "10 MB in, docker cp", started);
                let started = Instant::now();
                docker(&["cp", &remote, &local])?;
                self.times.add("files", "10 MB out, docker cp", started);
            }
        }
        Ok(())
    }
}

/// Runs a command on the host, with its output piped.
fn run_on_host(command: &mut Command) -> Result<(), BenchmarkError> {
    command.env_clear().stdin(Stdio::null()).output()?;
    Ok(())
}

fn object_name(sandbox: &dyn Sandbox) -> String {
    sandbox.id().0.replace("docker-", "ralph-")
}

fn repo(path: &str) -> Result<SandboxPath, BenchmarkError> {
    Ok(SandboxPath::in_repo(&WorkspacePath::parse(path)?))
}

async fn run(sandbox: &dyn Sandbox, exec: Exec) -> Result<(), BenchmarkError> {
    let outcome = sandbox.exec(exec, None, &mut BenchmarkSink).await?;
    if outcome.ended.is_success() {
        Ok(())
    } else {
        Err(format!("a command ended with {}", outcome.ended).into())
    }
}

fn docker(arguments: &[&str]) -> Result<(), BenchmarkError> {
    let status = Command::new("docker")
        .args(arguments)
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`docker {}` failed", arguments.join(" ")).into())
    }
}
