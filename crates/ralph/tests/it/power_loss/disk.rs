//! An in-memory disk: the state visible to programs, and the state guaranteed after a power cut.
//!
//! The content of a file is durable after a sync of the file, names after a sync of their directory
//! (a rename after a sync of the target directory), and everything after a sync of the file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ralph_guest::available;

use super::trace::DiskOperation;

pub(super) type DiskNodeId = usize;
pub(super) type DirectoryEntries = BTreeMap<String, DiskNodeId>;

#[derive(Debug, Clone)]
pub(super) enum DiskNode {
    File(FileNode),
    Directory {
        seen: DirectoryEntries,
        durable: DirectoryEntries,
    },
    Link(String),
}

#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// The changes since the last sync.
    pub(super) pending: Vec<ContentChange>,
    cursor: Option<usize>,
    /// Whether all writes append; reads may occur anywhere.
    grows: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ContentChange {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl ContentChange {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => {
                let end = at + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*at..end].copy_from_slice(bytes);
            }
            Self::Truncate(length) => content.resize(*length, 0),
        }
    }
}

/// A change of names that becomes durable with a sync of its directory. It is atomic.
#[derive(Debug, Clone)]
pub(super) struct Renaming {
    directory: DiskNodeId,
    set: Option<(DiskNodeId, String, DiskNodeId)>,
    removed: Option<(DiskNodeId, String, DiskNodeId)>,
}

