//! An iteration in which an agent's program works inside the sandbox: `prompt` is what it is told,
//! `work` runs it and tries again where that helps, `watch` listens to it while it works, `sink`
//! makes events of what it prints, `ticks` are the boxes that it says are done.

mod prompt;
mod sink;
mod ticks;
mod watch;
mod work;
