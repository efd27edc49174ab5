//! Records the file system operations of a command and all its children, with strace.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ralph_core::parse_value;
use ralph_guest::available;

/// The calls that change or sync files, and those that show where a process works.
const CALLS: &str = "trace=?openat,?openat2,?open,?creat,?write,?writev,?pwrite64,?lseek,?ftruncate,?truncate,\
    ?copy_file_range,?sendfile,?rename,?renameat,?renameat2,?link,?linkat,?unlink,?unlinkat,?mkdir,?mkdirat,\
    ?rmdir,?symlink,?symlinkat,?fsync,?fdatasync,?syncfs,?sync,?chmod,?fchmod,?fchmodat,?chdir,?fchdir";

/// Larger than any single write of these tests.
const LONGEST_WRITE: &str = "8388608";

/// The umask under which the tests run.
const UMASK: u32 = 0o022;

/// One successful operation, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DiskOperation {
    Open {
        path: PathBuf,
        create: bool,
        truncate: bool,
        append: bool,
        mode: u32,
    },
    Write {
        path: PathBuf,
        at: Option<usize>,
        bytes: Vec<u8>,
    },
    Seek {
        path: PathBuf,
        to: usize,
    },
    Truncate {
        path: PathBuf,
        length: usize,
    },
    Copy {
        from: PathBuf,
        to: PathBuf,
        count: usize,
    },
    MakeDir {
        path: PathBuf,
        mode: u32,
    },
    Remove {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Symlink {
        target: String,
        path: PathBuf,
    },
    Mode {
        path: PathBuf,
        mode: u32,
    },
    Sync {
        path: PathBuf,
    },
    SyncAll,
}

/// Runs a command and returns the file operations of it and its children, in order.
pub(super) fn record(command: &Command) -> (Output, Vec<DiskOperation>) {
    let notes = tempfile::tempdir().unwrap();
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = Command::new("strace")
        .args(["-ff", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", LONGEST_WRITE])
        .args(["-e", "signal=none", "-e", CALLS])
        .args(["--absolute-timestamps=format:unix,precision:ns", "--syscall-times=ns", "-o"])
        .arg(notes.path().join("calls"))
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(variables)
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("these tests record a run by `strace`, which cannot be started: {error}; `scripts/test` installs it")
        });
    let mut done: Vec<(u64, DiskOperation)> = Vec::new();
    for entry in fs::read_dir(notes.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut process = TracedProcess::default();
        done.extend(text.lines().filter_map(|line| process.operation(line)));
    }
    done.sort_by_key(|(ended, _)| *ended);
    (output, done.into_iter().map(|(_, op)| op).collect())
}

/// The state of a process while its calls are parsed.
#[derive(Default)]
struct TracedProcess {
    directory: PathBuf,
}

/// One line of strace: time, name, arguments and result of a call.
struct TracedCall<'a> {
    ended: u64,
    name: &'a str,
    arguments: Vec<&'a str>,
    returned: usize,
}

impl<'a> TracedCall<'a> {
    /// Parses a call that succeeded.
    fn parse(line: &'a str) -> Option<Self> {
        let (stamp, rest) = line.split_once(' ')?;
        let (call, took) = rest.rsplit_once(" <")?;
        let (call, returned) = call.rsplit_once(" = ")?;
        let (name, arguments) = call.split_once('(')?;
        let digits = returned.split(['<', ' ']).next()?;
        Some(Self {
            ended: nanoseconds(stamp)? + nanoseconds(took.strip_suffix('>')?)?,
            name,
            arguments: split_arguments(arguments.trim_end().strip_suffix(')')?),
            returned: parse_value(digits)?,
        })
    }

    fn argument(&self, index: usize) -> &'a str {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    /// Returns the file of a descriptor.
    fn file(&self, index: usize) -> Option<PathBuf> {
        descriptor_path(self.argument(index))
    }
}

impl TracedProcess {
    /// Resolves a path: absolute, relative to a descriptor's directory, or to the working
    /// directory.
    fn path(&self, directory: Option<&str>, name: &str) -> PathBuf {
        let base = directory.and_then(descriptor_path);
        absolute(
            &base.unwrap_or_else(|| self.directory.clone()),
            &unquote(name),
        )
    }

