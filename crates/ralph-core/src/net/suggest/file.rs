//! The known files that contain hosts.

/// The notation of hosts in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostFileFormat {
    /// All URLs, anywhere in the file.
    Urls,
    /// All URLs outside comments, which start with `#` or `;`.
    Settings,
    /// The first component of each module: `host/path version`.
    Modules,
}

/// A file that contains hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostFile {
    pub(super) format: HostFileFormat,
    pub(super) reason: &'static str,
}

const HOST_FILES: [(&str, HostFileFormat, &str); 26] = [
    (
        "package-lock.json",
        HostFileFormat::Urls,
        "packages locked by npm",
    ),
    (
        "npm-shrinkwrap.json",
        HostFileFormat::Urls,
        "packages locked by npm",
    ),
    (
        "pnpm-lock.yaml",
        HostFileFormat::Urls,
        "packages locked by pnpm",
    ),
    ("yarn.lock", HostFileFormat::Urls, "packages locked by yarn"),
    ("bun.lock", HostFileFormat::Urls, "packages locked by bun"),
    ("Cargo.lock", HostFileFormat::Urls, "crates locked by cargo"),
    (
        "poetry.lock",
        HostFileFormat::Urls,
        "packages locked by poetry",
    ),
    ("uv.lock", HostFileFormat::Urls, "packages locked by uv"),
    ("pdm.lock", HostFileFormat::Urls, "packages locked by pdm"),
    (
        "Pipfile.lock",
        HostFileFormat::Urls,
        "packages locked by pipenv",
    ),
    (
        "composer.lock",
        HostFileFormat::Urls,
        "packages locked by composer",
    ),
    (
        "Gemfile.lock",
        HostFileFormat::Urls,
        "gems locked by bundler",
    ),
    ("go.sum", HostFileFormat::Modules, "modules locked by go"),
    (".npmrc", HostFileFormat::Settings, "registries of npm"),
    (".yarnrc", HostFileFormat::Settings, "registries of yarn"),
    (
        ".yarnrc.yml",
        HostFileFormat::Settings,
        "registries of yarn",
    ),
    ("bunfig.toml", HostFileFormat::Settings, "registries of bun"),
    ("pip.conf", HostFileFormat::Settings, "indexes of pip"),
    (".pypirc", HostFileFormat::Settings, "indexes of Python"),
    ("uv.toml", HostFileFormat::Settings, "indexes of uv"),
    ("Pipfile", HostFileFormat::Settings, "indexes of pipenv"),
    (
        "sources.list",
        HostFileFormat::Settings,
        "package sources of apt",
    ),
    (
        "NuGet.Config",
        HostFileFormat::Urls,
        "package sources of NuGet",
    ),
    (
        "settings.xml",
        HostFileFormat::Urls,
        "repositories of Maven",
    ),
    (
        "gradle.properties",
        HostFileFormat::Settings,
        "repositories of Gradle",
    ),
    (".gitmodules", HostFileFormat::Settings, "submodules of git"),
];

/// Classifies a file by its path.
pub(super) fn host_file(path: &str) -> Option<HostFile> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = HOST_FILES.iter().find(|(known, _, _)| *known == name);
    if let Some(&(_, format, reason)) = known {
        return Some(HostFile { format, reason });
    }
    let is_in = |folder: &str| {
        let parent = path.strip_suffix(name)?.strip_suffix('/')?;
        (parent == folder || parent.ends_with(&format!("/{folder}"))).then_some(())
    };
    let settings = |reason| {
        Some(HostFile {
            format: HostFileFormat::Settings,
            reason,
        })
    };
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match (name, extension) {
        ("config.toml" | "config", _) if is_in(".cargo").is_some() => {
            settings("registries of cargo")
        }
        (_, "list" | "sources") if is_in("sources.list.d").is_some() => {
            settings("package sources of apt")
        }
        (_, "txt" | "in") if name.starts_with("requirements") => settings("requirements of pip"),
        (_, "txt") if is_in("requirements").is_some() => settings("requirements of pip"),
        ("pyproject.toml", _) => settings("indexes and sources of Python"),
        _ => None,
    }
}
