//! Whole runs in which an agent's program does the work: a script of the project, and the real ones.

mod fixture;
mod interruptions;
mod limits;
mod outage;
mod real;
mod scripts;
mod secrets;
mod steered;
