//! The first process of a container sandbox. Started by ralph, never by a person.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[expect(
    clippy::print_stderr,
    reason = "what it says here is all that the log of the container has"
)]
fn main() -> ExitCode {
    use ralph_guest::serve::{Settings, run};

    let settings = match Settings::parse(std::env::args().skip(1)) {
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

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    // Containers are Linux; there is nothing to be the first process of anywhere else.
    ExitCode::FAILURE
}
