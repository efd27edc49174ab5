//! Progress of image builds and pulls.

/// A progress report of an image build or pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageProgress {
    /// A long operation started.
    Started(String),
    /// A build reached this instruction.
    Step {
        /// Counted from 1.
        number: u32,
        total: u32,
        instruction: String,
    },
    /// A line of build output.
    Output(String),
    /// Download progress.
    Transfer {
        /// Bytes received.
        done: u64,
        /// Bytes known so far.
        total: u64,
    },
    /// A problem that does not stop the operation.
    Warning(String),
}

/// Receives progress reports.
pub type ImageProgressSink<'a> = &'a mut (dyn FnMut(ImageProgress) + Send);
