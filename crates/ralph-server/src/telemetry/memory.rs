//! The memory of this process.

/// Returns the resident memory in bytes; `None` if the system does not report it.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status");
    let status = status.map_or(None, Some)?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().map_or(None, Some)?;
    kibibytes.checked_mul(1024)
}
