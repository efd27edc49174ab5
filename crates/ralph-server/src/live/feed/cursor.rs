//! Positions in the stream of all runs.

use std::fmt;

use crate::index::FeedPosition;

/// A position between two events of one instance of the feed. Positions are ordered like the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FeedPoint {
    /// The last entry whose events are all before the position.
    pub(super) entry: u64,
    /// The last record of the next entry that is before the position; 0 at the start of the entry.
    pub(super) seq: u64,
}

impl FeedPoint {
    /// Behind all events.
    pub(super) const END: Self = Self {
        entry: u64::MAX,
        seq: u64::MAX,
    };

    /// Returns the position behind an entry.
    pub(super) fn behind(entry: u64) -> Self {
        Self { entry, seq: 0 }
    }
}

/// A position that clients name. It has a meaning within one instance of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamCursor {
    pub(super) instance: String,
    pub(super) point: FeedPoint,
}

impl StreamCursor {
    pub(super) fn head(head: &FeedPosition) -> Self {
        Self {
            instance: head.instance.clone(),
            point: FeedPoint::behind(head.position),
        }
    }

    /// Returns the position of the index before this one.
    pub(super) fn position(&self) -> FeedPosition {
        FeedPosition {
            instance: self.instance.clone(),
            position: self.point.entry,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let cursor = Self {
            instance: parts.next()?.to_owned(),
            point: FeedPoint {
                entry: ralph_core::parse_value(parts.next()?)?,
                seq: ralph_core::parse_value(parts.next()?)?,
            },
        };
        parts.next().is_none().then_some(cursor)
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FeedPoint { entry, seq } = self.point;
        write!(f, "{}.{entry}.{seq}", self.instance)
    }
}

/// Where the stream of all runs starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum FeedStart {
    /// With new events.
    #[default]
    Newest,
    /// Behind the event with this cursor.
    Behind(String),
}

impl FeedStart {
    /// Returns the position; none for new events and for a text that is no cursor.
    pub(super) fn cursor(&self) -> Option<StreamCursor> {
        match self {
            Self::Newest => None,
            Self::Behind(text) => StreamCursor::parse(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_text_that_clients_send_back() {
        let cursor = StreamCursor {
            instance: "00ff".to_owned(),
            point: FeedPoint { entry: 7, seq: 3 },
        };
        assert_eq!(cursor.to_string(), "00ff.7.3");
        assert_eq!(StreamCursor::parse("00ff.7.3"), Some(cursor));
        for invalid in ["", "00ff", "00ff.7", "00ff.7.x", "00ff.-1.0", "00ff.7.3.1"] {
            assert_eq!(StreamCursor::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn positions_inside_of_an_entry_are_before_its_end() {
        let inside = |seq| FeedPoint { entry: 4, seq };
        assert!(FeedPoint::behind(4) < inside(1));
        assert!(inside(1) < inside(2));
        assert!(inside(2) < FeedPoint::behind(5));
        assert!(FeedPoint::behind(5) < FeedPoint::END);
    }
}
