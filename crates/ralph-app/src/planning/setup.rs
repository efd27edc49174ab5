//! Plans how a run installs the dependencies of its project, and which registries it reaches then.

use std::fs;
use std::path::{Path, PathBuf};

use ralph_core::ecosystem::{
    MAX_DEPENDENCY_FILES, PackageEcosystem, dependency_files, used_ecosystems,
};
use ralph_core::net::EgressPolicy;
use ralph_core::plan::{EcosystemRegistries, NetworkPlan, RegistryHost, SetupPlan, SetupSource};
use ralph_core::task::Contract;
use ralph_engine::git::HostGit;
use ralph_guest::available;

use super::source_repository::SourceRepository;
use crate::app::App;
use crate::config::{
    self, ConfigLayers, Environment, SETUP_COMMAND_KEY, SandboxSettings, ValueOrigin,
};
use crate::error::AppError;

/// The largest settings file of a package manager that is read, in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// The most files of a directory with package sources.
const MAX_SOURCE_FILES: usize = 32;

/// The set-up of a run, and facts that the user should know about it.
#[derive(Default)]
pub(crate) struct PlannedSetup {
    pub(crate) plan: Option<SetupPlan>,
    pub(crate) notices: Vec<String>,
}

/// Plans the set-up of a run: of the task, or else of `ralph.toml`, or else of `.agent-loop`.
pub(crate) async fn plan_setup(
    contract: &Contract,
    source: &SourceRepository,
    network: Option<&NetworkPlan>,
    git: &HostGit,
    app: &App,
) -> Result<PlannedSetup, AppError> {
    let settings = app.settings()?.sandbox;
    let named = if contract.lockfiles.is_empty() {
        &settings.lockfiles
    } else {
        &contract.lockfiles
    };
    let Some((command, setup_source)) = chosen_command(contract, &settings, app)? else {
        let notice = "`lockfiles` has no effect without a `setup_command`".to_owned();
        return Ok(PlannedSetup {
            plan: None,
            notices: (!named.is_empty()).then_some(notice).into_iter().collect(),
        });
    };
    let files = files_at_base(source, named, git).await?;
    let mut planned = PlannedSetup::default();
    if files.len() > MAX_DEPENDENCY_FILES {
        planned.notices.push(format!(
            "set-up runs again when one of {} lockfiles and manifests changes; name those that it needs in `lockfiles`",
            files.len()
        ));
    }
    let registries = match network {
        None => {
            let notice = "set-up uses this machine's own network: the sandbox `local` has no gate";
            planned.notices.push(notice.to_owned());
            Vec::new()
        }
        Some(_) => ecosystem_registries(&files, &command, &settings, app.environment()),
    };
    let is_open = network.is_some_and(|network| network.policy == EgressPolicy::AllowAll);
    let unknown = registries
        .iter()
        .filter(|registries| registries.hosts.is_empty() && !is_open);
    planned.notices.extend(unknown.map(|registries| {
        let name = registries.ecosystem;
        format!(
            "no registry is known for `{name}`, so set-up runs without one; add `{name} = [\"registry.example.com\"]` below `[sandbox.registries]` in your own ralph.toml"
        )
    }));
    planned.plan = Some(SetupPlan {
        command,
        source: setup_source,
        files,
        registries,
    });
    Ok(planned)
}

fn chosen_command(
    contract: &Contract,
    settings: &SandboxSettings,
    app: &App,
) -> Result<Option<(String, SetupSource)>, AppError> {
    if let Some(command) = &contract.setup_command {
        return Ok(Some((command.clone(), SetupSource::Task)));
    }
    let command = settings.setup_command.trim();
    if command.is_empty() {
        return Ok(None);
    }
    let layers = ConfigLayers::for_working_dir(app.environment());
    let merged = config::merge_settings(&layers).map_err(AppError::from)?;
    let origin = merged.origins.get(SETUP_COMMAND_KEY);
    let is_agent_loop = |path: &Path| path.file_name().is_some_and(|name| name == "config.json");
    let source = match origin {
        Some(ValueOrigin::ProjectFile(path)) if is_agent_loop(path) => SetupSource::AgentLoop,
        Some(_) | None => SetupSource::Settings,
    };
    Ok(Some((command.to_owned(), source)))
}

