//! `models.yaml` in layers: the built-in profiles, or those of the user's file and the
//! repository's.

use ralph_core::id::Digest;
use ralph_core::profile::ModelChoice;
use ralph_core::trust::{
    TrustAuthority, TrustFile, TrustProposal, TrustRule, UserOnlyValue, judge, rule,
};
use ralph_guest::available;
use ralph_providers::model::http::ModelEndpoint;
use serde_json::Value;

use super::error::{self, ConfigFileError};
use super::layered_settings::display_value;
use super::layers::{ConfigLayers, Layered, TrustFindings};
use super::models::{KeyDestinations, ModelProfile, ModelProfiles, ModelsFile, origin};
use super::prices::{MAX_PRICE_BYTES, PriceFile};
use super::project_file::ProjectFile;
use super::regular_file::read_regular;

/// Returns the effective profiles of a directory. Omits profiles of the repository's file that lack
/// a required approval.
pub fn load_profiles(layers: &ConfigLayers) -> Result<Layered<ModelProfiles>, ConfigFileError> {
    let own = user_profiles(layers)?;
    let Some(file) = layers.repository_file(TrustFile::Models) else {
        let mut value = match own {
            Some(profiles) => profiles,
            None => into_profiles(ModelProfiles::built_in()?),
        };
        value.stored_prices = layers.stored_prices();
        let findings = TrustFindings::default();
        return Ok(Layered { value, findings });
    };
    let requested = ModelProfiles::parse(&file.path, &file.read()?)?;
    let mut merge = ProfileMerge {
        layers,
        effective: match &own {
            Some(own) => own.clone(),
            None => into_profiles(ModelProfiles::built_in()?),
        },
        file: &file,
        findings: TrustFindings::default(),
    };
    let mut all = own.unwrap_or_else(|| ModelProfiles {
        by_name: std::collections::BTreeMap::new(),
        ..merge.effective.clone()
    });
    for (name, profile) in requested.profiles {
        if all.by_name.contains_key(&name) {
            merge.keep_user_profile(&name, &profile);
            continue;
        }
        match merge.refusal(&name, &profile) {
            None => drop(all.by_name.insert(name, profile)),
            Some(why) => drop(all.withheld.insert(name, why)),
        }
    }
    if let Some(path) = requested.price_file {
        let folder = file.path.parent().unwrap_or(&file.root);
        let path = folder.join(path);
        let root = file.root.clone();
        if merge.accepts_prices(&path) {
            all.price_file = Some(PriceFile { path, root });
        }
    }
    all.source = Some(file.path.clone());
    all.stored_prices = layers.stored_prices();
    Ok(Layered {
        value: all,
        findings: merge.findings,
    })
}

/// Returns whether the user's own file sends the key in a variable to an address.
pub fn user_sends_key(
    layers: &ConfigLayers,
    variable: &str,
    base: &str,
) -> Result<bool, ConfigFileError> {
    let own = user_profiles(layers)?;
    Ok(own.is_some_and(|own| own.sends_key(variable, base)))
}

/// Returns the profiles of the user's file, if it exists.
fn user_profiles(layers: &ConfigLayers) -> Result<Option<ModelProfiles>, ConfigFileError> {
    let Some(path) = layers.user_file(TrustFile::Models)? else {
        return Ok(None);
    };
    let mut file = ModelProfiles::parse(&path, &error::read_user_file(&path)?)?;
    let folder = path.parent().unwrap_or(&path);
    let price_file = file.price_file.take().map(|price| PriceFile {
        path: folder.join(price),
        root: "/".into(),
    });
    let mut user_keys = KeyDestinations::default();
    for (name, profile) in &file.profiles {
        if let Ok(endpoint) = ModelEndpoint::for_choice(&profile.to_model_choice(name))
            && let Some(base) = endpoint
                .chosen_base
                .as_ref()
                .or(endpoint.default_base.as_ref())
        {
            user_keys.add(base, &endpoint.key_variables);
        }
    }
    Ok(Some(ModelProfiles {
        price_file,
        source: Some(path),
        user_keys,
        ..into_profiles(file)
    }))
}

