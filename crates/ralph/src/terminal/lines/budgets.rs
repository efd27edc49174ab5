//! Budgets: bars on a terminal, one line elsewhere.

use ralph_core::budget::{self, Budget, BudgetLimits, BudgetUse, Spent};
use ralph_core::state::RunState;

use super::Style;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::width;

/// The number of blocks in a full bar.
const BAR_BLOCKS: u8 = 10;
/// The columns of a budget's name.
const NAME_COLUMNS: usize = 11;

/// Formats the status of a run while it progresses: `boxes 1/3 · loop 0.2 · iterations 3/30 · …`.
pub fn progress_summary(state: &RunState) -> String {
    let mut parts = vec![format!("boxes {}/{}", state.ticked.len(), state.checkboxes)];
    let score = state.loop_scores.last();
    parts.extend(score.map(|score| format!("loop {score:.1}")));
    let uses = budget::budget_uses(&state.limits, &state.spent());
    let has_iterations = uses.iter().any(|used| used.budget == Budget::Iterations);
    if !has_iterations {
        parts.insert(0, format!("iteration {}", state.iteration));
    }
    parts.extend(
        uses.iter()
            .map(|used| format!("{} {}/{}", used.budget, used.used, used.limit)),
    );
    parts.join(" · ")
}

/// Returns the use of every budget that is set.
pub fn lines(limits: &BudgetLimits, spent: &Spent, style: Style) -> Vec<StyledLine> {
    let uses = budget::budget_uses(limits, spent);
    match style {
        _ if uses.is_empty() => Vec::new(),
        Style::Plain => vec![plain_line(&uses)],
        Style::Rich { columns } => bars(&uses, columns),
    }
}

/// Draws the bars in as many columns as fit side by side.
fn bars(uses: &[BudgetUse], columns: usize) -> Vec<StyledLine> {
    let room = uses
        .iter()
        .map(|use_| usage_numbers(use_).len())
        .max()
        .unwrap_or_default()
        + 2;
    let cell = NAME_COLUMNS + usize::from(BAR_BLOCKS) + room;
    // The indent and the gap after the last bar have the same two columns.
    let per_line = (columns / cell).max(1);
    uses.chunks(per_line).map(|uses| row(uses, room)).collect()
}

fn row(uses: &[BudgetUse], room: usize) -> StyledLine {
    uses.iter()
        .enumerate()
        .fold(StyledLine::from_text("  "), |line, (index, use_)| {
            let is_last = index + 1 == uses.len();
            push_bar(line, use_, if is_last { 0 } else { room })
        })
}

/// Returns the limits in one text: `30 iterations · 120m wall time · $10.00 cost`.
pub fn limits_text(limits: &BudgetLimits) -> String {
    let parts: Vec<String> = budget::budget_uses(limits, &Spent::default())
        .iter()
        .map(|use_| {
            let name = use_.budget.to_string();
            let is_one = use_.limit == "1";
            let name = if is_one {
                name.trim_end_matches('s')
            } else {
                &name
            };
            format!("{} {name}", use_.limit)
        })
        .collect();
    parts.join(" · ")
}

fn plain_line(uses: &[BudgetUse]) -> StyledLine {
    let parts: Vec<String> = uses
        .iter()
        .map(|use_| {
            let BudgetUse {
                budget,
                used,
                limit,
                ..
            } = use_;
            format!("{budget} {used}/{limit} ({}%)", percent(use_.share))
        })
        .collect();
    StyledLine::from_text(&format!("  budgets: {}", parts.join(", ")))
}

fn usage_numbers(use_: &BudgetUse) -> String {
    format!(" {:>3}% {}/{}", percent(use_.share), use_.used, use_.limit)
}

fn push_bar(line: StyledLine, use_: &BudgetUse, room: usize) -> StyledLine {
    let filled = (1..=BAR_BLOCKS)
        .filter(|block| use_.share * f64::from(BAR_BLOCKS) >= f64::from(*block))
        .count();
    let empty = usize::from(BAR_BLOCKS) - filled;
    let tone = match use_.share {
        share if share >= 0.95 => Tone::Bad,
        share if share >= 0.8 => Tone::Warn,
        _ => Tone::Good,
    };
    line.quiet(&width::pad(&use_.budget.to_string(), NAME_COLUMNS))
        .span(tone, &"▮".repeat(filled))
        .quiet(&"▯".repeat(empty))
        .plain(&width::pad(&usage_numbers(use_), room))
}

fn percent(share: f64) -> String {
    format!("{:.0}", (share * 100.0).floor().min(999.0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ralph_core::money::Usd;
    use snapbox::{assert_data_eq, str};

    use super::*;
    use crate::terminal::styled_line::Colour;

    fn shown(style: Style) -> String {
        let limits = BudgetLimits {
            max_iterations: Some(30),
            max_wall_time: Some(Duration::from_hours(2)),
            max_cost: Usd::from_dollars(10.0),
            max_tokens: Some(1000),
        };
        let spent = Spent {
            iterations: 3,
            wall_time: Duration::from_secs(30),
            cost: Usd::from_dollars(8.5).unwrap(),
            tokens: 1200,
        };
        lines(&limits, &spent, style)
            .iter()
            .map(|line| line.render(Colour::Unused, None) + "\n")
            .collect()
    }

    #[test]
    fn bars_are_side_by_side_if_they_fit() {
        assert_data_eq!(
            shown(Style::Rich { columns: 80 }),
            str![[r"
  iterations ▮▯▯▯▯▯▯▯▯▯  10% 3/30
  wall time  ▯▯▯▯▯▯▯▯▯▯   0% 30s/120m
  cost       ▮▮▮▮▮▮▮▮▯▯  85% $8.50/$10.00
  tokens     ▮▮▮▮▮▮▮▮▮▮ 120% 1200/1000

"]]
        );
        assert_data_eq!(
            shown(Style::Rich { columns: 60 }),
            str![[r"
  iterations ▮▯▯▯▯▯▯▯▯▯  10% 3/30
  wall time  ▯▯▯▯▯▯▯▯▯▯   0% 30s/120m
  cost       ▮▮▮▮▮▮▮▮▯▯  85% $8.50/$10.00
  tokens     ▮▮▮▮▮▮▮▮▮▮ 120% 1200/1000

"]]
        );
        assert_data_eq!(
            shown(Style::Plain),
            str![[r"
  budgets: iterations 3/30 (10%), wall time 30s/120m (0%), cost $8.50/$10.00 (85%), tokens 1200/1000 (120%)

"]]
        );
    }

    #[test]
    fn without_limits_there_is_nothing_to_show() {
        assert!(lines(&BudgetLimits::default(), &Spent::default(), Style::Plain).is_empty());
    }
}
