//! Authority: a repository's files tune a run and make proposals, but decide nothing reserved for
//! the user.

mod approval;
mod branch;
mod credentials;
mod files;
mod sandbox;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::project::Project;

/// An untrusted server that counts connections.
struct HostileServer {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl HostileServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(connection);
            }
        });
        Self {
            address,
            connections,
        }
    }

    #[track_caller]
    fn assert_no_connection(&self, what: &str) {
        let count = self.connections.load(Ordering::SeqCst);
        assert_eq!(count, 0, "{what}");
    }
}

#[test]
fn the_documented_table_has_every_key() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/trust.md");
    let text = std::fs::read_to_string(docs).unwrap();
    for rule in ralph_core::trust::RULES {
        let section = format!("### {}\n", rule.file.name());
        let section = text.split_once(&section).unwrap().1;
        let section = section.split("\n### ").next().unwrap();
        let who = match rule.authority {
            ralph_core::trust::TrustAuthority::UserOnly => "| user |",
            ralph_core::trust::TrustAuthority::Proposal => "| approval |",
            ralph_core::trust::TrustAuthority::Harmless => "| repository |",
        };
        let key = format!("`{}`", rule.key);
        let is_there = section
            .lines()
            .any(|line| line.contains(&key) && line.contains(who));
        assert!(is_there, "{key} {who} is not below {}", rule.file.name());
    }
}

/// Runs a command that must be rejected with exit code 2 and one line containing this text.
#[track_caller]
fn assert_refused(project: &Project, args: &[&str], words: &[&str]) {
    let ended = project.ralph(args).expect(2);
    let line = ended.stderr.trim_end();
    assert_eq!(line.lines().count(), 1, "{args:?}: {}", ended.stderr);
    for word in words {
        assert!(line.contains(word), "{args:?}: {word} is not in: {line}");
    }
}