/// Returns the lockfiles and manifests at the base commit. Rejects a named one that does not exist
/// there.
async fn files_at_base(
    source: &SourceRepository,
    named: &[String],
    git: &HostGit,
) -> Result<Vec<String>, AppError> {
    let arguments = [
        "ls-tree",
        "-r",
        "-z",
        "--name-only",
        "--full-tree",
        source.base.as_str(),
    ];
    let listed = git
        .run_as_user(&source.path, &arguments)
        .await
        .map_err(|error| super::repository::unreadable(&source.path, &error))?;
    let paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    if let Some(missing) = named.iter().find(|name| !paths.contains(&name.as_str())) {
        return Err(AppError::usage(
            format!("lockfile `{missing}` does not exist"),
            format!("commit {} does not contain it", source.base.short()),
            "correct `lockfiles`, or commit the file",
        ));
    }
    Ok(dependency_files(paths, named))
}

/// Returns the registries of each ecosystem in use: those of `ralph.toml`, or else those of the
/// user's own configuration of the package manager.
fn ecosystem_registries(
    files: &[String],
    command: &str,
    settings: &SandboxSettings,
    environment: &Environment,
) -> Vec<EcosystemRegistries> {
    let registries = |ecosystem: PackageEcosystem| {
        let configured = settings.registries.get(&ecosystem);
        let hosts = match configured {
            Some(hosts) => hosts
                .iter()
                .map(|host| RegistryHost {
                    host: host.clone(),
                    source: format!("sandbox.registries.{ecosystem}"),
                })
                .collect(),
            None => machine_registries(ecosystem, environment),
        };
        EcosystemRegistries { ecosystem, hosts }
    };
    let used = used_ecosystems(files, command).into_iter();
    used.map(registries).collect()
}

/// Returns the registries that the user's configuration of a package manager names on this machine.
fn machine_registries(ecosystem: PackageEcosystem, environment: &Environment) -> Vec<RegistryHost> {
    let mut found: Vec<RegistryHost> = Vec::new();
    let mut add = |hosts: Vec<String>, source: &str| {
        for host in hosts {
            if !found.iter().any(|known| known.host == host) {
                let source = source.to_owned();
                found.push(RegistryHost { host, source });
            }
        }
    };
    for name in ecosystem.settings_variables() {
        if let Some(value) = environment.registry_variable(name) {
            add(PackageEcosystem::registries_in_variable(value), name);
        }
    }
    for name in ecosystem.settings_files() {
        let Some(home) = environment.home() else {
            continue;
        };
        for path in regular_files(&home.join(name)) {
            let Some(text) = available(fs::read_to_string(&path)) else {
                continue;
            };
            let shown = path
                .strip_prefix(home)
                .map_or_else(|_| path.clone(), |rest| Path::new("~").join(rest));
            add(
                ecosystem.registries_in_file(&text),
                &shown.display().to_string(),
            );
        }
    }
    found
}

/// Returns a file, or the files of a directory, without those that are too large.
fn regular_files(path: &Path) -> Vec<PathBuf> {
    let is_small = |path: &PathBuf| {
        let metadata = available(fs::metadata(path));
        metadata.is_some_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SETTINGS_BYTES)
    };
    let candidates = if path.is_dir() {
        let entries = available(fs::read_dir(path)).into_iter().flatten();
        let paths = entries.filter_map(available).map(|entry| entry.path());
        // apt ignores files with other endings.
        let is_used = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("list" | "sources"))
        };
        let paths = paths.filter(is_used);
        let mut paths: Vec<PathBuf> = paths.take(MAX_SOURCE_FILES).collect();
        paths.sort();
        paths
    } else {
        vec![path.to_owned()]
    };
    candidates.into_iter().filter(is_small).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_settings_precede_those_of_the_package_manager() {
        let home = tempfile::tempdir().unwrap();
        fs::write(
            home.path().join(".npmrc"),
            "registry=https://npm.example.com/\n",
        )
        .unwrap();
        let environment = Environment::for_test(&[
            ("HOME", &home.path().display().to_string()),
            ("GOPROXY", "https://go.example.com,direct"),
        ]);
        let files = ["package-lock.json", "go.sum", "Cargo.lock"].map(String::from);
        let mut settings = SandboxSettings::default();
        let planned = |settings: &SandboxSettings| {
            let all = ecosystem_registries(&files, "make deps", settings, &environment);
            let hosts = |registries: &EcosystemRegistries| {
                let hosts = registries.hosts.iter();
                hosts
                    .map(|host| format!("{} {} {}", registries.ecosystem, host.host, host.source))
                    .collect::<Vec<_>>()
            };
            all.iter().flat_map(hosts).collect::<Vec<_>>()
        };
        assert_eq!(
            planned(&settings),
            ["npm npm.example.com ~/.npmrc", "go go.example.com GOPROXY"]
        );
        let own = vec!["registry.example.com".to_owned()];
        settings.registries.insert(PackageEcosystem::Npm, own);
        assert_eq!(
            planned(&settings)[0],
            "npm registry.example.com sandbox.registries.npm"
        );
    }
}
