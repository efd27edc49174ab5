//! The files that determine a project's dependencies, and the commands that install them.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::project_files::ProjectFiles;

/// The most lockfiles that a setting names, and the most dependency files that are read one by one.
pub const MAX_DEPENDENCY_FILES: usize = 64;
/// The most files that determine the dependencies of a project.
pub const MAX_PLANNED_DEPENDENCY_FILES: usize = 2000;

/// Directories with the dependencies themselves, whose files do not belong to the project.
const INSTALLED: [&str; 6] = [
    "node_modules",
    "vendor",
    "target",
    ".venv",
    "venv",
    "site-packages",
];

/// A family of package managers that share their registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageEcosystem {
    /// npm, yarn, pnpm and bun.
    Npm,
    /// pip, poetry, uv, pdm and pipenv.
    Pip,
    Cargo,
    Go,
    /// Bundler.
    Gem,
    Composer,
    Apt,
}

impl PackageEcosystem {
    /// All ecosystems.
    pub const ALL: [Self; 7] = [
        Self::Npm,
        Self::Pip,
        Self::Cargo,
        Self::Go,
        Self::Gem,
        Self::Composer,
        Self::Apt,
    ];

    /// Returns the name in `[sandbox.registries]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Gem => "gem",
            Self::Composer => "composer",
            Self::Apt => "apt",
        }
    }

    /// Returns the ecosystem with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|ecosystem| ecosystem.name() == name)
    }

    /// Returns the programs that download packages of the ecosystem.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["npm", "npx", "yarn", "pnpm", "bun"],
            Self::Pip => &["pip", "pip3", "uv", "poetry", "pdm", "pipenv"],
            Self::Cargo => &["cargo"],
            Self::Go => &["go"],
            Self::Gem => &["gem", "bundle", "bundler"],
            Self::Composer => &["composer"],
            Self::Apt => &["apt", "apt-get"],
        }
    }
}

impl fmt::Display for PackageEcosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a file fixes versions or only names dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyFileKind {
    Lockfile,
    Manifest,
}

const FILES: [(&str, PackageEcosystem, DependencyFileKind); 29] = {
    use DependencyFileKind::{Lockfile, Manifest};
    use PackageEcosystem::{Cargo, Composer, Gem, Go, Npm, Pip};
    [
        ("package-lock.json", Npm, Lockfile),
        ("npm-shrinkwrap.json", Npm, Lockfile),
        ("yarn.lock", Npm, Lockfile),
        ("pnpm-lock.yaml", Npm, Lockfile),
        ("bun.lock", Npm, Lockfile),
        ("bun.lockb", Npm, Lockfile),
        ("package.json", Npm, Manifest),
        ("pnpm-workspace.yaml", Npm, Manifest),
        (".npmrc", Npm, Manifest),
        ("poetry.lock", Pip, Lockfile),
        ("uv.lock", Pip, Lockfile),
        ("pdm.lock", Pip, Lockfile),
        ("Pipfile.lock", Pip, Lockfile),
        ("pyproject.toml", Pip, Manifest),
        ("setup.py", Pip, Manifest),
        ("setup.cfg", Pip, Manifest),
        ("Pipfile", Pip, Manifest),
        ("Cargo.lock", Cargo, Lockfile),
        ("Cargo.toml", Cargo, Manifest),
        ("rust-toolchain", Cargo, Manifest),
        ("rust-toolchain.toml", Cargo, Manifest),
        ("go.sum", Go, Lockfile),
        ("go.mod", Go, Manifest),
        ("go.work", Go, Manifest),
        ("go.work.sum", Go, Lockfile),
        ("Gemfile.lock", Gem, Lockfile),
        ("Gemfile", Gem, Manifest),
        ("composer.lock", Composer, Lockfile),
        ("composer.json", Composer, Manifest),
    ]
};

/// Files of package managers whose registries are not known. Their manifests count as lockfiles,
/// because projects fix versions there.
const OTHER_FILES: [&str; 7] = [
    "pom.xml",
    "gradle.lockfile",
    "packages.lock.json",
    "mix.exs",
    "mix.lock",
    "environment.yml",
    "environment.yaml",
];

/// Returns the ecosystem, if it is a known one, and the kind of a file that determines dependencies.
pub fn dependency_file(path: &str) -> Option<(Option<PackageEcosystem>, DependencyFileKind)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_in_requirements = directory.rsplit('/').next() == Some("requirements");
    if (name.starts_with("requirements") || is_in_requirements) && ends_with(name, ".txt") {
        let pip = Some(PackageEcosystem::Pip);
        return Some((pip, DependencyFileKind::Lockfile));
    }
    let is_other = OTHER_FILES.contains(&name)
        || ends_with(name, ".csproj")
        || name.starts_with("build.gradle")
        || name.starts_with("settings.gradle");
    if is_other {
        return Some((None, DependencyFileKind::Lockfile));
    }
    let mut files = FILES.iter();
    let (_, ecosystem, kind) = files.find(|(file, ..)| *file == name)?;
    Some((Some(*ecosystem), *kind))
}

fn ends_with(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some()
}

