//! Protects ralph's own files from commands and limits their resources, as far as the machine
//! allows.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ralph_core::ports::{Confinement, MemoryLimit, StateHiding};
use ralph_guest::command::{CommandMark, SandboxName};
use ralph_guest::launch::{
    Hiding, LAUNCH, LAUNCH_FAILED, LaunchFailure, LaunchSettings, LauncherSupport, MountAbility,
    PROBE,
};
use ralph_guest::{available, best_effort};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use super::cgroup::{CgroupParents, SandboxCgroup};
use super::provider::LocalLimits;
use crate::logged::logged;
use crate::sandbox::guest_program::GUEST_PROGRAM;

/// The launcher and its capabilities on this machine.
#[derive(Debug)]
pub(super) struct Launcher {
    /// The program, in memory: a command could replace a file.
    program: File,
    available: LauncherSupport,
    parents: Option<CgroupParents>,
    limits: LocalLimits,
}

impl Launcher {
    /// Prepares the launcher and probes its capabilities.
    pub(super) fn prepare(limits: LocalLimits) -> io::Result<Self> {
        let mut launcher = Self {
            program: sealed_program()?,
            available: LauncherSupport::default(),
            parents: None,
            limits,
        };
        let parents = CgroupParents::find();
        let probed = parents
            .as_ref()
            .map(|parents| parents.create("probe", limits));
        // Without control groups of its own each command gets limits per process.
        let probed = probed.and_then(available);
        launcher.available = launcher.probe(probed.as_ref())?;
        launcher.parents = parents.filter(|_| probed.is_some() && launcher.available.cgroups);
        Ok(launcher)
    }

    fn probe(&self, cgroup: Option<&SandboxCgroup>) -> io::Result<LauncherSupport> {
        let output = Command::new(self.path())
            .arg(PROBE)
            .args(cgroup.map(SandboxCgroup::directories).unwrap_or_default())
            .env_clear()
            .stdin(Stdio::null())
            .output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Returns the path of the program, which only this process and its children can resolve.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.program.as_raw_fd())
    }

    /// Creates the control group of a sandbox, if control groups are available.
    pub(super) fn cgroup(&self, id: &str) -> io::Result<Option<SandboxCgroup>> {
        let Some(parents) = &self.parents else {
            return Ok(None);
        };
        parents.clear(id);
        parents.create(id, self.limits).map(Some)
    }

    /// Returns the active protections.
    pub(super) fn confinement(&self) -> Confinement {
        let LocalLimits { memory, processes } = self.limits;
        Confinement {
            state: match self.hiding() {
                Hiding::MountNamespace => StateHiding::MountNamespace,
                Hiding::Landlock => StateHiding::Landlock,
                Hiding::Unavailable => StateHiding::Unavailable,
            },
            private_tmp: self.hiding() == Hiding::MountNamespace,
            signals: self.available.signals,
            memory: Some(if self.parents.is_some() {
                MemoryLimit::Sandbox(memory)
            } else {
                MemoryLimit::Process(memory)
            }),
            processes: (self.parents.is_some() || self.counts_processes()).then_some(processes),
        }
    }

    fn hiding(&self) -> Hiding {
        match self.available {
            LauncherSupport {
                mounts: Some(_), ..
            } => Hiding::MountNamespace,
            LauncherSupport { landlock: true, .. } => Hiding::Landlock,
            LauncherSupport { .. } => Hiding::Unavailable,
        }
    }

    /// Returns whether the kernel counts the processes of each command separately: only in a user
    /// namespace, and not for root.
    fn counts_processes(&self) -> bool {
        self.available.mounts == Some(MountAbility::UserNamespace)
            && !rustix::process::geteuid().is_root()
    }

    /// Returns the command line that starts a command through the launcher.
    pub(super) fn invocation(
        &self,
        launch: &Launch<'_>,
        argv: &[String],
    ) -> io::Result<Vec<String>> {
        let limited = launch.cgroup.is_some();
        let settings = LaunchSettings {
            hiding: self.hiding(),
            hidden: launch.hidden.to_vec(),
            sandbox: launch.sandbox.to_owned(),
            tmp: launch.sandbox.join(ralph_guest::command::TMP),
            kept: launch.visible.to_vec(),
            scope_signals: self.available.signals,
            cgroups: launch
                .cgroup
                .map(SandboxCgroup::directories)
                .unwrap_or_default(),
            process_memory: (!limited).then_some(self.limits.memory),
            processes: (!limited && self.counts_processes())
                .then_some(u64::from(self.limits.processes)),
            mark: launch.mark.limit(),
            report: launch.report_path(),
        };
        let settings = serde_json::to_string(&settings)?;
        let launcher = [self.path(), LAUNCH.to_owned(), settings];
        Ok(launcher.into_iter().chain(argv.iter().cloned()).collect())
    }
}

/// A command to be launched.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) name: SandboxName,
    pub(super) mark: CommandMark,
    pub(super) sandbox: &'a Path,
    pub(super) hidden: &'a [PathBuf],
    pub(super) visible: &'a [PathBuf],
    pub(super) cgroup: Option<&'a SandboxCgroup>,
}

impl Launch<'_> {
    /// Returns the launcher's error report file, next to the sandbox and inaccessible to it.
    fn report_path(&self) -> PathBuf {
        let file = format!(
            ".{}-{}.launch",
            super::name::sandbox_id(self.name),
            self.mark.limit()
        );
        self.sandbox.with_file_name(file)
    }

    /// Reads the launcher's report, if the exit code indicates that the command was not started.
    pub(super) fn take_failure(&self, exit_code: i32) -> Option<io::Error> {
        if exit_code != LAUNCH_FAILED {
            return None;
        }
        let report = self.report_path();
        // A command may end with the same code; then there is no report.
        let bytes = available(std::fs::read(&report))?;
        best_effort(std::fs::remove_file(&report));
        let doing = "read the report of a launcher";
        let failure: LaunchFailure = logged(doing, serde_json::from_slice(&bytes))?;
        Some(failure.to_io_error())
    }
}

/// Writes the guest program to a sealed anonymous file.
fn sealed_program() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("ralph-launch", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 reject the flag for executable files; there, every file is executable.
        Err(Errno::INVAL) => memfd_create("ralph-launch", flags)?,
        created => created?,
    };
    let mut file = File::from(file);
    file.write_all(GUEST_PROGRAM)?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// Returns the required directories below a temporary directory: a private `/tmp` must not hide
/// programs and toolchains.
pub(super) fn required_directories<'a>(
    search_path: &OsStr,
    toolchains: impl Iterator<Item = &'a String>,
) -> Vec<PathBuf> {
    let mut needed: Vec<PathBuf> = std::env::split_paths(search_path)
        .chain(toolchains.map(PathBuf::from))
        .filter(|path| ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp)))
        .filter(|path| path.is_dir())
        .collect();
    needed.sort();
    needed.dedup();
    needed
}
