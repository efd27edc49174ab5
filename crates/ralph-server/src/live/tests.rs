//! Streams over real connections, with journals that the engine writes.

mod endings;
mod feed;
mod fixture;
mod load;
mod logs;
mod output;
mod resuming;
