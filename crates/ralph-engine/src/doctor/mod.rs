//! The doctor: `prompt_input` collects its input, `consult` asks it and stores its report, `apply`
//! applies the proposals of a report. It needs no sandbox, so it can also examine a run that no
//! process works on.

mod apply;
mod consult;
mod prompt_input;
pub(crate) use apply::apply_report;
pub(crate) use consult::consult_doctor;

#[cfg(test)]
mod tests;
