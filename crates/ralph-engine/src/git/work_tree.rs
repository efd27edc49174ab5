//! Parses `git status` of a workspace.

use ralph_core::id::CommitId;

use super::survey::Survey;

/// The result of `git status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkTree {
    /// The checked-out commit; none in a repository without commits.
    pub head: Option<CommitId>,
    /// The checked-out branch; none when detached.
    pub branch: Option<String>,
    /// Two letters and a path for every uncommitted change.
    pub entries: Vec<(String, String)>,
    /// The result of the survey before `git status`.
    pub survey: Survey,
}

impl WorkTree {
    /// Returns the paths that are not committed.
    pub fn dirty_paths(&self) -> Vec<String> {
        self.entries.iter().map(|(_, path)| path.clone()).collect()
    }

    /// Returns whether there are untracked files.
    pub fn has_untracked(&self) -> bool {
        self.entries.iter().any(|(code, _)| code == "??")
    }

    /// Parses the output of `git status --porcelain=v2 --branch -z`. The run's own files are left
    /// out.
    pub(super) fn parse(text: &str) -> Self {
        parse_status(text)
    }
}

fn parse_status(text: &str) -> WorkTree {
    let mut tree = WorkTree {
        head: None,
        branch: None,
        entries: Vec::new(),
        survey: Survey::default(),
    };
    let mut parts = text.split('\0');
    while let Some(part) = parts.next() {
        let fields: Vec<&str> = part.splitn(2, ' ').collect();
        let [kind, rest] = fields.as_slice() else {
            continue;
        };
        match *kind {
            "#" => parse_header(rest, &mut tree),
            "1" => push_entry(&mut tree, rest, 7),
            "2" => {
                push_entry(&mut tree, rest, 8);
                // The name before a rename.
                parts.next();
            }
            "u" => push_entry(&mut tree, rest, 9),
            "?" => tree.entries.push(("??".into(), (*rest).to_owned())),
            _ => {}
        }
    }
    tree.entries.retain(|(_, path)| !is_own_file(path));
    tree
}

fn parse_header(rest: &str, tree: &mut WorkTree) {
    if let Some(oid) = rest.strip_prefix("branch.oid ") {
        tree.head = CommitId::parse(oid);
    } else if let Some(name) = rest.strip_prefix("branch.head ") {
        tree.branch = (name != "(detached)").then(|| name.to_owned());
    }
}

fn push_entry(tree: &mut WorkTree, rest: &str, fields_before_path: usize) {
    let fields: Vec<&str> = rest.splitn(fields_before_path + 1, ' ').collect();
    if let (Some(code), Some(path)) = (fields.first(), fields.get(fields_before_path)) {
        tree.entries.push(((*code).to_owned(), (*path).to_owned()));
    }
}

pub(super) fn is_own_file(path: &str) -> bool {
    path == "ralph_task.md" || path == ".ralph" || path.starts_with(".ralph/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_in_all_its_shapes() {
        let id = "a".repeat(40);
        let text = format!(
            "# branch.oid {id}\0# branch.head ralph/t/x\0\
             1 .M N... 100644 100644 100644 {id} {id} src/a b.rs\0\
             2 R. N... 100644 100644 100644 {id} {id} R100 new.rs\0old.rs\0\
             u UU N... 100644 100644 100644 100644 {id} {id} {id} both.rs\0\
             ? un tracked/\0? .ralph/\01 .M N... 100644 100644 100644 {id} {id} ralph_task.md\0"
        );
        let tree = WorkTree::parse(&text);
        assert_eq!(tree.head.as_ref().map(CommitId::as_str), Some(id.as_str()));
        assert_eq!(tree.branch.as_deref(), Some("ralph/t/x"));
        let entries: Vec<(&str, &str)> = tree
            .entries
            .iter()
            .map(|(c, p)| (c.as_str(), p.as_str()))
            .collect();
        assert_eq!(
            entries,
            [
                (".M", "src/a b.rs"),
                ("R.", "new.rs"),
                ("UU", "both.rs"),
                ("??", "un tracked/")
            ]
        );
        let unborn = WorkTree::parse("# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(
            unborn,
            WorkTree {
                head: None,
                ..WorkTree::default()
            }
        );
    }
}
