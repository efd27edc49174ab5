//! System information of a Docker Engine.

use bollard::models::SystemInfo;
use ralph_guest::available;

use super::address::DockerAddress;

/// System information of a Docker Engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerInfo {
    /// The operating system of its containers; always `linux`, others are rejected.
    pub os_type: String,
    /// In the notation of images: `amd64`, `arm64`.
    pub architecture: String,
    pub cpus: u64,
    /// In bytes.
    pub memory: u64,
    /// Whether it is reached through a socket on this machine.
    pub is_local_socket: bool,
    /// Whether it is Docker Desktop, which runs containers in a virtual machine.
    pub is_desktop: bool,
    /// Whether it runs without root privileges.
    pub is_rootless: bool,
    /// Such as `overlay2`.
    pub storage_driver: String,
    /// Its data directory, on its own machine.
    pub data_root: String,
    pub api_version: String,
    pub version: String,
    /// The kernel of its containers; differs from this machine's if they run in a virtual machine.
    pub kernel: String,
}

impl DockerInfo {
    /// Converts the Docker Engine's response. Missing values become empty or 0.
    pub(super) fn from_system_info(
        info: SystemInfo,
        api_version: String,
        address: &DockerAddress,
    ) -> Self {
        let count = |number: Option<i64>| {
            number
                .and_then(|n| available(u64::try_from(n)))
                .unwrap_or(0)
        };
        let options = info.security_options.unwrap_or_default();
        Self {
            os_type: info.os_type.unwrap_or_default(),
            architecture: go_architecture(&info.architecture.unwrap_or_default()).to_owned(),
            cpus: count(info.ncpu),
            memory: count(info.mem_total),
            is_local_socket: address.socket().is_some(),
            is_desktop: info
                .operating_system
                .is_some_and(|name| name.starts_with("Docker Desktop")),
            // Written as `name=rootless`, followed by other keys on some engines.
            is_rootless: options
                .iter()
                .any(|option| option.split(',').any(|part| part == "name=rootless")),
            storage_driver: info.driver.unwrap_or_default(),
            data_root: info.docker_root_dir.unwrap_or_default(),
            api_version,
            version: info.server_version.unwrap_or_default(),
            kernel: info.kernel_version.unwrap_or_default(),
        }
    }
}

/// Converts a kernel architecture name to the notation of images.
pub fn go_architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" | "arm64v8" => "arm64",
        "i386" | "i686" => "386",
        "armv6l" | "armv7l" | "armhf" => "arm",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_engine_on_this_machine() {
        let info = SystemInfo {
            os_type: Some("linux".into()),
            architecture: Some("x86_64".into()),
            ncpu: Some(2),
            mem_total: Some(4096),
            driver: Some("overlay2".into()),
            docker_root_dir: Some("/var/lib/docker".into()),
            server_version: Some("20.10.24".into()),
            kernel_version: Some("6.1".into()),
            operating_system: Some("Debian GNU/Linux 12 (bookworm)".into()),
            security_options: Some(vec!["name=seccomp,profile=default".into()]),
            ..SystemInfo::default()
        };
        let facts = DockerInfo::from_system_info(
            info,
            "1.41".to_owned(),
            &DockerAddress::Socket(PathBuf::from("/s")),
        );
        let expected = DockerInfo {
            os_type: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            cpus: 2,
            memory: 4096,
            is_local_socket: true,
            is_desktop: false,
            is_rootless: false,
            storage_driver: "overlay2".to_owned(),
            data_root: "/var/lib/docker".to_owned(),
            api_version: "1.41".to_owned(),
            version: "20.10.24".to_owned(),
            kernel: "6.1".to_owned(),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn desktop_rootless_and_remote_engines_are_detected() {
        let info = SystemInfo {
            operating_system: Some("Docker Desktop".into()),
            security_options: Some(vec!["name=seccomp".into(), "name=rootless".into()]),
            mem_total: Some(-1),
            ..SystemInfo::default()
        };
        let facts = DockerInfo::from_system_info(
            info,
            String::new(),
            &DockerAddress::Tcp("build:2375".to_owned()),
        );
        let flags = (facts.is_desktop, facts.is_rootless, facts.is_local_socket);
        assert_eq!((flags, facts.memory), ((true, true, false), 0));
    }
}
