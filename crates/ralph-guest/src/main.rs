//! The first process of a container sandbox, and the launcher of a local one. Started by ralph,
//! never by the user.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[expect(
    clippy::print_stderr,
    reason = "standard error is the only log of the container"
)]
fn main() -> ExitCode {
    use ralph_guest::launch::{self, LAUNCH, LauncherSupport, PROBE};
    use ralph_guest::probe::PROBE_NETWORK;
    use ralph_guest::serve::{GuestSettings, run};

    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == LAUNCH => return launch::run(arguments),
        Some(first) if first == PROBE => return LauncherSupport::probe_and_print(arguments),
        Some(first) if first == PROBE_NETWORK => return probe_network(),
        Some(_) | None => {}
    }
    let settings = match GuestSettings::parse(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("ralph-guest: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ralph-guest: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Probes the network as a command of the sandbox.
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the sandbox sets this variable, and commands find the proxy by it"
)]
fn probe_network() -> ExitCode {
    use ralph_guest::probe::ProbeSettings;

    // Without the variable, or with an unreadable one, no proxy is probed.
    let proxy = ralph_guest::available(std::env::var("HTTPS_PROXY"));
    let settings = ProbeSettings::parse(std::env::args().skip(2), proxy.as_deref());
    match settings.map(|settings| settings.run(&mut std::io::stdout().lock())) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    // Containers run Linux only.
    ExitCode::FAILURE
}
