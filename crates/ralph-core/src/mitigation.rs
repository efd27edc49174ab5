//! What is done about a run that goes in circles: a ladder of four rungs, the cheapest first.
//!
//! Each gutter in a row takes the next rung that is there: a fresh start, the fallback profile, the
//! doctor, a person. A person's help can only be asked for so often: when the ladder has been climbed,
//! the run was resumed, and it still goes in circles more often than `max_consecutive_gutter` allows,
//! it has failed. Real progress leads back to the ground.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::gutter::GutterMeasurement;

/// One rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The next iteration starts afresh and is told what repeats.
    Rotate,
    /// The fallback profile answers from now on.
    Fallback,
    /// A strong model looks at the run.
    Doctor,
    /// A person has to look at it.
    Pause,
}

impl Rung {
    /// All rungs, from the ground up.
    pub const ALL: [Self; 4] = [Self::Rotate, Self::Fallback, Self::Doctor, Self::Pause];
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rotate => "rotate",
            Self::Fallback => "fallback profile",
            Self::Doctor => "doctor",
            Self::Pause => "pause",
        })
    }
}

/// Where a run stands on the ladder. It survives everything that the journal does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// Gutters in a row.
    pub consecutive: u32,
    /// The highest rung that was taken since the last progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
}

/// What is done about a gutter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum MitigationStep {
    /// The next iteration starts afresh.
    Rotate,
    /// Another profile answers.
    Fallback {
        /// Which one.
        profile: String,
    },
    /// The doctor is asked before the next iteration.
    Doctor,
    /// The run waits for a person.
    Pause,
    /// Nothing is left: the run has failed.
    Fail,
}

impl fmt::Display for MitigationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rotate => f.write_str("rotate: the next iteration is told what repeats"),
            Self::Fallback { profile } => write!(f, "switch to the fallback profile `{profile}`"),
            Self::Doctor => f.write_str("ask the doctor"),
            Self::Pause => f.write_str("pause for a person"),
            Self::Fail => f.write_str("give up: no mitigation is left"),
        }
    }
}

/// A rung that was not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRung {
    /// Which one.
    pub rung: Rung,
    /// Why not.
    pub why: String,
}

/// What a run has to get out of a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MitigationOptions {
    /// The profile that can be switched to, or why there is none.
    pub fallback: Result<String, String>,
    /// Whether the doctor can be asked, or why not.
    pub doctor: Result<(), String>,
    /// `max_consecutive_gutter`.
    pub max_consecutive: u32,
}

/// What follows from an iteration's score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MitigationDecision {
    /// Where the run stands on the ladder now.
    pub ladder: Ladder,
    /// What to do; none without a gutter, or when there was progress all the same.
    pub step: Option<MitigationStep>,
    /// Rungs that were passed by.
    pub skipped: Vec<SkippedRung>,
}

/// Decides what to do after an iteration.
pub fn decide(
    ladder: Ladder,
    measured: &GutterMeasurement,
    means: &MitigationOptions,
) -> MitigationDecision {
    if measured.progress || !measured.score.is_gutter() {
        return MitigationDecision {
            ladder: Ladder::default(),
            step: None,
            skipped: Vec::new(),
        };
    }
    let consecutive = ladder.consecutive.saturating_add(1);
    if ladder.rung == Some(Rung::Pause) {
        // A person has looked, and nothing came of it.
        let is_over = consecutive > means.max_consecutive;
        return MitigationDecision {
            ladder: Ladder {
                consecutive,
                rung: ladder.rung,
            },
            step: Some(if is_over {
                MitigationStep::Fail
            } else {
                MitigationStep::Pause
            }),
            skipped: Vec::new(),
        };
    }
    let mut skipped = Vec::new();
    let above = |rung: &Rung| ladder.rung.is_none_or(|taken| *rung > taken);
    for rung in Rung::ALL.into_iter().filter(above) {
        match step_for_rung(rung, means) {
            Ok(step) => {
                return MitigationDecision {
                    ladder: Ladder {
                        consecutive,
                        rung: Some(rung),
                    },
                    step: Some(step),
                    skipped,
                };
            }
            Err(why) => skipped.push(SkippedRung { rung, why }),
        }
    }
    // Pausing is always possible, so the loop has returned.
    MitigationDecision {
        ladder: Ladder {
            consecutive,
            rung: Some(Rung::Pause),
        },
        step: Some(MitigationStep::Pause),
        skipped,
    }
}

