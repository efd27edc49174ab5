//! The context of a command.

use std::ffi::OsString;

use super::output::CliOutput;
use crate::diagnostics_log::{self, LogSettings, StderrLog};
use crate::terminal::{OutputMode, SpinnerVisibility, StdoutStyle};
use ralph_app::App;
use ralph_app::config::{Environment, Settings};

/// The application and the terminal of a command.
#[derive(Debug)]
pub struct Context {
    pub app: App,
    output: CliOutput,
    arguments: Vec<OsString>,
}

impl Context {
    /// Creates the context from the environment of the process.
    pub fn new(environment: Environment) -> Self {
        let output = CliOutput::new(StdoutStyle::detect(&environment));
        Self {
            app: App::new(environment),
            output,
            arguments: Vec::new(),
        }
    }

    /// Adds the arguments of the program, for a command that starts itself again.
    #[must_use]
    pub(super) fn with_arguments(mut self, arguments: Vec<OsString>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Returns the context of another state directory.
    #[must_use]
    pub(super) fn with_state_dir(self, directory: &str) -> Self {
        Self {
            app: self.app.with_state_dir(directory),
            ..self
        }
    }

    /// Returns the arguments of the program, without its name.
    pub(super) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Returns the output of the command.
    pub fn output(&self) -> CliOutput {
        self.output
    }

    /// Starts the diagnostics log. It redacts every secret that the application knows when it
    /// writes a line.
    pub(super) fn start_log(&self, verbosity: u8, stderr: StderrLog) {
        let environment = self.app.environment();
        let settings = LogSettings {
            // Commands that need a state directory report a missing one themselves.
            state_dir: environment.state_dir().into_iter().next(),
            filter: environment.log_filter().map(str::to_owned),
            verbosity,
            stderr,
        };
        let redactor = self.app.redactor();
        diagnostics_log::install(settings, move || redactor.clone());
    }

    /// Returns the output mode of a run: JSON, or the style of standard output with or without a
    /// spinner.
    pub fn view_mode(&self, is_json: bool, settings: &Settings) -> OutputMode {
        if is_json {
            return OutputMode::Json;
        }
        let progress = if settings.monitoring.show_progress {
            SpinnerVisibility::Shown
        } else {
            SpinnerVisibility::Hidden
        };
        self.output.style().output_mode(progress)
    }

    /// Returns how an existing run is shown. The run does not depend on the settings of the working
    /// directory, so invalid ones only lose their effect on the display.
    pub fn existing_run_view_mode(&self, is_json: bool) -> OutputMode {
        let settings = self.app.settings().unwrap_or_else(|error| {
            tracing::warn!(%error, "the settings of the working directory are not used");
            Settings::default()
        });
        self.view_mode(is_json, &settings)
    }
}
