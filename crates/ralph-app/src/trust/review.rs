//! Collects the proposals of a repository's files and sorts them by approval.

use std::path::Path;

use ralph_core::id::{CommitId, Digest};
use ralph_core::image::{ImageSource, ProjectConfig, ProjectConfigFileKind};
use ralph_core::task::Contract;
use ralph_core::trust::{
    TrustAuthority, TrustFile, TrustProposal, TrustScope, UserOnlyValue, judge, rule,
};
use ralph_engine::durable::StoreError;
use ralph_engine::git::HostGit;
use serde_json::Value;

use crate::config::{
    Approvals, ConfigLayers, Settings, TrustFindings, load_agents, load_profiles, load_settings,
    project_root,
};
use crate::error::AppError;

/// The parts of the configuration that affect a run.
#[derive(Debug, Clone, Copy)]
pub struct ReviewScope {
    /// The images and the network of containers.
    pub containers: bool,
    pub profiles: bool,
    pub agents: bool,
}

impl ReviewScope {
    /// All parts, for a review of the whole repository.
    pub const ALL: Self = Self {
        containers: true,
        profiles: true,
        agents: true,
    };

    fn includes(self, scope: TrustScope) -> bool {
        match scope {
            TrustScope::Every => true,
            TrustScope::Containers => self.containers,
            TrustScope::Profiles => self.profiles,
            TrustScope::Agents => self.agents,
        }
    }
}

/// The sorted proposals of a repository's files.
#[derive(Debug)]
pub struct TrustReview {
    /// Proposals without an approval.
    pub pending: Vec<TrustProposal>,
    pub approved: Vec<TrustProposal>,
    /// Values that only the user's configuration may set.
    pub overreach: Vec<UserOnlyValue>,
    /// Values that are not used because the user chose a stronger one.
    pub notes: Vec<String>,
    approvals: Approvals,
}

impl TrustReview {
    /// Reads the configuration files of a directory's repository.
    pub fn from_files(layers: &ConfigLayers, scope: ReviewScope) -> Result<Self, AppError> {
        let mut findings = load_settings(layers)?.findings;
        if scope.profiles {
            findings.extend(load_profiles(layers)?.findings);
        }
        if scope.agents {
            findings.extend(load_agents(layers)?.findings);
        }
        let mut review = Self {
            pending: Vec::new(),
            approved: Vec::new(),
            overreach: Vec::new(),
            notes: Vec::new(),
            approvals: layers.approvals().clone(),
        };
        review.add(findings, scope);
        Ok(review)
    }

    /// Adds the proposals of a task file. `repository` is the one that the task file chooses,
    /// unless the user named it.
    pub fn add_task(
        &mut self,
        file: &Path,
        contract: &Contract,
        repository: Option<&Path>,
        (layers, scope): (&ConfigLayers, ReviewScope),
    ) -> Result<(), AppError> {
        let settings = load_settings(layers)?.value;
        let project = project_root(file.parent().unwrap_or(file));
        let name = file
            .strip_prefix(project)
            .unwrap_or(file)
            .display()
            .to_string();
        let mut proposals = larger_resources(&name, contract, &settings);
        let project = project
            .canonicalize()
            .unwrap_or_else(|_| project.to_owned());
        if let Some(repository) = repository.filter(|repository| **repository != project)
            && contract.repo_url.is_some()
            && let Some(rule) = rule(TrustFile::Task, "repo_url", None)
        {
            let value = repository.display().to_string();
            proposals.push(TrustProposal::new(&*name, "repo_url", &value, rule));
        }
        let findings = TrustFindings {
            proposals,
            ..TrustFindings::default()
        };
        self.add(findings, scope);
        Ok(())
    }

    /// Adds the image that a repository's `.agent-loop` asks for at a commit. Building the image
    /// reports an unreadable directory.
    pub async fn add_image(
        &mut self,
        repository: &Path,
        commit: &CommitId,
        (git, scope): (&HostGit, ReviewScope),
    ) {
        if !scope.containers {
            return;
        }
        match git.project_config(repository, commit).await {
            Ok(config) => self.add_config(&config, scope),
            Err(error) => tracing::debug!(%error, "the review leaves out `.agent-loop`"),
        }
    }