impl Renaming {
    /// Applies the change to another set of names, which may lack earlier changes.
    pub(super) fn apply(
        &self,
        names: &mut impl FnMut(DiskNodeId, &mut dyn FnMut(&mut DirectoryEntries)),
    ) {
        if let Some((directory, name, id)) = &self.removed {
            names(*directory, &mut |names| {
                if names.get(name) == Some(id) {
                    names.remove(name);
                }
            });
        }
        if let Some((directory, name, id)) = &self.set {
            names(*directory, &mut |names| {
                names.insert(name.clone(), *id);
            });
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedDisk {
    pub(super) nodes: Vec<(u32, DiskNode)>,
    pub(super) roots: Vec<(PathBuf, DiskNodeId)>,
    pub(super) pending: Vec<Renaming>,
}

impl SimulatedDisk {
    /// Reads directories; all their content is durable.
    pub(super) fn read(roots: &[PathBuf]) -> Self {
        let mut disk = Self::default();
        for root in roots {
            let id = disk.read_node(root);
            disk.roots.push((root.clone(), id));
        }
        disk
    }

    fn read_node(&mut self, path: &Path) -> DiskNodeId {
        let metadata = fs::symlink_metadata(path).unwrap();
        let node = if metadata.is_dir() {
            let mut names = DirectoryEntries::new();
            for entry in fs::read_dir(path).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let id = self.read_node(&path.join(&name));
                names.insert(name, id);
            }
            DiskNode::Directory {
                seen: names.clone(),
                durable: names,
            }
        } else if metadata.is_symlink() {
            let target = fs::read_link(path).unwrap();
            DiskNode::Link(target.to_str().unwrap().to_owned())
        } else {
            let seen = fs::read(path).unwrap();
            let durable = seen.clone();
            DiskNode::File(FileNode {
                seen,
                durable,
                ..FileNode::default()
            })
        };
        self.add(metadata.permissions().mode() & 0o777, node)
    }

    fn add(&mut self, mode: u32, node: DiskNode) -> DiskNodeId {
        self.nodes.push((mode, node));
        self.nodes.len() - 1
    }

    /// Returns the node visible at a path.
    pub(super) fn find(&self, path: &Path) -> Option<DiskNodeId> {
        let (root, id) = self.roots.iter().find(|(root, _)| path.starts_with(root))?;
        let rest = available(path.strip_prefix(root))?;
        rest.components()
            .try_fold(*id, |id, part| match &self.nodes[id].1 {
                DiskNode::Directory { seen, .. } => seen.get(part.as_os_str().to_str()?).copied(),
                DiskNode::File(_) | DiskNode::Link(_) => None,
            })
    }

    pub(super) fn file(&self, path: &Path) -> Option<&FileNode> {
        match &self.nodes[self.find(path)?].1 {
            DiskNode::File(file) => Some(file),
            DiskNode::Directory { .. } | DiskNode::Link(_) => None,
        }
    }

    fn file_mut(&mut self, path: &Path) -> Option<&mut FileNode> {
        let id = self.find(path)?;
        match &mut self.nodes[id].1 {
            DiskNode::File(file) => Some(file),
            DiskNode::Directory { .. } | DiskNode::Link(_) => None,
        }
    }

    /// Returns the parent directory and the name of a path.
    fn place(&self, path: &Path) -> Option<(DiskNodeId, String)> {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((self.find(path.parent()?)?, name))
    }

    /// Changes the visible names, and records the change for the next sync.
    fn rename(&mut self, renaming: Renaming) {
        let nodes = &mut self.nodes;
        renaming.apply(&mut |directory, change| {
            if let DiskNode::Directory { seen, .. } = &mut nodes[directory].1 {
                change(seen);
            }
        });
        self.pending.push(renaming);
    }

    /// Creates a node. One that already exists was created in another mount: commands of a sandbox
    /// see an empty directory instead of the state directory, with mount points of the same names.
    fn create(&mut self, path: &Path, mode: u32, node: DiskNode) {
        if self.find(path).is_some() {
            return;
        }
        if let Some((directory, name)) = self.place(path) {
            let id = self.add(mode, node);
            let set = Some((directory, name, id));
            self.rename(Renaming {
                directory,
                set,
                removed: None,
            });
        }
    }

    /// Replays an operation. Paths outside the recorded directories are ignored.
    pub(super) fn apply(&mut self, op: &DiskOperation) {
        match op {
            DiskOperation::Open {
                path,
                create,
                truncate,
                append,
                mode,
            } => {
                if *create {
                    self.create(path, *mode, DiskNode::File(FileNode::default()));
                }
                if let Some(file) = self.file_mut(path) {
                    if *truncate && !file.seen.is_empty() {
                        file.change(ContentChange::Truncate(0));
                    }
                    file.cursor = (!append).then_some(0);
                    file.grows = *append;
                }
            }
            DiskOperation::Write { path, at, bytes } => {
                if let Some(file) = self.file_mut(path) {
                    // Every file has one writer at a time, which continues at its last position.
                    let place = at.or_else(|| file.cursor.take()).unwrap_or(file.seen.len());
                    file.change(ContentChange::Write(place, bytes.clone()));
                }
            }
            DiskOperation::Seek { path, to } => {
                if let Some(file) = self.file_mut(path).filter(|file| !file.grows) {
                    file.cursor = Some(*to);
                }
            }
            DiskOperation::Truncate { path, length } => {
                if let Some(file) = self.file_mut(path) {
                    file.change(ContentChange::Truncate(*length));
                }
            }
            DiskOperation::Copy { from, to, count } => self.copy(from, to, *count),
            DiskOperation::MakeDir { path, mode } => {
                let (seen, durable) = (DirectoryEntries::new(), DirectoryEntries::new());
                self.create(path, *mode, DiskNode::Directory { seen, durable });
            }
            DiskOperation::Symlink { target, path } => {
                self.create(path, 0o777, DiskNode::Link(target.clone()));
            }
            DiskOperation::Mode { path, mode } => {
                if let Some(id) = self.find(path) {
                    self.nodes[id].0 = *mode & 0o777;
                }
            }
            DiskOperation::Remove { path } => self.move_name(path, None),
            DiskOperation::Rename { from, to } => self.move_name(from, Some(to)),
            DiskOperation::Link { from, to } => self.link(from, to),
            DiskOperation::Sync { path } => self.sync(path),
            DiskOperation::SyncAll => self.sync_all(),
        }
    }

    fn copy(&mut self, from: &Path, to: &Path, count: usize) {
        let Some(source) = self.file(from).map(|file| file.seen.clone()) else {
            return;
        };
        if let Some(file) = self.file_mut(to) {
            file.cursor = None;
            let start = file.seen.len();
            let bytes = source[start..start + count].to_vec();
            file.change(ContentChange::Write(start, bytes));
        }
    }

    /// Moves a name, or removes it.
    fn move_name(&mut self, from: &Path, to: Option<&Path>) {
        let (Some((source, name)), Some(id)) = (self.place(from), self.find(from)) else {
            return;
        };
        let set = to.and_then(|to| self.place(to));
        let set = set.map(|(directory, name)| (directory, name, id));
        let directory = set.as_ref().map_or(source, |(directory, ..)| *directory);
        let removed = Some((source, name, id));
        self.rename(Renaming {
            directory,
            set,
            removed,
        });
    }

    fn link(&mut self, from: &Path, to: &Path) {
        if let (Some(id), Some((directory, name))) = (self.find(from), self.place(to)) {
            let set = Some((directory, name, id));
            self.rename(Renaming {
                directory,
                set,
                removed: None,
            });
        }
    }

    fn sync(&mut self, path: &Path) {
        let Some(id) = self.find(path) else { return };
        if let DiskNode::File(file) = &mut self.nodes[id].1 {
            file.sync();
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let (synced, rest): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|renaming| renaming.directory == id);
        self.pending = rest;
        self.make_durable(&synced);
    }

    fn sync_all(&mut self) {
        for (_, node) in &mut self.nodes {
            if let DiskNode::File(file) = node {
                file.sync();
            }
        }
        let pending = std::mem::take(&mut self.pending);
        self.make_durable(&pending);
    }

    fn make_durable(&mut self, renamings: &[Renaming]) {
        let nodes = &mut self.nodes;
        for renaming in renamings {
            renaming.apply(&mut |directory, change| {
                if let DiskNode::Directory { durable, .. } = &mut nodes[directory].1 {
                    change(durable);
                }
            });
        }
    }

    /// Returns the visible differences from another disk.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for ((root, ours), (_, theirs)) in self.roots.iter().zip(&other.roots) {
            self.compare(*ours, other, *theirs, root, &mut found);
        }
        found
    }

    fn compare(
        &self,
        ours: DiskNodeId,
        other: &Self,
        theirs: DiskNodeId,
        path: &Path,
        found: &mut Vec<String>,
    ) {
        match (&self.nodes[ours].1, &other.nodes[theirs].1) {
            (DiskNode::File(a), DiskNode::File(b)) if a.seen == b.seen => {}
            (DiskNode::Link(a), DiskNode::Link(b)) if a == b => {}
            (DiskNode::Directory { seen: a, .. }, DiskNode::Directory { seen: b, .. }) => {
                for name in a
                    .keys()
                    .chain(b.keys().filter(|name| !a.contains_key(*name)))
                {
                    match (a.get(name), b.get(name)) {
                        (Some(a), Some(b)) => {
                            self.compare(*a, other, *b, &path.join(name), found);
                        }
                        (a, _) => {
                            let side = if a.is_some() { "replay" } else { "machine" };
                            found
                                .push(format!("only on the {side}: {}", path.join(name).display()));
                        }
                    }
                }
            }
            _ => found.push(format!("differs: {}", path.display())),
        }
    }
}

impl FileNode {
    fn change(&mut self, change: ContentChange) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.seen);
        self.pending.clear();
    }
}