fn step_for_rung(rung: Rung, means: &MitigationOptions) -> Result<MitigationStep, String> {
    match rung {
        Rung::Rotate => Ok(MitigationStep::Rotate),
        Rung::Fallback => means
            .fallback
            .clone()
            .map(|profile| MitigationStep::Fallback { profile }),
        Rung::Doctor => means.doctor.clone().map(|()| MitigationStep::Doctor),
        Rung::Pause => Ok(MitigationStep::Pause),
    }
}

/// Returns the profile to switch to, or why there is none.
pub fn fallback_profile(wanted: Option<&str>, in_use: Option<&str>) -> Result<String, String> {
    match wanted {
        None => Err("the task names no `model_profile_fallback`".into()),
        Some(wanted) if in_use == Some(wanted) => {
            Err(format!("the profile `{wanted}` is in use already"))
        }
        Some(wanted) => Ok(wanted.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gutter::LoopScore;

    fn measured(tenths: i32) -> GutterMeasurement {
        GutterMeasurement {
            score: LoopScore::from_tenths(tenths),
            signals: Vec::new(),
            progress: false,
        }
    }

    fn means(fallback: Result<&str, &str>) -> MitigationOptions {
        MitigationOptions {
            fallback: fallback.map(str::to_owned).map_err(str::to_owned),
            doctor: Ok(()),
            max_consecutive: 3,
        }
    }

    /// Climbs with one score after another and tells what was done.
    fn climb(means: &MitigationOptions, scores: &[i32]) -> Vec<String> {
        let mut ladder = Ladder::default();
        scores
            .iter()
            .map(|tenths| {
                let decision = decide(ladder, &measured(*tenths), means);
                ladder = decision.ladder;
                let skipped: Vec<String> = decision
                    .skipped
                    .iter()
                    .map(|skipped| format!("no {}, ", skipped.rung))
                    .collect();
                let step = decision
                    .step
                    .map_or_else(|| "-".to_owned(), |step| step.to_string());
                format!("{}{} {step}", skipped.concat(), ladder.consecutive)
            })
            .collect()
    }

    #[test]
    fn each_gutter_takes_the_next_rung_and_the_last_one_is_failure() {
        assert_eq!(
            climb(&means(Ok("strong")), &[7, 8, 10, 7, 7]),
            [
                "1 rotate: the next iteration is told what repeats",
                "2 switch to the fallback profile `strong`",
                "3 ask the doctor",
                "4 pause for a person",
                "5 give up: no mitigation is left",
            ]
        );
    }

    #[test]
    fn a_missing_rung_is_passed_by() {
        let mut poor = means(Err("none is named"));
        assert_eq!(
            climb(&poor, &[7, 7])[1],
            "no fallback profile, 2 ask the doctor"
        );
        poor.doctor = Err("no model".into());
        assert_eq!(
            climb(&poor, &[7, 7])[1],
            "no fallback profile, no doctor, 2 pause for a person"
        );
    }

    #[test]
    fn progress_leads_back_to_the_ground() {
        let means = means(Ok("strong"));
        assert_eq!(
            climb(&means, &[7, 7, 6, 7]),
            [
                "1 rotate: the next iteration is told what repeats",
                "2 switch to the fallback profile `strong`",
                "0 -",
                "1 rotate: the next iteration is told what repeats",
            ]
        );
        let taken = Ladder {
            consecutive: 3,
            rung: Some(Rung::Doctor),
        };
        let closer = GutterMeasurement {
            progress: true,
            ..measured(10)
        };
        assert_eq!(decide(taken, &closer, &means).ladder, Ladder::default());
    }

    #[test]
    fn a_person_may_be_asked_as_often_as_the_limit_allows() {
        let patient = MitigationOptions {
            max_consecutive: 5,
            ..means(Ok("strong"))
        };
        let steps = climb(&patient, &[7; 6]);
        assert_eq!(steps[4], "5 pause for a person");
        assert_eq!(steps[5], "6 give up: no mitigation is left");
    }

    #[test]
    fn the_profile_in_use_is_no_fallback() {
        assert_eq!(fallback_profile(Some("b"), Some("a")), Ok("b".into()));
        assert_eq!(fallback_profile(Some("b"), None), Ok("b".into()));
        assert!(fallback_profile(Some("a"), Some("a")).is_err());
        assert!(fallback_profile(None, Some("a")).is_err());
    }
}
