//! The memory of processes under test.

/// The anonymous memory of a process; what it shares with its master counts by its part. Pages of
/// the program are left out: their parts change when other servers begin and end.
pub fn anonymous_bytes(process: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.unwrap().trim().parse::<u64>().unwrap() * 1024
}
