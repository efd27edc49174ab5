//! The state after a power cut: all synced data, and a random part of the rest.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::disk::{DirectoryEntries, DiskNode, DiskNodeId, FileNode, SimulatedDisk};

/// A deterministic random number generator.
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap();
        mixed % end.max(1)
    }

    fn happens(&mut self, of_ten: usize) -> bool {
        self.below(10) < of_ten
    }
}

/// Writes the state after a power cut at this moment to the real directories.
pub(super) fn write_survivors(disk: &SimulatedDisk, chance: &mut SeededRandom) {
    // Some cuts lose all unsynced data, some lose little.
    let [names_kept, data_kept] = [0, 1].map(|_| [0, 0, 3, 5, 8, 10][chance.below(6)]);
    let mut names: HashMap<DiskNodeId, DirectoryEntries> = HashMap::new();
    for (id, (_, node)) in disk.nodes.iter().enumerate() {
        if let DiskNode::Directory { durable, .. } = node {
            names.insert(id, durable.clone());
        }
    }
    for renaming in &disk.pending {
        if chance.happens(names_kept) {
            renaming.apply(&mut |directory, change| {
                if let Some(names) = names.get_mut(&directory) {
                    change(names);
                }
            });
        }
    }
    let mut contents: HashMap<DiskNodeId, Vec<u8>> = HashMap::new();
    for (id, (_, node)) in disk.nodes.iter().enumerate() {
        if let DiskNode::File(file) = node {
            contents.insert(id, content(file, data_kept, chance));
        }
    }
    for (root, id) in &disk.roots {
        clear(root);
        write_directory(disk, (&names, &contents), *id, root);
    }
}

/// Returns the surviving content of a file: all of it, the synced part, that plus some of the rest,
/// or zeros for the rest.
fn content(file: &FileNode, data_kept: usize, chance: &mut SeededRandom) -> Vec<u8> {
    if chance.happens(data_kept) {
        return file.seen.clone();
    }
    let mut left = file.durable.clone();
    match chance.below(4) {
        0 => {
            let count = chance.below(file.pending.len() + 1);
            for change in &file.pending[..count] {
                change.apply(&mut left);
            }
        }
        1 if file.seen.len() > left.len() => left.resize(file.seen.len(), 0),
        _ => {}
    }
    left
}

fn clear(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

type SurvivingFiles<'a> = (
    &'a HashMap<DiskNodeId, DirectoryEntries>,
    &'a HashMap<DiskNodeId, Vec<u8>>,
);

fn write_directory(disk: &SimulatedDisk, left: SurvivingFiles<'_>, id: DiskNodeId, path: &Path) {
    for (name, id) in &left.0[&id] {
        let path = path.join(name);
        let (mode, node) = &disk.nodes[*id];
        match node {
            DiskNode::File(_) => fs::write(&path, &left.1[id]).unwrap(),
            DiskNode::Link(target) => {
                symlink(target, &path).unwrap();
                continue;
            }
            DiskNode::Directory { .. } => {
                fs::create_dir(&path).unwrap();
                write_directory(disk, left, *id, &path);
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
    }
}
