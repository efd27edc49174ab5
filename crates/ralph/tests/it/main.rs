//! The whole program, from the command line to the files and the branch it leaves.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod holding;
#[cfg(test)]
mod project;
#[cfg(test)]
mod repositories;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod steering;
#[cfg(test)]
mod verdicts;
