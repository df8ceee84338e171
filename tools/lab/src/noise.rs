//! The runs that must not be used for a claim, with the reasons. All limits are here.

use crate::metric::Figure;
use crate::record::Run;

/// Share of all CPU time that processes other than server and driver may take: above it, a
/// difference of a few percent is theirs.
pub const FOREIGN_SHARE_MAX: f64 = 0.10;

/// Share of CPU time that the hypervisor may take away.
const STEAL_SHARE_MAX: f64 = 0.05;

/// Share of requests that may fail: above it, the comparison would be one of failures.
const ERROR_SHARE_MAX: f64 = 0.01;

/// The marks of a run. `limited`: why the driver was the limit. `requests`: their number.
pub(crate) fn marks(run: &Run, limited: Option<&str>, requests: f64) -> Vec<String> {
    let share = |name: &str| run.figures.get(name).and_then(Figure::value).unwrap_or(0.0);
    let mut marks = Vec::new();
    if let Some(why) = limited {
        marks.push(format!("client-limited: {}", why.replace("; ", ", ")));
    }
    if share("foreign_share") > FOREIGN_SHARE_MAX {
        let percent = share("foreign_share") * 100.0;
        marks.push(format!("noise: others took {percent:.0} % of the CPUs"));
    }
    if share("steal_share") > STEAL_SHARE_MAX {
        let percent = share("steal_share") * 100.0;
        marks.push(format!(
            "noise: the hypervisor took {percent:.0} % of the CPUs"
        ));
    }
    let errors = share("errors");
    if errors > ERROR_SHARE_MAX * requests.max(1.0) {
        marks.push(format!(
            "errors: {errors:.0} of {requests:.0} requests failed"
        ));
    }
    marks
}

#[cfg(test)]
mod tests;
