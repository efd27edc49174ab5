//! Runs the real agent programs in a local sandbox, against a test upstream.

mod agent_run;
mod claude;
mod codex;
mod opencode;