/// Returns the directory of a path; empty for the root.
pub fn parent_directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Returns the files that determine the dependencies, sorted: the named lockfiles or else all of the
/// project, the manifests beside them, and the manifests in the root.
pub fn dependency_files<'p>(
    paths: impl IntoIterator<Item = &'p str>,
    named: &[String],
) -> Vec<String> {
    let is_own = |path: &str| !path.split('/').any(|part| INSTALLED.contains(&part));
    let paths = paths.into_iter().filter(|path| is_own(path));
    let known: Vec<(&str, DependencyFileKind)> = paths
        .filter_map(|path| dependency_file(path).map(|(_, kind)| (path, kind)))
        .collect();
    let mut files: BTreeSet<&str> = named.iter().map(String::as_str).collect();
    if named.is_empty() {
        let locks = known
            .iter()
            .filter(|(_, kind)| *kind == DependencyFileKind::Lockfile);
        files.extend(locks.map(|(path, _)| *path));
    }
    let mut directories: BTreeSet<&str> = files.iter().map(|path| parent_directory(path)).collect();
    directories.insert("");
    let manifests = known.iter().filter(|(path, kind)| {
        *kind == DependencyFileKind::Manifest && directories.contains(parent_directory(path))
    });
    files.extend(manifests.map(|(path, _)| *path));
    let files = files.into_iter().take(MAX_PLANNED_DEPENDENCY_FILES);
    files.map(str::to_owned).collect()
}

/// Returns the ecosystems that set-up uses: those of the files, and those whose programs the command
/// starts.
pub fn used_ecosystems(files: &[String], command: &str) -> Vec<PackageEcosystem> {
    let separators = |c: char| c.is_whitespace() || ";&|()'\"".contains(c);
    let words: BTreeSet<&str> = command
        .split(separators)
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .collect();
    let is_used = |ecosystem: &PackageEcosystem| {
        let in_files = files
            .iter()
            .any(|file| dependency_file(file).is_some_and(|(found, _)| found == Some(*ecosystem)));
        in_files || ecosystem.programs().iter().any(|name| words.contains(name))
    };
    PackageEcosystem::ALL.into_iter().filter(is_used).collect()
}

/// Returns a command that installs the locked dependencies of a project, if its root has lockfiles.
pub fn propose_setup_command(files: &ProjectFiles) -> Option<String> {
    let venv = "python3 -m venv .venv && .venv/bin/pip install";
    let rules: [(&str, String); 13] = [
        ("package-lock.json", "npm ci".into()),
        ("npm-shrinkwrap.json", "npm ci".into()),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile".into()),
        ("yarn.lock", "yarn install --frozen-lockfile".into()),
        ("bun.lock", "bun install --frozen-lockfile".into()),
        ("uv.lock", "uv sync --frozen".into()),
        ("poetry.lock", "poetry install".into()),
        ("Pipfile.lock", "pipenv sync --dev".into()),
        ("requirements.txt", format!("{venv} -r requirements.txt")),
        ("Cargo.lock", "cargo fetch --locked".into()),
        ("go.sum", "go mod download".into()),
        ("Gemfile.lock", "bundle install".into()),
        ("composer.lock", "composer install --no-interaction".into()),
    ];
    let mut proposed = BTreeSet::new();
    let mut commands = Vec::new();
    for (file, command) in rules {
        let Some((Some(ecosystem), _)) = dependency_file(file) else {
            continue;
        };
        if files.has_any(&[file]) && proposed.insert(ecosystem) {
            commands.push(command);
        }
    }
    (!commands.is_empty()).then(|| commands.join(" && "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockfiles_are_found_with_the_manifests_beside_them() {
        let paths = [
            "Cargo.toml",
            "web/package.json",
            "web/package-lock.json",
            "web/src/package.json",
            "web/node_modules/x/package-lock.json",
            "tools/requirements-dev.txt",
            "README.md",
        ];
        assert_eq!(
            dependency_files(paths, &[]),
            [
                "Cargo.toml",
                "tools/requirements-dev.txt",
                "web/package-lock.json",
                "web/package.json"
            ]
        );
        let named = ["deps.txt".to_owned()];
        assert_eq!(dependency_files(paths, &named), ["Cargo.toml", "deps.txt"]);
    }

    #[test]
    fn files_of_every_package_manager_are_recognised() {
        let lockfiles = [
            "requirements/dev.txt",
            "api/requirements-test.txt",
            "services/a/pom.xml",
            "app/build.gradle.kts",
            "src/App/App.csproj",
            "mix.exs",
            "mix.lock",
            "environment.yml",
            "go.work.sum",
        ];
        assert_eq!(dependency_files(lockfiles, &[]).len(), lockfiles.len());
        let manifests = [
            "pnpm-workspace.yaml",
            ".npmrc",
            "setup.cfg",
            "go.work",
            "rust-toolchain",
            "rust-toolchain.toml",
        ];
        assert_eq!(dependency_files(manifests, &[]).len(), manifests.len());
        for other in ["notes/dev.txt", "requirements/README.md", "gradle.txt"] {
            assert_eq!(dependency_file(other), None, "{other}");
        }
        let many: Vec<String> = (0..100).map(|number| format!("{number}/go.sum")).collect();
        let paths = many.iter().map(String::as_str);
        assert_eq!(dependency_files(paths, &[]).len(), 100);
    }

    #[test]
    fn ecosystems_come_from_files_and_programs() {
        let files = ["go.sum".to_owned()];
        let command = "apt-get install -y jq && .venv/bin/pip install x; cp cargo.txt y";
        let found: Vec<String> = used_ecosystems(&files, command)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["pip", "go", "apt"]);
    }

    #[test]
    fn a_command_is_proposed_for_each_ecosystem_once() {
        let mut files = ProjectFiles::default();
        assert_eq!(propose_setup_command(&files), None);
        for name in ["package-lock.json", "yarn.lock", "go.sum"] {
            files.add_name(name);
        }
        let proposed = propose_setup_command(&files);
        assert_eq!(proposed.as_deref(), Some("npm ci && go mod download"));
    }
}
