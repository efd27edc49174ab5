//! The doctor at work: `chart` collects what it gets to see, `consult` asks it and writes its report
//! down, `apply` does what a report proposes. It needs no sandbox: a run that nobody works on can be
//! looked at, too.

mod apply;
mod chart;
mod consult;
pub(crate) use apply::apply_report;
pub(crate) use consult::consult_doctor;

#[cfg(test)]
mod tests;
