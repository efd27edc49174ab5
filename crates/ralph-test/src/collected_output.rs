//! An output sink that stores everything.

use ralph_core::ports::{OutputSink, OutputStream};

/// The complete output of a command, per stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectedOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl CollectedOutput {
    /// Returns standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl OutputSink for CollectedOutput {
    fn chunk(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Stdout => self.stdout.extend_from_slice(bytes),
            OutputStream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
}
