//! Iterations in which an agent's program works.

mod ends;
mod hosts;
#[cfg(target_os = "linux")]
mod interventions;
mod messages;
mod run_threads;
mod script;
mod test_run;
