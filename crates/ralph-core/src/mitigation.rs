//! Countermeasures for a run that is circling: a ladder of four rungs, the cheapest first.
//!
//! Each consecutive gutter moves to the next available rung: a fresh iteration, the fallback
//! profile, the doctor, a pause for the user. If the run still circles after the user resumed it
//! and exceeds `max_consecutive_gutter`, it has failed. An iteration with progress or without a
//! gutter resets the ladder.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::gutter::GutterMeasurement;

/// One rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The next iteration starts fresh, and its prompt names the repetition.
    Rotate,
    /// The run switches to the fallback profile, or to the fallback agent.
    Fallback,
    /// A strong model diagnoses the run.
    Doctor,
    /// The run pauses for the user.
    Pause,
}

impl Rung {
    /// All rungs, the cheapest first.
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

/// The position of a run on the ladder, which the journal preserves across restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// Number of consecutive gutters.
    pub consecutive: u32,
    /// The highest rung used since the ladder was last reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
}

/// The countermeasure chosen for a gutter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum MitigationStep {
    /// Start a fresh iteration and name the repetition in its prompt.
    Rotate,
    /// Switch to another profile.
    Fallback { profile: String },
    /// Switch to the fallback agent.
    FallbackAgent {
        /// With its model, as in `agent_fallback`.
        agent: String,
    },
    /// Consult the doctor before the next iteration.
    Doctor,
    /// Pause until the user resumes the run.
    Pause,
    /// Fail the run, because no countermeasure is left.
    Fail,
}

impl fmt::Display for MitigationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rotate => f.write_str("rotate: the next prompt names the repetition"),
            Self::Fallback { profile } => write!(f, "switch to the fallback profile `{profile}`"),
            Self::FallbackAgent { agent } => write!(f, "switch to the fallback agent `{agent}`"),
            Self::Doctor => f.write_str("ask the doctor"),
            Self::Pause => f.write_str("pause for the user"),
            Self::Fail => f.write_str("give up: no mitigation is left"),
        }
    }
}

/// A rung that was not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRung {
    pub rung: Rung,
    pub why: String,
}

/// The countermeasures available to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MitigationOptions {
    /// The switch to the fallback profile or agent, or the reason why there is none.
    pub fallback: Result<MitigationStep, String>,
    /// The error is the reason why the doctor cannot be consulted.
    pub doctor: Result<(), String>,
    /// The task's `max_consecutive_gutter`.
    pub max_consecutive: u32,
}

/// The consequence of an iteration's loop score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MitigationDecision {
    pub ladder: Ladder,
    /// `None` without a gutter, or if there was progress despite one.
    pub step: Option<MitigationStep>,
    /// Rungs that were not available.
    pub skipped: Vec<SkippedRung>,
}

/// Chooses the countermeasure after an iteration.
pub fn decide(
    ladder: Ladder,
    measured: &GutterMeasurement,
    options: &MitigationOptions,
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
        // The user has already resumed the run once, and it still circles.
        let is_over = consecutive > options.max_consecutive;
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
        match step_for_rung(rung, options) {
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

fn step_for_rung(rung: Rung, options: &MitigationOptions) -> Result<MitigationStep, String> {
    match rung {
        Rung::Rotate => Ok(MitigationStep::Rotate),
        Rung::Fallback => options.fallback.clone(),
        Rung::Doctor => options.doctor.clone().map(|()| MitigationStep::Doctor),
        Rung::Pause => Ok(MitigationStep::Pause),
    }
}

/// Returns the profile to switch to, or the reason why there is none.
pub fn fallback_profile(wanted: Option<&str>, in_use: Option<&str>) -> Result<String, String> {
    match wanted {
        None => {
            Err("neither the task nor RALPH_FALLBACK_MODEL_PROFILE names a fallback profile".into())
        }
        Some(wanted) if in_use == Some(wanted) => {
            Err(format!("profile `{wanted}` is already in use"))
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

    fn options(fallback: Result<&str, &str>) -> MitigationOptions {
        MitigationOptions {
            fallback: fallback
                .map(|profile| MitigationStep::Fallback {
                    profile: profile.into(),
                })
                .map_err(str::to_owned),
            doctor: Ok(()),
            max_consecutive: 3,
        }
    }

    /// Feeds the scores to the ladder one after another and describes each step.
    fn climb(options: &MitigationOptions, scores: &[i32]) -> Vec<String> {
        let mut ladder = Ladder::default();
        scores
            .iter()
            .map(|tenths| {
                let decision = decide(ladder, &measured(*tenths), options);
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
    fn each_gutter_takes_the_next_rung_until_the_run_fails() {
        assert_eq!(
            climb(&options(Ok("strong")), &[7, 8, 10, 7, 7]),
            [
                "1 rotate: the next prompt names the repetition",
                "2 switch to the fallback profile `strong`",
                "3 ask the doctor",
                "4 pause for the user",
                "5 give up: no mitigation is left",
            ]
        );
    }

    #[test]
    fn unavailable_rungs_are_skipped() {
        let mut limited = options(Err("none is named"));
        assert_eq!(
            climb(&limited, &[7, 7])[1],
            "no fallback profile, 2 ask the doctor"
        );
        limited.doctor = Err("no model".into());
        assert_eq!(
            climb(&limited, &[7, 7])[1],
            "no fallback profile, no doctor, 2 pause for the user"
        );
    }

    #[test]
    fn progress_resets_the_ladder() {
        let options = options(Ok("strong"));
        assert_eq!(
            climb(&options, &[7, 7, 6, 7]),
            [
                "1 rotate: the next prompt names the repetition",
                "2 switch to the fallback profile `strong`",
                "0 -",
                "1 rotate: the next prompt names the repetition",
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
        assert_eq!(decide(taken, &closer, &options).ladder, Ladder::default());
    }

    #[test]
    fn the_run_pauses_until_the_gutter_limit_is_exceeded() {
        let high_limit = MitigationOptions {
            max_consecutive: 5,
            ..options(Ok("strong"))
        };
        let steps = climb(&high_limit, &[7; 6]);
        assert_eq!(steps[4], "5 pause for the user");
        assert_eq!(steps[5], "6 give up: no mitigation is left");
    }

    #[test]
    fn the_profile_in_use_is_not_a_fallback() {
        assert_eq!(fallback_profile(Some("b"), Some("a")), Ok("b".into()));
        assert_eq!(fallback_profile(Some("b"), None), Ok("b".into()));
        assert!(fallback_profile(Some("a"), Some("a")).is_err());
        assert!(fallback_profile(None, Some("a")).is_err());
    }
}
