//! The protection that a provider without isolation still applies to its commands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How ralph's state directory is hidden from commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateHiding {
    /// Each command runs in a mount namespace in which the directory is empty.
    MountNamespace,
    /// The kernel denies access to the directory.
    Landlock,
    /// It is not hidden: a command can change the files of its run.
    #[default]
    Unavailable,
}

/// How memory is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryLimit {
    /// Bytes for all processes of a sandbox together.
    Sandbox(u64),
    /// Bytes for each process.
    Process(u64),
}

/// Protection against commands that run as the user, as detected on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Confinement {
    pub state: StateHiding,
    pub private_tmp: bool,
    /// Whether commands are prevented from signalling ralph.
    pub signals: bool,
    /// `None` if memory is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryLimit>,
    /// Maximum number of processes in a sandbox; `None` if they are not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
}

impl Confinement {
    /// Describes the protection of ralph's files and process for the user.
    pub fn describe_isolation(&self) -> String {
        let state = match self.state {
            StateHiding::MountNamespace => "yes (mount namespace)",
            StateHiding::Landlock => "yes (Landlock)",
            StateHiding::Unavailable => "no: commands can change the files of this run",
        };
        let yes = |value: bool| if value { "yes" } else { "no" };
        format!(
            "state directory hidden: {state} · private /tmp: {} · ralph safe from signals: {}",
            yes(self.private_tmp),
            yes(self.signals)
        )
    }

    /// Describes the limits for the user.
    pub fn describe_limits(&self) -> String {
        let memory = match self.memory {
            Some(MemoryLimit::Sandbox(bytes)) => format!("memory {}", format_size(bytes)),
            Some(MemoryLimit::Process(bytes)) => {
                format!("memory {} per process", format_size(bytes))
            }
            None => "memory not limited".into(),
        };
        let processes = match self.processes {
            Some(number) => format!("{number} processes"),
            None => "processes not limited".into(),
        };
        format!("{memory} · {processes}")
    }
}

fn format_size(bytes: u64) -> String {
    let (gib, mib) = (1 << 30, 1 << 20);
    if bytes.is_multiple_of(gib) {
        format!("{} GiB", bytes / gib)
    } else {
        format!("{} MiB", bytes.div_ceil(mib))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_missing_protection() {
        let nothing = Confinement::default();
        assert_eq!(
            nothing.describe_isolation(),
            "state directory hidden: no: commands can change the files of this run · private /tmp: no · \
             ralph safe from signals: no"
        );
        assert_eq!(
            nothing.describe_limits(),
            "memory not limited · processes not limited"
        );
        let most = Confinement {
            state: StateHiding::MountNamespace,
            private_tmp: true,
            signals: true,
            memory: Some(MemoryLimit::Sandbox(8 << 30)),
            processes: Some(512),
        };
        assert_eq!(
            most.describe_isolation(),
            "state directory hidden: yes (mount namespace) · private /tmp: yes · ralph safe from signals: yes"
        );
        assert_eq!(most.describe_limits(), "memory 8 GiB · 512 processes");
        let per_process = Confinement {
            memory: Some(MemoryLimit::Process(1500 << 20)),
            ..most
        };
        assert_eq!(
            per_process.describe_limits(),
            "memory 1500 MiB per process · 512 processes"
        );
    }
}