    fn operation(&mut self, line: &str) -> Option<(u64, DiskOperation)> {
        let call = TracedCall::parse(line)?;
        let first = call.argument(0);
        if first.starts_with("AT_FDCWD<") {
            self.directory = descriptor_path(first)?;
        }
        if let Some(name) = call
            .name
            .strip_suffix("dir")
            .filter(|name| name.ends_with("ch"))
        {
            self.directory = match name {
                "ch" => self.path(None, first),
                _ => call.file(0)?,
            };
            return None;
        }
        Some((call.ended, self.parse_change(&call)?))
    }

    fn parse_change(&self, call: &TracedCall<'_>) -> Option<DiskOperation> {
        self.parse_content_change(call)
            .or_else(|| self.parse_name_change(call))
    }

    fn parse_content_change(&self, call: &TracedCall<'_>) -> Option<DiskOperation> {
        let at = |index: usize| self.path(Some(call.argument(index)), call.argument(index + 1));
        let plain = |index: usize| self.path(None, call.argument(index));
        let (path, second) = (call.file(0), call.argument(1));
        match call.name {
            "openat" => parse_open(at(0), call.argument(2), call.argument(3)),
            "openat2" => {
                let how = |key: &str| field(call.argument(2), key);
                parse_open(at(0), how("flags="), how("mode="))
            }
            "open" => parse_open(plain(0), second, call.argument(2)),
            "creat" => parse_open(plain(0), "O_CREAT|O_TRUNC|O_WRONLY", second),
            "write" | "writev" | "pwrite64" => parse_write(call),
            "lseek" => path.map(|path| DiskOperation::Seek {
                path,
                to: call.returned,
            }),
            "ftruncate" => Some(DiskOperation::Truncate {
                path: path?,
                length: number(second)?,
            }),
            "truncate" => Some(DiskOperation::Truncate {
                path: plain(0),
                length: number(second)?,
            }),
            "copy_file_range" => Some(DiskOperation::Copy {
                from: path?,
                to: call.file(2)?,
                count: call.returned,
            }),
            "sendfile" => Some(DiskOperation::Copy {
                from: call.file(1)?,
                to: path?,
                count: call.returned,
            }),
            "chmod" => Some(DiskOperation::Mode {
                path: plain(0),
                mode: octal(second)?,
            }),
            "fchmod" => Some(DiskOperation::Mode {
                path: path?,
                mode: octal(second)?,
            }),
            "fchmodat" => Some(DiskOperation::Mode {
                path: at(0),
                mode: octal(call.argument(2))?,
            }),
            "fsync" | "fdatasync" => path.map(|path| DiskOperation::Sync { path }),
            "syncfs" | "sync" => Some(DiskOperation::SyncAll),
            _ => None,
        }
    }

    fn parse_name_change(&self, call: &TracedCall<'_>) -> Option<DiskOperation> {
        let at = |index: usize| self.path(Some(call.argument(index)), call.argument(index + 1));
        let plain = |index: usize| self.path(None, call.argument(index));
        let target = || unquote(call.argument(0));
        Some(match call.name {
            "rename" => DiskOperation::Rename {
                from: plain(0),
                to: plain(1),
            },
            "renameat" | "renameat2" => DiskOperation::Rename {
                from: at(0),
                to: at(2),
            },
            "link" => DiskOperation::Link {
                from: plain(0),
                to: plain(1),
            },
            "linkat" => DiskOperation::Link {
                from: at(0),
                to: at(2),
            },
            "unlink" | "rmdir" => DiskOperation::Remove { path: plain(0) },
            "unlinkat" => DiskOperation::Remove { path: at(0) },
            "mkdir" => DiskOperation::MakeDir {
                path: plain(0),
                mode: octal(call.argument(1))? & !UMASK,
            },
            "mkdirat" => DiskOperation::MakeDir {
                path: at(0),
                mode: octal(call.argument(2))? & !UMASK,
            },
            "symlink" => DiskOperation::Symlink {
                target: target(),
                path: plain(1),
            },
            "symlinkat" => DiskOperation::Symlink {
                target: target(),
                path: at(1),
            },
            _ => return None,
        })
    }
}

