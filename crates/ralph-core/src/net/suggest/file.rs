//! The files that name hosts.

/// How hosts are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In every URL, wherever it stands.
    Urls,
    /// In every URL outside of comments that start with `#` or `;`.
    Settings,
    /// As the first part of every name: `host/path version`.
    Modules,
}

/// A file that names hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    pub(super) form: Form,
    pub(super) reason: &'static str,
}

const NAMES: [(&str, Form, &str); 26] = [
    ("package-lock.json", Form::Urls, "packages locked by npm"),
    ("npm-shrinkwrap.json", Form::Urls, "packages locked by npm"),
    ("pnpm-lock.yaml", Form::Urls, "packages locked by pnpm"),
    ("yarn.lock", Form::Urls, "packages locked by yarn"),
    ("bun.lock", Form::Urls, "packages locked by bun"),
    ("Cargo.lock", Form::Urls, "crates locked by cargo"),
    ("poetry.lock", Form::Urls, "packages locked by poetry"),
    ("uv.lock", Form::Urls, "packages locked by uv"),
    ("pdm.lock", Form::Urls, "packages locked by pdm"),
    ("Pipfile.lock", Form::Urls, "packages locked by pipenv"),
    ("composer.lock", Form::Urls, "packages locked by composer"),
    ("Gemfile.lock", Form::Urls, "gems locked by bundler"),
    ("go.sum", Form::Modules, "modules locked by go"),
    (".npmrc", Form::Settings, "registries of npm"),
    (".yarnrc", Form::Settings, "registries of yarn"),
    (".yarnrc.yml", Form::Settings, "registries of yarn"),
    ("bunfig.toml", Form::Settings, "registries of bun"),
    ("pip.conf", Form::Settings, "indexes of pip"),
    (".pypirc", Form::Settings, "indexes of Python"),
    ("uv.toml", Form::Settings, "indexes of uv"),
    ("Pipfile", Form::Settings, "indexes of pipenv"),
    ("sources.list", Form::Settings, "package sources of apt"),
    ("NuGet.Config", Form::Urls, "package sources of NuGet"),
    ("settings.xml", Form::Urls, "repositories of Maven"),
    (
        "gradle.properties",
        Form::Settings,
        "repositories of Gradle",
    ),
    (".gitmodules", Form::Settings, "submodules of git"),
];

/// Returns what a file is, by its path.
pub(super) fn kind(path: &str) -> Option<File> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = NAMES.iter().find(|(known, _, _)| *known == name);
    if let Some(&(_, form, reason)) = known {
        return Some(File { form, reason });
    }
    let is_in = |folder: &str| {
        let parent = path.strip_suffix(name)?.strip_suffix('/')?;
        (parent == folder || parent.ends_with(&format!("/{folder}"))).then_some(())
    };
    let settings = |reason| {
        Some(File {
            form: Form::Settings,
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
