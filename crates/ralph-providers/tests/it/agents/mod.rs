//! The real programs work in a local sandbox, against an upstream of the test's own.

mod agent_run;
mod claude;
mod codex;
mod opencode;
