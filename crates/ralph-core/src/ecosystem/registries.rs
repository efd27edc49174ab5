//! The registries that the configuration of a package manager names.

use super::dependencies::PackageEcosystem;
use crate::net::suggest;

impl PackageEcosystem {
    /// Returns the files of the user's configuration that may name registries: relative to the home
    /// directory, or absolute.
    pub fn settings_files(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &[".npmrc", ".yarnrc", ".yarnrc.yml", ".bunfig.toml"],
            Self::Pip => &[
                ".config/pip/pip.conf",
                ".pip/pip.conf",
                ".config/uv/uv.toml",
                "/etc/pip.conf",
            ],
            Self::Cargo => &[".cargo/config.toml", ".cargo/config"],
            Self::Go => &[".config/go/env"],
            Self::Gem => &[".bundle/config", ".gemrc"],
            Self::Composer => &[".config/composer/config.json", ".composer/config.json"],
            Self::Apt => &["/etc/apt/sources.list", "/etc/apt/sources.list.d"],
        }
    }

    /// Returns the variables of the environment that may name registries.
    pub fn settings_variables(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &[
                "NPM_CONFIG_REGISTRY",
                "npm_config_registry",
                "YARN_NPM_REGISTRY_SERVER",
            ],
            Self::Pip => &[
                "PIP_INDEX_URL",
                "PIP_EXTRA_INDEX_URL",
                "UV_DEFAULT_INDEX",
                "UV_INDEX_URL",
            ],
            Self::Go => &["GOPROXY"],
            Self::Cargo | Self::Gem | Self::Composer | Self::Apt => &[],
        }
    }

    /// Returns the words of which a setting that names a registry contains one.
    fn setting_words(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["registry"],
            Self::Pip => &["index", "find-links"],
            Self::Cargo => &["registry", "index"],
            Self::Go => &["goproxy"],
            Self::Gem => &["mirror", "source", "- http"],
            Self::Composer => &["url"],
            Self::Apt => &["deb", "uris"],
        }
    }

    /// Returns the registries in the text of a settings file, in allowlist syntax. Credentials in
    /// addresses are left out.
    pub fn registries_in_file(self, text: &str) -> Vec<String> {
        let mut selected = String::new();
        let mut is_registry = false;
        for line in text.lines() {
            // An indented line continues the setting above it.
            if !line.starts_with([' ', '\t']) || line.contains(['=', ':']) {
                let setting = line.to_ascii_lowercase();
                let words = self.setting_words();
                let is_continued = line.starts_with([' ', '\t']) && is_registry;
                is_registry = is_continued || words.iter().any(|word| setting.contains(word));
            }
            if is_registry {
                selected.push_str(line);
                selected.push('\n');
            }
        }
        suggest::setting_hosts(&selected)
    }

    /// Returns the registries in the value of a variable, such as `https://a.example,direct`.
    pub fn registries_in_variable(value: &str) -> Vec<String> {
        suggest::setting_hosts(&value.replace([',', '|', ' '], "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_read_from_the_settings_of_package_managers() {
        let npm = "proxy=http://proxy.example:3128\nregistry=https://npm.example.com/\n\
                   @own:registry = https://own.example.com:8443/x\n//npm.example.com/:_authToken=abc\n\
                   # registry=https://old.example.com\n";
        let pip = "[global]\nindex-url = https://user:secret@pip.example.com/simple\n\
                   extra-index-url =\n    https://more.example.com/simple\ntimeout = 60\n";
        let cargo = "[source.mirror]\nregistry = \"sparse+https://crates.example.com/index/\"\n\
                     [http]\nproxy = \"http://proxy.example:3128\"\n";
        for (ecosystem, text, expected) in [
            (
                PackageEcosystem::Npm,
                npm,
                vec!["npm.example.com", "own.example.com:8443"],
            ),
            (
                PackageEcosystem::Pip,
                pip,
                vec!["more.example.com", "pip.example.com"],
            ),
            (PackageEcosystem::Cargo, cargo, vec!["crates.example.com"]),
            (
                PackageEcosystem::Apt,
                "deb http://apt.example.com/debian stable main\n",
                vec!["apt.example.com"],
            ),
        ] {
            assert_eq!(ecosystem.registries_in_file(text), expected, "{ecosystem}");
        }
        let found = PackageEcosystem::registries_in_variable("https://go.example.com,direct");
        assert_eq!(found, ["go.example.com"]);
    }
}