fn parse_open(path: PathBuf, flags: &str, mode: &str) -> Option<DiskOperation> {
    let has = |flag: &str| flags.split('|').any(|other| other == flag);
    let is_written = has("O_WRONLY") || has("O_RDWR") || has("O_CREAT") || has("O_TRUNC");
    is_written.then(|| DiskOperation::Open {
        path,
        create: has("O_CREAT"),
        truncate: has("O_TRUNC"),
        append: has("O_APPEND"),
        mode: octal(mode).unwrap_or_default() & !UMASK,
    })
}

/// Returns a field of a structure such as `{flags=O_RDWR|O_CREAT, mode=0600}`.
fn field<'a>(structure: &'a str, key: &str) -> &'a str {
    let inside = structure.trim_matches(['{', '}']);
    let mut fields = inside.split(", ");
    fields
        .find_map(|field| field.strip_prefix(key))
        .unwrap_or_default()
}

fn parse_write(call: &TracedCall<'_>) -> Option<DiskOperation> {
    let path = call.file(0)?;
    // The elements of a vector are its only strings.
    let quoted = call.argument(1).split('"').skip(1).step_by(2);
    let mut bytes: Vec<u8> = quoted.flat_map(decode_hex).collect();
    bytes.truncate(call.returned);
    assert_eq!(bytes.len(), call.returned, "{} is cut", path.display());
    let at = (call.name == "pwrite64").then(|| number(call.argument(3)));
    Some(DiskOperation::Write {
        path,
        at: at.flatten(),
        bytes,
    })
}

/// Splits arguments at commas. Strings and paths are written as hexadecimal numbers.
fn split_arguments(arguments: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (index, byte) in arguments.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(arguments[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[start..].trim());
    parts
}

/// Returns the path of a descriptor such as `3<\x2f\x74>`; `None` if it was deleted or is not a
/// file.
fn descriptor_path(descriptor: &str) -> Option<PathBuf> {
    let (_, rest) = descriptor.split_once('<')?;
    let (path, after) = rest.rsplit_once('>')?;
    let path = available(String::from_utf8(decode_hex(path)))?;
    let is_file = after.is_empty() && path.starts_with('/') && !path.ends_with(" (deleted)");
    is_file.then(|| PathBuf::from(path))
}

fn unquote(quoted: &str) -> String {
    let inside = quoted.split('"').nth(1).unwrap_or_default();
    String::from_utf8(decode_hex(inside)).unwrap()
}

fn decode_hex(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.split("\\x").skip(1);
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

/// Joins paths without resolving links, of which the recorded directories have none.
fn absolute(base: &Path, path: &str) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

fn number(text: &str) -> Option<usize> {
    parse_value(text)
}

fn octal(text: &str) -> Option<u32> {
    available(u32::from_str_radix(text, 8))
}

fn nanoseconds(stamp: &str) -> Option<u64> {
    let (seconds, fraction) = stamp.split_once('.')?;
    let fraction: u64 = parse_value(&format!("{fraction:0<9}"))?;
    Some(parse_value::<u64>(seconds)? * 1_000_000_000 + fraction)
}

/// Counts operations by kind, for manual inspection of a recording.
pub(super) fn summary(ops: &[DiskOperation]) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for op in ops {
        let kind = match op {
            DiskOperation::Sync { .. } => "sync",
            DiskOperation::SyncAll => "syncfs",
            DiskOperation::Write { .. }
            | DiskOperation::Truncate { .. }
            | DiskOperation::Copy { .. } => "write",
            DiskOperation::Rename { .. }
            | DiskOperation::Link { .. }
            | DiskOperation::Remove { .. } => "rename",
            DiskOperation::Open { .. }
            | DiskOperation::Seek { .. }
            | DiskOperation::Mode { .. } => "open",
            DiskOperation::MakeDir { .. } | DiskOperation::Symlink { .. } => "make",
        };
        *counts.entry(kind).or_default() += 1;
    }
    let mut counts: Vec<String> = counts
        .iter()
        .map(|(kind, n)| format!("{kind} {n}"))
        .collect();
    counts.sort();
    counts.join(", ")
}
