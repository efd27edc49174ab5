//! The configuration of a sandbox's container, which isolates the agent.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount, MountType, MountVolumeOptions, RestartPolicy, RestartPolicyNameEnum,
};
use ralph_guest::command::SandboxName;

use super::guest_socket::SOCKET_NAME;
use super::guest_volume::{self, VolumeAccess};
use super::labels::{self, SandboxLabels};
use super::settings::DockerSettings;
use crate::docker::DockerInfo;

/// The workspace inside the container.
pub(super) const WORKSPACE: &str = "/workspace";
/// The directory of the guest socket inside the container.
const SOCKET_DIRECTORY: &str = "/.ralph-link";

/// Restricts the system calls of a container.
const SECCOMP_PROFILE: &str = include_str!("seccomp.json");

/// The capabilities of the guest: to change file owners, access the whole workspace, run commands
/// as an unprivileged user, and kill them. Commands have none of these.
const CAPABILITIES: [&str; 6] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "KILL",
    "SETGID",
    "SETUID",
];

/// Maximum size of a temporary directory, which is in memory.
const MAX_TMPFS_BYTES: u64 = 1 << 30;
/// Bytes of a temporary directory per inode.
const BYTES_PER_FILE: i64 = 4 << 10;
/// Maximum size of shared memory.
const MAX_SHM_BYTES: u64 = 64 << 20;
/// The name server: an address inside the container, regardless of the host's.
const NAME_SERVER: &str = "127.0.0.1";
/// The first unprivileged port. The guest, which has no capability for low ports, listens on those
/// of DNS and HTTP; most engines set this by default.
const UNPRIVILEGED_PORTS: &str = "net.ipv4.ip_unprivileged_port_start";
/// The container's host name. Programs resolve their own host name, which no name server knows.
const HOST_NAME: &str = "sandbox";

/// The parameters of a container.
#[derive(Debug)]
pub(super) struct ContainerSpec<'a> {
    pub(super) name: SandboxName,
    pub(super) labels: &'a SandboxLabels,
    pub(super) settings: &'a DockerSettings,
    pub(super) engine_info: &'a DockerInfo,
    /// The directory of the guest socket on this machine, if the guest uses one.
    pub(super) socket: Option<&'a Path>,
}

