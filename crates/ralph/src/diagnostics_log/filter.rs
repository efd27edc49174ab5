//! The filter of the diagnostics log: the value of `RALPH_LOG`.

use tracing::Metadata;
use tracing::level_filters::LevelFilter;

/// The prefix of the targets that a level without a target applies to. Events of libraries can repeat
/// requests, so they are logged only if their crate is named.
const OWN_TARGETS: &str = "ralph";

/// Levels by target. The longest target that matches an event decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFilter {
    /// Sorted by the length of the target, longest first.
    levels: Vec<(String, LevelFilter)>,
}

impl LogFilter {
    /// Parses the value of `RALPH_LOG`, such as `debug` or `ralph_gate=trace,warn`. Without one,
    /// the number of `-v` flags decides. Also returns a message for each invalid part.
    pub(super) fn new(value: Option<&str>, verbosity: u8) -> (Self, Vec<String>) {
        let default = match verbosity {
            0 => LevelFilter::INFO,
            1 => LevelFilter::DEBUG,
            2.. => LevelFilter::TRACE,
        };
        let mut levels = vec![(OWN_TARGETS.to_owned(), default)];
        let mut problems = Vec::new();
        let parts = value.unwrap_or_default().split(',').map(str::trim);
        for part in parts.filter(|part| !part.is_empty()) {
            let (target, level) = part.split_once('=').unwrap_or((OWN_TARGETS, part));
            match level.parse() {
                Ok(level) => {
                    levels.retain(|(known, _)| known != target);
                    levels.push((target.to_owned(), level));
                }
                Err(_) => problems.push(format!(
                    "`{part}` in RALPH_LOG is ignored: a level is off, error, warn, info, debug or trace"
                )),
            }
        }
        levels.sort_by_key(|(target, _)| std::cmp::Reverse(target.len()));
        (Self { levels }, problems)
    }

    pub(super) fn enables(&self, metadata: &Metadata<'_>) -> bool {
        self.level_of(metadata.target()) >= *metadata.level()
    }

    fn level_of(&self, target: &str) -> LevelFilter {
        let matching = self.levels.iter().find(|(prefix, _)| {
            let rest = target.strip_prefix(prefix.as_str());
            // `ralph` also stands for `ralph_gate`, `ralph_core` and so on.
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with("::") || prefix == OWN_TARGETS
            })
        });
        matching.map_or(LevelFilter::OFF, |(_, level)| *level)
    }

    pub(super) fn max_level(&self) -> LevelFilter {
        let levels = self.levels.iter().map(|(_, level)| *level);
        levels.max().unwrap_or(LevelFilter::OFF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_target_decides() {
        for (value, target, level) in [
            (None, "ralph_gate::audit", LevelFilter::INFO),
            (None, "ralph::cli", LevelFilter::INFO),
            (None, "hyper_util::client", LevelFilter::OFF),
            (Some("debug"), "ralph_engine", LevelFilter::DEBUG),
            (Some("off"), "ralph_engine", LevelFilter::OFF),
            (
                Some("ralph_gate=trace,warn"),
                "ralph_gate::audit",
                LevelFilter::TRACE,
            ),
            (
                Some("ralph_gate=trace,warn"),
                "ralph_gateway",
                LevelFilter::WARN,
            ),
            (
                Some("warn, ralph_gate::dns=off"),
                "ralph_gate::dns",
                LevelFilter::OFF,
            ),
            (
                Some("warn, ralph_gate::dns=off"),
                "ralph_gate::http",
                LevelFilter::WARN,
            ),
            (
                Some("hyper_util=debug"),
                "hyper_util::client",
                LevelFilter::DEBUG,
            ),
            (Some("hyper_util=debug"), "ralph_gate", LevelFilter::INFO),
        ] {
            let (filter, problems) = LogFilter::new(value, 0);
            assert_eq!(filter.level_of(target), level, "{value:?} {target}");
            assert_eq!(problems, Vec::<String>::new(), "{value:?}");
        }
    }

    #[test]
    fn verbosity_counts_only_without_a_level() {
        for (value, verbosity, level) in [
            (None, 1, LevelFilter::DEBUG),
            (None, 2, LevelFilter::TRACE),
            (None, 9, LevelFilter::TRACE),
            (Some("error"), 2, LevelFilter::ERROR),
        ] {
            let (filter, _) = LogFilter::new(value, verbosity);
            assert_eq!(filter.level_of("ralph"), level, "{value:?} {verbosity}");
            assert_eq!(filter.max_level(), level, "{value:?} {verbosity}");
        }
    }

    #[test]
    fn an_unreadable_part_is_reported_and_the_rest_applies() {
        let (filter, problems) = LogFilter::new(Some("loud,ralph_gate=debug,x=y"), 0);
        assert_eq!(filter.level_of("ralph_gate"), LevelFilter::DEBUG);
        assert_eq!(filter.level_of("ralph"), LevelFilter::INFO);
        let level = "a level is off, error, warn, info, debug or trace";
        assert_eq!(
            problems,
            [
                format!("`loud` in RALPH_LOG is ignored: {level}"),
                format!("`x=y` in RALPH_LOG is ignored: {level}"),
            ]
        );
    }
}
