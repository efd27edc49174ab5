//! Git commands that contact a source host over HTTPS.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use ralph_core::id::CommitId;
use ralph_core::ports::{GitCredential, GitLogin};
use tokio::process::Command;

use super::askpass::{AskpassServer, SOCKET_VARIABLE};
use super::program::{HostGit, successful_stdout};
use super::{GitError, HostRepo, bounded};

/// The scheme of the addresses of source hosts.
const SCHEME: &str = "https://";

/// Settings of commands that contact a host. No program of the user learns the credential, and a
/// redirect never leads to another host in the middle of a transfer. A connection without data for
/// five minutes ends.
const SETTINGS: [&str; 12] = [
    "-c",
    "credential.helper=",
    "-c",
    "http.followRedirects=initial",
    "-c",
    "http.lowSpeedLimit=1",
    "-c",
    "http.lowSpeedTime=300",
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
];

/// The connection of git to a source host.
#[derive(Clone)]
pub struct RemoteTransport {
    /// The host, with its port if that is not 443.
    pub authority: String,
    /// `None` for a host that is used without a credential.
    pub credential: Option<Arc<dyn GitCredential>>,
    /// The program that git starts for a credential: ralph itself.
    pub askpass: PathBuf,
    /// The directory for sockets.
    pub directory: PathBuf,
    /// The variables with proxies and certificates.
    pub variables: BTreeMap<String, String>,
}

impl RemoteTransport {
    fn serves(&self, url: &str) -> bool {
        let rest = url.strip_prefix(SCHEME);
        rest.and_then(|rest| rest.strip_prefix(&self.authority))
            .is_some_and(|path| path.starts_with('/'))
    }
}

impl fmt::Debug for RemoteTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTransport")
            .field("authority", &self.authority)
            .field("askpass", &self.askpass)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// The branches of a repository, without their objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteBranches {
    /// The name of the default branch, if the repository has commits.
    pub default: Option<String>,
    /// The commits of the default branch and of the selected branches, by name.
    pub heads: BTreeMap<String, CommitId>,
}

impl HostGit {
    /// Returns the default branch of a repository on a source host, and its branches that match
    /// patterns such as `ralph/*`.
    pub async fn remote_branches(
        &self,
        url: &str,
        patterns: &[&str],
    ) -> Result<RemoteBranches, GitError> {
        let patterns: Vec<String> = patterns
            .iter()
            .map(|pattern| format!("refs/heads/{pattern}"))
            .collect();
        let mut args = vec!["ls-remote", "--quiet", "--symref", url, "HEAD"];
        args.extend(patterns.iter().map(String::as_str));
        // Outside of any repository, whose configuration could change the address.
        let command = || self.command(std::path::Path::new("/"));
        let text = self.run_remote(command, url, &args).await?;
        let mut branches = RemoteBranches::default();
        let mut head = None;
        for line in text.lines() {
            let Some((value, name)) = line.split_once('\t') else {
                continue;
            };
            if let Some(target) = value.strip_prefix("ref: refs/heads/") {
                branches.default = Some(target.to_owned());
            } else if name == "HEAD" {
                head = CommitId::parse(value);
            } else if let Some(branch) = name.strip_prefix("refs/heads/")
                && let Some(commit) = CommitId::parse(value)
            {
                branches.heads.insert(branch.to_owned(), commit);
            }
        }
        if let (Some(default), Some(head)) = (&branches.default, head) {
            branches.heads.insert(default.clone(), head);
        }
        Ok(branches)
    }

    /// Runs a command with access to the host of an address. If the host rejects the credential, the
    /// command runs once more with a renewed one.
    async fn run_remote(
        &self,
        command: impl Fn() -> Command,
        url: &str,
        args: &[&str],
    ) -> Result<String, GitError> {
        let name = args.first().copied().unwrap_or_default();
        let Some(transport) = self.transport().filter(|transport| transport.serves(url)) else {
            let output = bounded::output(command().args(args), name, b"").await?;
            return successful_stdout(name, &output);
        };
        let Some(credential) = &transport.credential else {
            return self.run_with_login(command(), transport, None, args).await;
        };
        let login = credential.login().await.map_err(GitError::Login)?;
        let run = self.run_with_login(command(), transport, Some(login), args);
        match run.await {
            Err(GitError::Unauthorized { .. }) => {
                let login = credential.renew().await.map_err(GitError::Login)?;
                self.run_with_login(command(), transport, Some(login), args)
                    .await
            }
            ended => ended,
        }
    }

    async fn run_with_login(
        &self,
        mut command: Command,
        transport: &RemoteTransport,
        login: Option<GitLogin>,
        args: &[&str],
    ) -> Result<String, GitError> {
        let name = args.first().copied().unwrap_or_default();
        command.envs(&transport.variables).args(SETTINGS).args(args);
        let server = match login {
            Some(login) => {
                let (directory, authority) = (&transport.directory, &transport.authority);
                let server = AskpassServer::bind(directory, authority, login)?;
                command
                    .env("GIT_ASKPASS", &transport.askpass)
                    .env(SOCKET_VARIABLE, server.socket());
                Some(server)
            }
            None => None,
        };
        let output = bounded::output_with_askpass(&mut command, name, server.as_ref()).await?;
        match successful_stdout(name, &output) {
            Err(GitError::Failed { command, message }) if is_rejection(&message) => {
                Err(GitError::Unauthorized { command, message })
            }
            ended => ended,
        }
    }
}

/// Returns whether the host rejected the credential, or wants one.
fn is_rejection(message: &str) -> bool {
    ["Authentication failed for", "could not read Username for"]
        .iter()
        .any(|text| message.contains(text))
}

impl HostRepo {
    /// Runs a command that contacts a remote: another repository on this machine, or a source host.
    pub(super) async fn run_with_remote(
        &self,
        remote: &str,
        args: &[&str],
    ) -> Result<String, GitError> {
        self.git().run_remote(|| self.command(), remote, args).await
    }

    /// Returns the author of the newest foreign commit of a moved branch, and the number of foreign
    /// commits; `None` if the branch cannot be read.
    pub(super) async fn describe_foreign_commits(
        &self,
        remote: &str,
        reference: &str,
        own: &CommitId,
    ) -> Option<String> {
        /// The longest author that is reported, in characters.
        const MAX_AUTHOR: usize = 60;
        const FOREIGN: &str = "refs/foreign";
        let read = async {
            let refspec = format!("+{reference}:{FOREIGN}");
            let fetch = ["fetch", "--quiet", "--no-tags", remote, &refspec];
            self.run_with_remote(remote, &fetch).await?;
            let range = format!("{own}..{FOREIGN}");
            let count = self.run(&["rev-list", "--count", &range]).await?;
            let author = self.run(&["log", "-1", "--format=%an", FOREIGN]).await?;
            self.run(&["update-ref", "-d", FOREIGN]).await?;
            Ok::<_, GitError>((author, count))
        };
        match read.await {
            Ok((author, count)) => {
                let author: String = author.trim().chars().take(MAX_AUTHOR).collect();
                let author = ralph_core::printable::escape_text(&author).into_owned();
                let commits = match count.trim() {
                    "1" => "1 commit".to_owned(),
                    count => format!("{count} commits"),
                };
                Some(format!("{author}, {commits}"))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the commits of a moved branch");
                None
            }
        }
    }
}
