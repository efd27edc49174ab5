//! Whole runs in which an agent's program does the work: a script of the project, and the real ones.

mod house;
mod real;
mod scripts;
