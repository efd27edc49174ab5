//! Parses the arguments of a launcher, confines the process and executes the command.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use super::settings::{Hiding, LAUNCH_FAILED, LaunchFailure, LaunchSettings};
use super::{landlock, namespace, privileges};
use crate::{available, best_effort};

/// The step that executes the program. Its failure is reported as the program's own, without a name.
const EXEC_STEP: &str = "";

/// A result whose error names the failed step.
pub(super) type LaunchStepResult<T> = Result<T, (&'static str, io::Error)>;

/// Adds the name of a step to an error.
pub(super) fn in_step<T, E: Into<io::Error>>(
    name: &'static str,
    result: Result<T, E>,
) -> LaunchStepResult<T> {
    result.map_err(|error| (name, error.into()))
}

/// Confines this process and executes the command. The arguments are the settings as JSON, the
/// program and its arguments. Returns only on failure.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let settings = arguments.next().unwrap_or_default();
    let Ok(settings) = serde_json::from_slice::<LaunchSettings>(settings.as_encoded_bytes()) else {
        return report_failure(
            None,
            &LaunchFailure::new(EXEC_STEP, &ErrorKind::InvalidInput.into()),
        );
    };
    let report = FailureFile::open(&settings.report);
    let Some(program) = arguments.next() else {
        return report_failure(
            report,
            &LaunchFailure::new(EXEC_STEP, &ErrorKind::InvalidInput.into()),
        );
    };
    if let Err((name, error)) = confine(&settings, &program) {
        return report_failure(report, &LaunchFailure::new(name, &error));
    }
    let error = Command::new(&program).args(arguments).exec();
    report_failure(report, &LaunchFailure::new(EXEC_STEP, &error))
}

/// Applies the settings to this process.
fn confine(settings: &LaunchSettings, program: &OsString) -> LaunchStepResult<()> {
    in_step("start a session", setsid())?;
    set_limit(Resource::Locks, settings.mark);
    for cgroup in &settings.cgroups {
        let joined = fs::write(cgroup.join("cgroup.procs"), "0");
        in_step("join the control group of the sandbox", joined)?;
    }
    match settings.hiding {
        Hiding::MountNamespace => namespace::hide_directories(settings)?,
        Hiding::Landlock => {
            // After access is denied, a failure can no longer be reported, so the most common one
            // is checked before.
            in_step(EXEC_STEP, check_executable(program))?;
            landlock::restrict_files(settings)?;
        }
        Hiding::Unavailable => {}
    }
    if settings.scope_signals {
        landlock::scope_signals()?;
    }
    if settings.hiding == Hiding::MountNamespace {
        privileges::drop_capabilities()?;
    }
    if let Some(bytes) = settings.process_memory {
        set_limit(Resource::Data, bytes);
    }
    if let Some(number) = settings.processes {
        set_limit(Resource::Nproc, number);
    }
    Ok(())
}

/// Lowers a limit of this process, which the command inherits. A lower existing limit is kept.
fn set_limit(resource: Resource, value: u64) {
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // Fails only if the existing limit is lower.
    best_effort(setrlimit(resource, limit));
}

/// Checks that a program exists and is executable.
fn check_executable(program: &OsString) -> io::Result<()> {
    let executable = |file: &Path| rustix::fs::access(file, rustix::fs::Access::EXEC_OK);
    if program.as_encoded_bytes().contains(&b'/') {
        return Ok(executable(Path::new(program))?);
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search_path)
        .any(|directory| executable(&directory.join(program)).is_ok());
    if found {
        Ok(())
    } else {
        Err(Errno::NOENT.into())
    }
}

/// The failure report, opened before its directory is hidden.
struct FailureFile {
    directory: OwnedFd,
    name: OsString,
}

impl FailureFile {
    fn open(file: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = available(openat(CWD, file.parent()?, flags, Mode::empty()))?;
        Some(Self {
            directory,
            name: file.file_name()?.to_owned(),
        })
    }

    fn write(&self, failure: &LaunchFailure) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.directory, &self.name, flags, Mode::RUSR | Mode::WUSR)?;
        fs::File::from(file).write_all(&serde_json::to_vec(failure)?)
    }
}

#[expect(
    clippy::print_stderr,
    reason = "without a report file, standard error is the only output"
)]
fn report_failure(report: Option<FailureFile>, failure: &LaunchFailure) -> ExitCode {
    if report.is_some_and(|report| report.write(failure).is_ok()) {
        return ExitCode::from(u8::try_from(LAUNCH_FAILED).unwrap_or(1));
    }
    eprintln!("ralph: cannot start the command: {}", failure.to_io_error());
    ExitCode::from(126)
}