fn into_profiles(file: ModelsFile) -> ModelProfiles {
    ModelProfiles {
        by_name: file.profiles,
        price_file: None,
        stored_prices: None,
        source: None,
        withheld: std::collections::BTreeMap::new(),
        user_keys: KeyDestinations::default(),
    }
}

/// Compares the profiles of a repository's file with the effective ones without it.
struct ProfileMerge<'a> {
    layers: &'a ConfigLayers,
    effective: ModelProfiles,
    file: &'a ProjectFile,
    findings: TrustFindings,
}

impl ProfileMerge<'_> {
    /// Records that a profile is not used because the user's file has one of the same name.
    fn keep_user_profile(&mut self, name: &str, profile: &ModelProfile) {
        if self.effective.by_name.get(name) != Some(profile) {
            self.findings.notes.push(format!(
                "`profiles.{name}` of `{}` is not used: your own models.yaml has a profile of that name",
                self.file.display_name()
            ));
        }
    }

    /// Returns and records why a profile cannot be used as it is. Returns `None` if it can be used.
    fn refusal(&mut self, name: &str, profile: &ModelProfile) -> Option<String> {
        let known = self.effective.by_name.get(name);
        if known == Some(profile) {
            return None;
        }
        // A value applies to one model at one address: the price of a free model says nothing about
        // another model.
        let known = known.filter(|known| {
            let address = |profile: &ModelProfile| profile.api_base.as_deref().map(origin);
            known.litellm_model == profile.litellm_model && address(known) == address(profile)
        });
        let known = known.map(profile_fields);
        let fields = profile_fields(profile);
        let file = self.file.display_name();
        let mut refusal = None;
        for (field, value) in fields.as_object().into_iter().flatten() {
            if value.is_null() || self.is_provider_default(field, name, profile) {
                continue;
            }
            let key = format!("profiles.{name}.{field}");
            let known = known.as_ref().and_then(|known| known.get(field));
            let (authority, rule) = judge(TrustFile::Models, &key, value, known);
            let why = match (authority, rule) {
                (TrustAuthority::Harmless, _) => None,
                (TrustAuthority::Proposal, Some(rule)) => {
                    let is_approved = self.is_approved(&key, &display_value(value), rule);
                    (!is_approved).then(|| format!("`{key}` of `{file}` needs your approval"))
                }
                (TrustAuthority::UserOnly | TrustAuthority::Proposal, rule) => {
                    self.report_overreach(&key, value, rule);
                    Some(format!("`{file}` may not set `{key}`"))
                }
            };
            refusal = refusal.or(why);
        }
        refusal
    }

    /// Returns whether a value only repeats the default of the provider or of the user's file.
    fn is_provider_default(&self, field: &str, name: &str, profile: &ModelProfile) -> bool {
        let default_choice = ModelChoice {
            api_base: None,
            api_key_env: None,
            ..profile.to_model_choice(name)
        };
        // An unknown provider has no defaults.
        let defaults = available(ModelEndpoint::for_choice(&default_choice));
        let default_base = defaults
            .as_ref()
            .and_then(|defaults| defaults.default_base.as_deref());
        let base = profile.api_base.as_deref().or(default_base);
        let is_default_base = base.is_some_and(|base| {
            default_base.is_some_and(|default| origin(base) == origin(default))
        });
        let users = &self.effective.user_keys;
        match field {
            "api_base" => is_default_base || base.is_some_and(|base| users.has_address(base)),
            "api_key_env" => {
                let variable = profile.api_key_env.as_deref().unwrap_or_default();
                let is_default_key = defaults.as_ref().is_some_and(|defaults| {
                    defaults.key_variables.iter().any(|known| known == variable)
                });
                is_default_base && is_default_key
                    || base.is_some_and(|base| self.effective.sends_key(variable, base))
            }
            _ => false,
        }
    }

    /// Returns whether the prices of a file can be used: the user approved exactly its content.
    fn accepts_prices(&mut self, path: &std::path::Path) -> bool {
        let Some(rule) = rule(TrustFile::Models, "price_file", None) else {
            return false;
        };
        let content = read_regular(path, &self.file.root, MAX_PRICE_BYTES).map_or_else(
            |error| error.to_string(),
            |file| Digest::compute(&file.bytes).to_string(),
        );
        let shown = path.strip_prefix(&self.file.root).unwrap_or(path);
        let value = format!("{} ({content})", shown.display());
        self.is_approved("price_file", &value, rule)
    }

    fn is_approved(&mut self, key: &str, value: &str, rule: &TrustRule) -> bool {
        let proposal = TrustProposal::new(self.file.display_name(), key, value, rule);
        let is_approved = self.layers.approvals().covers(&proposal);
        self.findings.proposals.push(proposal);
        is_approved
    }

    fn report_overreach(&mut self, key: &str, value: &Value, rule: Option<&'static TrustRule>) {
        if let Some(rule) = rule {
            let value = display_value(value);
            let overreach = UserOnlyValue::new(
                self.file.display_name(),
                TrustFile::Models,
                key,
                &value,
                rule,
            );
            self.findings.overreach.push(overreach);
        }
    }
}