impl ContainerSpec<'_> {
    /// Returns the creation request.
    pub(super) fn create_body(&self) -> ContainerCreateBody {
        let attached = self.socket.is_none();
        ContainerCreateBody {
            image: Some(self.settings.image.clone()),
            // Overrides the image: the guest runs as root in the container, everything else does
            // not.
            user: Some("0:0".into()),
            working_dir: Some("/".into()),
            hostname: Some(HOST_NAME.into()),
            entrypoint: Some(vec![format!(
                "{}/{}",
                guest_volume::GUEST_DIRECTORY,
                guest_volume::GUEST_FILE
            )]),
            cmd: Some(self.arguments()),
            labels: Some(self.labels.to_docker(self.name)),
            open_stdin: Some(attached),
            attach_stdin: Some(attached),
            attach_stdout: Some(attached),
            attach_stderr: Some(attached),
            tty: Some(false),
            stop_signal: Some("SIGTERM".into()),
            // The Docker Engine would run the image's health check as root, next to the guest.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".into()]),
                ..HealthConfig::default()
            }),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        }
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--root".to_owned(), WORKSPACE.to_owned()];
        match self.socket {
            Some(_) => {
                let own = rustix::process::geteuid().as_raw().to_string();
                let socket = format!("{SOCKET_DIRECTORY}/{SOCKET_NAME}");
                arguments.extend(["--socket".into(), socket, "--foreign-user".into(), own]);
            }
            None => arguments.push("--stdio".into()),
        }
        let disk = self.settings.limits.disk.to_string();
        arguments.extend(["--disk-limit".into(), disk, "--own-container".into()]);
        if !self.settings.read_only {
            arguments.push("--writable-root".into());
        }
        arguments
    }

    fn host_config(&self) -> HostConfig {
        let limits = &self.settings.limits;
        let memory = i64::try_from(limits.memory_on(self.engine_info)).unwrap_or(i64::MAX);
        HostConfig {
            network_mode: Some("none".into()),
            cap_drop: Some(vec!["ALL".into()]),
            cap_add: Some(CAPABILITIES.map(Into::into).into()),
            privileged: Some(false),
            security_opt: Some(vec![
                "no-new-privileges".into(),
                format!("seccomp={SECCOMP_PROFILE}"),
            ]),
            memory: Some(memory),
            // Equal to the memory limit, so no swap.
            memory_swap: Some(memory),
            nano_cpus: Some(nano_cpus(limits.cpus_on(self.engine_info))),
            pids_limit: Some(i64::from(limits.processes)),
            readonly_rootfs: Some(self.settings.read_only),
            tmpfs: Some(self.tmpfs(memory)),
            shm_size: Some(memory_share(memory, 8, MAX_SHM_BYTES)),
            mounts: Some(self.mounts()),
            // Otherwise they are copied from the host, including the names in its network.
            dns: Some(vec![NAME_SERVER.into()]),
            dns_search: Some(vec![".".into()]),
            extra_hosts: Some(vec![format!("{HOST_NAME}:127.0.0.1")]),
            sysctls: Some(HashMap::from([(
                UNPRIVILEGED_PORTS.to_owned(),
                "0".to_owned(),
            )])),
            ipc_mode: Some("private".into()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            log_config: Some(self.log_config()),
            init: Some(false),
            ..HostConfig::default()
        }
    }

    /// Returns the temporary directories. They are in memory, so their size is limited: full
    /// directories must leave enough for the commands that clean them up.
    fn tmpfs(&self, memory: i64) -> HashMap<String, String> {
        let writable = |part| {
            let size = memory_share(memory, part, MAX_TMPFS_BYTES);
            // Empty files use memory, too.
            let files = size / BYTES_PER_FILE;
            format!("rw,exec,nosuid,nodev,mode=1777,size={size},nr_inodes={files}")
        };
        let mut directories = HashMap::from([
            ("/tmp".to_owned(), writable(4)),
            ("/var/tmp".to_owned(), writable(8)),
        ]);
        if self.settings.read_only {
            let options = "rw,noexec,nosuid,nodev,mode=755,size=16m";
            directories.insert("/run".to_owned(), options.to_owned());
        }
        directories
    }

    fn mounts(&self) -> Vec<Mount> {
        let mut mounts = vec![
            Mount {
                target: Some(WORKSPACE.into()),
                source: Some(labels::object_name(self.name)),
                typ: Some(MountType::VOLUME),
                read_only: Some(false),
                // Applied when the volume is created on demand.
                volume_options: Some(MountVolumeOptions {
                    // A sandbox starts empty, regardless of the image's content.
                    no_copy: Some(true),
                    labels: Some(self.labels.to_docker(self.name)),
                    ..MountVolumeOptions::default()
                }),
                ..Mount::default()
            },
            guest_volume::mount(&guest_volume::volume_name(), VolumeAccess::ReadOnly),
        ];
        mounts.extend(self.socket.map(|directory| Mount {
            target: Some(SOCKET_DIRECTORY.into()),
            source: Some(directory.to_string_lossy().into_owned()),
            typ: Some(MountType::BIND),
            read_only: Some(true),
            ..Mount::default()
        }));
        mounts
    }

    /// Without a socket, the container's output carries the guest protocol and must not be logged.
    fn log_config(&self) -> HostConfigLogConfig {
        match self.socket {
            Some(_) => HostConfigLogConfig {
                typ: Some("json-file".into()),
                config: Some(HashMap::from([("max-size".to_owned(), "1m".to_owned())])),
            },
            None => HostConfigLogConfig {
                typ: Some("none".into()),
                config: None,
            },
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and no machine has that many processors"
)]
fn nano_cpus(cpus: f64) -> i64 {
    (cpus * 1e9) as i64
}

/// Returns a share of the memory, at most `max`.
fn memory_share(memory: i64, part: i64, max: u64) -> i64 {
    (memory / part).min(i64::try_from(max).unwrap_or(i64::MAX))
}
