//! What is told while an image is built or pulled.

/// One thing that is told while an image is built or pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageProgress {
    /// Something begins that takes its time.
    Started(String),
    /// A build has come to this instruction.
    Step {
        /// Which one, from 1.
        number: u32,
        /// How many there are.
        total: u32,
        /// The instruction.
        instruction: String,
    },
    /// A line that the build printed.
    Output(String),
    /// So much of an image has arrived.
    Transfer {
        /// Bytes that are here.
        done: u64,
        /// Bytes that are known of so far.
        total: u64,
    },
    /// Something a person should know; it goes on.
    Warning(String),
}

/// Takes what is told, as it happens.
pub type ImageProgressSink<'a> = &'a mut (dyn FnMut(ImageProgress) + Send);