    /// Adds the image that an `.agent-loop` asks for.
    pub fn add_config(&mut self, config: &ProjectConfig, scope: ReviewScope) {
        let findings = TrustFindings {
            proposals: image_proposal(config).into_iter().collect(),
            ..TrustFindings::default()
        };
        self.add(findings, scope);
    }

    fn add(&mut self, findings: TrustFindings, scope: ReviewScope) {
        let proposals = findings.proposals.into_iter();
        for proposal in proposals.filter(|proposal| scope.includes(proposal.scope)) {
            if self.approvals.covers(&proposal) {
                self.approved.push(proposal);
            } else {
                self.pending.push(proposal);
            }
        }
        let overreach = findings.overreach.into_iter();
        self.overreach
            .extend(overreach.filter(|overreach| scope.includes(overreach.scope)));
        self.notes.extend(findings.notes);
    }

    /// Returns the root of the repository.
    pub fn repository(&self) -> &str {
        self.approvals.repository()
    }

    /// Returns whether nothing prevents the start of a run.
    pub fn is_clear(&self) -> bool {
        self.pending.is_empty() && self.overreach.is_empty()
    }

    /// Returns the earlier approved values of a proposal's key.
    pub fn previously_approved(&self, proposal: &TrustProposal) -> Vec<&str> {
        self.approvals.earlier_values(proposal)
    }

    /// Approves all pending proposals.
    pub fn approve(&mut self) -> Result<(), StoreError> {
        self.approved.append(&mut self.pending);
        self.approvals.approve(&self.approved)
    }
}

/// Returns the resources of a task that exceed the effective settings.
fn larger_resources(name: &str, contract: &Contract, settings: &Settings) -> Vec<TrustProposal> {
    let resources = contract.sandbox_resources.unwrap_or_default();
    let configured = &settings.sandbox.resources;
    let gibibytes = |bytes: u64| Value::from(bytes >> 30);
    let sizes = [
        ("vcpu", resources.vcpu, Value::from(configured.cpus.count())),
        (
            "memory_gib",
            resources.memory_gib,
            gibibytes(configured.memory.bytes()),
        ),
        (
            "disk_gib",
            resources.disk_gib,
            gibibytes(configured.disk.bytes()),
        ),
    ];
    let larger = sizes.into_iter().filter_map(|(field, size, limit)| {
        let (key, size) = (format!("sandbox_resources.{field}"), size?);
        let judged = judge(TrustFile::Task, &key, &Value::from(size), Some(&limit));
        match judged {
            (TrustAuthority::Proposal, Some(rule)) => {
                Some(TrustProposal::new(name, &key, &size.to_string(), rule))
            }
            (TrustAuthority::Proposal | TrustAuthority::Harmless | TrustAuthority::UserOnly, _) => {
                None
            }
        }
    });
    larger.collect()
}

/// Returns the proposal to build an image from an `.agent-loop`, with the digest of all its input.
fn image_proposal(config: &ProjectConfig) -> Option<TrustProposal> {
    let kind = config.image_source()?;
    let path = kind.file_name();
    let value = match kind {
        ImageSource::Dependencies => {
            let list = &config.files.get(path)?.bytes;
            let text = String::from_utf8_lossy(list);
            let packages = text.lines().map(str::trim);
            let packages = packages.filter(|line| !line.is_empty() && !line.starts_with('#'));
            packages.collect::<Vec<_>>().join(" ")
        }
        ImageSource::Dockerfile => content_digest(config),
    };
    let rule = rule(TrustFile::AgentLoop, path, None)?;
    let file = format!("{}/{path}", ProjectConfig::DIRECTORY);
    Some(TrustProposal::new(file, path, &value, rule))
}

/// Returns the unapproved proposal of an `.agent-loop`, if it has one.
pub fn unapproved_image(config: &ProjectConfig, layers: &ConfigLayers) -> Option<TrustProposal> {
    image_proposal(config).filter(|proposal| !layers.approvals().covers(proposal))
}

/// Returns the digest of all files, with their names and kinds.
fn content_digest(config: &ProjectConfig) -> String {
    let mut all = Vec::new();
    for (path, file) in &config.files {
        let kind = match file.kind {
            ProjectConfigFileKind::Regular => "file",
            ProjectConfigFileKind::Executable => "program",
            ProjectConfigFileKind::Link => "link",
        };
        let digest = Digest::compute(&file.bytes);
        all.extend(format!("{kind} {digest} {path}\0").into_bytes());
    }
    Digest::compute(&all).to_string()
}
