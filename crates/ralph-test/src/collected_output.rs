//! An output sink that keeps everything.

use ralph_core::ports::{OutputSink, OutputStream};

/// Everything that a command printed, stream by stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectedOutput {
    /// What came on standard output.
    pub stdout: Vec<u8>,
    /// What came on standard error.
    pub stderr: Vec<u8>,
}

impl CollectedOutput {
    /// Returns what came on standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns what came on standard error as text.
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
