//! Checks that the settings of publishing can be used for a run.

use ralph_core::plan::{Delivery, RunPlan};
use ralph_core::publish::PublishPolicy;
use ralph_core::task::Contract;
use ralph_core::trust::{TrustAuthority, TrustFile, judge};
use serde_json::{Value, json};

use crate::error::AppError;

/// The source host without checks.
const LOCAL_HOST: &str = "local";

/// Rejects a task that weakens the settings, or that requires checks where there are none. Checks that
/// only the settings require do not prevent work on a repository of this machine.
pub(crate) fn require_usable(contract: &Contract, plan: &RunPlan) -> Result<(), AppError> {
    let settings = plan.settings.as_ref();
    let policy = settings.and_then(|settings| settings.publish);
    require_no_weaker(contract, &policy.unwrap_or_default())?;
    if contract.ci.required != Some(true) {
        return Ok(());
    }
    let (why, fix) = if plan.delivery == Delivery::Branch {
        (
            "`pr.enabled: false` delivers only a branch, and the checks are those of a pull request".to_owned(),
            "remove one of the two settings from the task",
        )
    } else if plan.scm == LOCAL_HOST {
        (
            format!("`{}` is on this machine and has no checks", plan.repo),
            "remove it, or set `repo_url` to a repository on GitHub",
        )
    } else {
        return Ok(());
    };
    Err(AppError::usage(
        "`ci.required: true` of the task cannot be met",
        why,
        fix,
    ))
}

/// Rejects a task that switches off a setting that only the user may switch off.
fn require_no_weaker(contract: &Contract, policy: &PublishPolicy) -> Result<(), AppError> {
    let required = contract.ci.required.map(Value::from);
    let overlap = contract.overlap.map(|action| json!(action));
    let values = [
        ("ci.required", required, json!(policy.ci.required)),
        ("overlap.action", overlap, json!(policy.overlap)),
    ];
    for (key, value, in_force) in values {
        let Some(value) = value else {
            continue;
        };
        let (authority, _) = judge(TrustFile::Task, key, &value, Some(&in_force));
        if authority != TrustAuthority::Harmless {
            return Err(AppError::usage(
                format!("the task cannot set `{key}` to {value}"),
                format!("ralph.toml sets it to {in_force}, and a task may only be stricter"),
                format!("remove `{key}` from the task, or change it in your ralph.toml"),
            ));
        }
    }
    Ok(())
}