fn profile_fields(profile: &ModelProfile) -> Value {
    serde_json::to_value(profile).expect("a profile is valid JSON")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::Environment;

    #[test]
    fn every_key_is_in_the_table() {
        let wrong =
            "profiles:\n  a:\n    litellm_model: x\n    max_output_tokens: 1\n    nothing: 1\n";
        let error = ModelProfiles::parse(Path::new("m.yaml"), wrong)
            .unwrap_err()
            .to_string();
        let (_, fields) = error.split_once("expected one of ").unwrap();
        let fields: Vec<String> = fields
            .split(", ")
            .map(|field| format!("profiles.name.{field}"))
            .chain(["price_file".to_owned()])
            .collect();
        assert!(fields.len() > 10, "{fields:?}");
        for field in fields {
            assert!(rule(TrustFile::Models, &field, None).is_some(), "{field}");
        }
    }

    fn layered(own: &str, repository: &str) -> Layered<ModelProfiles> {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir_all(project.join("config")).unwrap();
        if !own.is_empty() {
            fs::write(root.path().join("models.yaml"), own).unwrap();
        }
        fs::write(project.join("config/models.yaml"), repository).unwrap();
        let user = root.path().display().to_string();
        let environment = Environment::for_test(&[("RALPH_CONFIG_DIR", &user)]);
        load_profiles(&ConfigLayers::for_directory(&environment, &project)).unwrap()
    }

    fn profile(more: &str) -> String {
        format!(
            "profiles:\n  theirs:\n    litellm_model: zai/glm-4.7\n    max_output_tokens: 10\n{more}"
        )
    }

    fn names(profiles: &ModelProfiles) -> Vec<&str> {
        profiles.iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_repository_names_models_of_known_providers_and_no_keys() {
        for (own, more, usable, proposed, refused) in [
            ("", "", true, "", ""),
            ("", "    api_key_env: ZAI_API_KEY\n", true, "", ""),
            ("", "    api_base: https://api.z.ai/v5\n", true, "", ""),
            (
                "",
                "    api_key_env: GITHUB_TOKEN\n",
                false,
                "",
                "profiles.theirs.api_key_env",
            ),
            (
                "",
                "    api_base: https://evil.example\n",
                false,
                "profiles.theirs.api_base",
                "",
            ),
            (
                "",
                "    api_base: https://evil.example\n    api_key_env: ZAI_API_KEY\n",
                false,
                "profiles.theirs.api_base",
                "profiles.theirs.api_key_env",
            ),
            (
                "profiles:\n  mine:\n    litellm_model: acme/one\n    max_output_tokens: 1\n    api_base: https://acme.example/v1\n    api_key_env: ACME_KEY\n",
                "    api_base: https://acme.example/v2\n    api_key_env: ACME_KEY\n",
                true,
                "",
                "",
            ),
            (
                "profiles:\n  mine:\n    litellm_model: acme/one\n    max_output_tokens: 1\n    api_base: https://acme.example/v1\n    api_key_env: ACME_KEY\n",
                "    api_base: https://acme.example/v2\n    api_key_env: GITHUB_TOKEN\n",
                false,
                "",
                "profiles.theirs.api_key_env",
            ),
        ] {
            let Layered { value, findings } = layered(own, &profile(more));
            assert_eq!(names(&value).contains(&"theirs"), usable, "{more}");
            let proposed_keys: Vec<&str> =
                findings.proposals.iter().map(|p| p.key.as_str()).collect();
            assert_eq!(proposed_keys.join(" "), proposed, "{more}");
            let refused_keys: Vec<&str> =
                findings.overreach.iter().map(|o| o.key.as_str()).collect();
            assert_eq!(refused_keys.join(" "), refused, "{more}");
        }
    }

    #[test]
    fn the_file_that_init_writes_asks_for_nothing() {
        let Layered { value, findings } = layered("", ralph_core::templates::MODELS);
        assert_eq!(findings, TrustFindings::default());
        assert_eq!(
            names(&value),
            ["codex-like", "default-cheap", "strong-doctor"]
        );
    }

    #[test]
    fn the_users_profiles_stay_beside_a_repositorys() {
        let mine = profile("").replace("theirs", "mine");
        let Layered { value, .. } = layered(&mine, &profile(""));
        assert_eq!(names(&value), ["mine", "theirs"]);
    }

    #[test]
    fn a_repository_does_not_replace_a_profile_of_the_user() {
        let free = |model: &str| {
            format!(
                "profiles:\n  local:\n    litellm_model: {model}\n    max_output_tokens: 10\n    \
                 input_cost_per_token: 0\n    output_cost_per_token: 0\n"
            )
        };
        let (mine, theirs) = (free("ollama/qwen3"), free("anthropic/claude-opus-4-5"));
        let Layered { value, findings } = layered(&mine, &theirs);
        let model = &value.resolve("local").unwrap().litellm_model;
        assert_eq!(model, "ollama/qwen3");
        assert_eq!(
            findings.notes,
            [
                "`profiles.local` of `config/models.yaml` is not used: your own models.yaml has a profile of that name"
            ]
        );
        let Layered { findings, .. } = layered(&mine, &mine);
        assert_eq!(findings, TrustFindings::default());
    }

    #[test]
    fn a_price_in_force_is_that_of_one_model_at_one_address() {
        let prices = "    input_cost_per_token: 0\n    output_cost_per_token: 0\n";
        let known = ModelProfiles::parse(Path::new("m.yaml"), &profile(prices)).unwrap();
        let environment = Environment::for_test(&[]);
        let root = tempfile::tempdir().unwrap();
        let file = ProjectFile {
            path: root.path().join("config/models.yaml"),
            root: root.path().to_owned(),
        };
        for (change, needs_approval) in [
            (("max_output_tokens: 10", "max_output_tokens: 99"), false),
            (("zai/glm-4.7", "anthropic/claude-opus-4-5"), true),
            (
                ("    input", "    api_base: https://api.z.ai/v5\n    input"),
                true,
            ),
        ] {
            let mut merge = ProfileMerge {
                layers: &ConfigLayers::for_directory(&environment, root.path()),
                effective: into_profiles(
                    ModelProfiles::parse(Path::new("m.yaml"), &profile(prices)).unwrap(),
                ),
                file: &file,
                findings: TrustFindings::default(),
            };
            let text = profile(prices).replace(change.0, change.1);
            let requested = ModelProfiles::parse(Path::new("m.yaml"), &text).unwrap();
            assert_ne!(requested.profiles, known.profiles, "{change:?}");
            let refusal = merge.refusal("theirs", &requested.profiles["theirs"]);
            assert_eq!(refusal.is_some(), needs_approval, "{change:?}");
            let count = if needs_approval { 2 } else { 0 };
            assert_eq!(merge.findings.proposals.len(), count, "{change:?}");
        }
    }

    #[test]
    fn a_profile_that_is_not_allowed_is_not_reported_as_missing() {
        let Layered { value, .. } = layered("", &profile("    api_key_env: GITHUB_TOKEN\n"));
        let error = value.resolve("theirs").unwrap_err();
        assert_eq!(
            error.withheld.as_deref(),
            Some("`config/models.yaml` may not set `profiles.theirs.api_key_env`")
        );
        let Layered { value, .. } = layered("", &profile("    api_base: https://evil.example\n"));
        let error = value.resolve("theirs").unwrap_err();
        assert_eq!(
            error.withheld.as_deref(),
            Some("`profiles.theirs.api_base` of `config/models.yaml` needs your approval")
        );
        assert_eq!(value.resolve("nope").unwrap_err().withheld, None);
    }
}
