//! The memory of this process.

/// Returns the resident memory in bytes; `None` if the system does not report it.
pub(super) fn resident_bytes() -> Option<u64> {
    // Other systems have no such file.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_else(|_| String::new());
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = ralph_core::parse_value(line.split_whitespace().next()?)?;
    kibibytes.checked_mul(1024)
}
