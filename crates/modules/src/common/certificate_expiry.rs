//! When certificates expire: metrics, and warnings before it is too late.
//!
//! Families add the certificates that they use; one that is renewed by the server itself tells its
//! validity anew each time. A warning comes with the configuration, and then once a day.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use turnpike_lane::counters::{Kind, Row};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::background::{Running, Service};
use turnpike_plan::builder::Builder;
use turnpike_plan::metrics::{Reader, Samples};
use turnpike_wire::certificate::Certificate;

const DAY_S: u64 = 24 * 60 * 60;

/// The longest time before the end at which a warning comes: two weeks are enough to renew a
/// certificate by hand.
const WARNING_S_MAX: u64 = 14 * DAY_S;
/// The part of a certificate's life before its end at which a warning comes, where that is less.
const WARNING_PART: u64 = 3;
/// The server renews a certificate at two thirds of its life, with a random delay of a fiftieth of
/// it: after twice that a renewal is overdue.
const OVERDUE_PARTS: u64 = 25;

/// The metric, in the families that use certificates.
pub(crate) const METRICS: &[Row] = &[
    Row {
        name: "certificate_expiry_timestamp_seconds",
        help: "Unix time at which a certificate expires; `certificate` is its file, or `acme` and \
               its issuer.",
        ..ROW
    },
    Row {
        name: "certificate_start_timestamp_seconds",
        help: "Unix time from which a certificate is valid.",
        ..ROW
    },
];

const ROW: Row = Row {
    name: "",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &["certificate", "names"],
    help: "",
};

/// The validity of a certificate, in Unix seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Validity {
    pub(crate) not_before_s: u64,
    pub(crate) not_after_s: u64,
}

/// A certificate that is used.
pub(crate) trait Expiring: Send + Sync {
    /// The file, or what gives it.
    fn name(&self) -> String;
    /// The names that it is for.
    fn names(&self) -> String;
    /// The validity; `None`: there is none yet.
    fn validity(&self) -> Option<Validity>;
    /// Whether the server renews it itself.
    fn is_renewed(&self) -> bool;
}

/// A certificate from a file.
pub(crate) struct FromFile {
    name: String,
    names: String,
    validity: Validity,
}

impl FromFile {
    /// The certificate of a file of this name; `None` if it cannot be read.
    pub(crate) fn read(name: &str, der: &[u8]) -> Option<FromFile> {
        let read = Certificate::read(der)?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let mut names: Vec<String> = read.extensions.dns_names().map(text).collect();
        if names.is_empty() {
            names.extend(read.subject.common_name().map(text));
        }
        Some(FromFile {
            name: name.to_owned(),
            names: names.join(" "),
            validity: Validity {
                not_before_s: read.not_before_s,
                not_after_s: read.not_after_s,
            },
        })
    }
}

impl Expiring for FromFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> String {
        self.names.clone()
    }

    fn validity(&self) -> Option<Validity> {
        Some(self.validity)
    }

    fn is_renewed(&self) -> bool {
        false
    }
}

impl Validity {
    /// When a warning is due.
    fn warn_at_s(self, is_renewed: bool) -> u64 {
        let Validity {
            not_before_s,
            not_after_s,
        } = self;
        let life_s = not_after_s.saturating_sub(not_before_s);
        let margin_s = WARNING_S_MAX.min(life_s / WARNING_PART);
        let usual_s = not_after_s.saturating_sub(margin_s);
        if is_renewed {
            let overdue_s = life_s / WARNING_PART * 2 + life_s / OVERDUE_PARTS;
            usual_s.max(not_before_s.saturating_add(overdue_s))
        } else {
            usual_s
        }
    }

    /// What is to be said at a time about a certificate of this name.
    pub(crate) fn warning(self, name: &str, is_renewed: bool, now_s: u64) -> Option<String> {
        let left_s = self.not_after_s.saturating_sub(now_s);
        if now_s > self.not_after_s {
            return Some(format!("{name} has expired"));
        }
        if now_s < self.warn_at_s(is_renewed) {
            return None;
        }
        let left = match left_s / DAY_S {
            0 => format!("{} hours", left_s / (60 * 60)),
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        };
        let overdue = if is_renewed {
            ", and its renewal is overdue"
        } else {
            ""
        };
        Some(format!("{name} expires in {left}{overdue}"))
    }
}

/// The certificates of a plan.
#[derive(Default)]
struct Certificates(Mutex<Vec<Arc<dyn Expiring>>>);

impl Certificates {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<dyn Expiring>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be said at a time, and when there may be more to say.
    fn look(&self, now_s: u64) -> (Vec<String>, u64) {
        let mut next_s = now_s + DAY_S;
        let mut said = Vec::new();
        for one in self.all().iter() {
            let Some(validity) = one.validity() else {
                continue;
            };
            let name = format!("certificate \"{}\"", one.name());
            said.extend(validity.warning(&name, one.is_renewed(), now_s));
            let end_s = validity.not_after_s + 1;
            if end_s > now_s {
                next_s = next_s.min(end_s);
            }
        }
        (said, next_s)
    }
}

impl Reader for Certificates {
    fn read(&self, samples: &mut Samples) {
        for one in self.all().iter() {
            let Some(validity) = one.validity() else {
                continue;
            };
            let (name, names) = (one.name(), one.names());
            let values = [validity.not_after_s, validity.not_before_s];
            for (row, value) in METRICS.iter().zip(values) {
                samples.number(row, &[&name, &names], value);
            }
        }
    }
}

/// The daily look at the certificates of a plan.
struct DailyLook {
    certificates: Arc<Certificates>,
    log: ErrorLog,
}

impl Service for DailyLook {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            // What is due now was said when the configuration was read.
            let (_, mut next_s) = self.certificates.look(unix_s());
            loop {
                let pause_s = next_s.saturating_sub(unix_s()).max(1);
                tokio::time::sleep(Duration::from_secs(pause_s)).await;
                let said;
                (said, next_s) = self.certificates.look(unix_s());
                for message in said {
                    self.log.event(Level::Warn, format_args!("{message}"));
                }
            }
        })
    }
}

/// What the builder of a plan keeps.
#[derive(Default)]
struct Kept(Option<Arc<Certificates>>);

/// Has the metrics and the daily look know of a certificate; one that is known already is not
/// looked at twice.
pub(crate) fn watch<S>(builder: &mut Builder<'_, S>, log: &ErrorLog, one: Arc<dyn Expiring>) {
    let kept = builder.store::<Kept>().0.clone();
    let certificates = kept.unwrap_or_else(|| {
        let certificates = Arc::new(Certificates::default());
        builder.store::<Kept>().0 = Some(Arc::clone(&certificates));
        builder.metrics(Arc::clone(&certificates) as Arc<dyn Reader>);
        builder.service(Arc::new(DailyLook {
            certificates: Arc::clone(&certificates),
            log: log.clone(),
        }));
        certificates
    });
    let mut all = certificates.all();
    if all.iter().all(|other| other.name() != one.name()) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    //! When there is something to say, by tables.

    use super::*;

    const fn of(days: u64) -> Validity {
        Validity {
            not_before_s: 0,
            not_after_s: days * DAY_S,
        }
    }

    /// The life in days, whether it is renewed, the day, and what is said.
    const CASES: &[(u64, bool, u64, Option<&str>)] = &[
        (90, false, 75, None),
        (90, false, 76, Some("c expires in 14 days")),
        (90, false, 89, Some("c expires in 1 day")),
        (90, false, 90, Some("c expires in 0 hours")),
        (90, false, 91, Some("c has expired")),
        (6, false, 3, None),
        (6, false, 4, Some("c expires in 2 days")),
        (90, true, 75, None),
        (
            90,
            true,
            76,
            Some("c expires in 14 days, and its renewal is overdue"),
        ),
        // A renewal is due on day 4, and overdue some hours later.
        (6, true, 4, None),
        (
            6,
            true,
            5,
            Some("c expires in 1 day, and its renewal is overdue"),
        ),
        (6, true, 7, Some("c has expired")),
    ];

    #[test]
    fn warnings_come_before_the_end_and_at_it() {
        for (life, is_renewed, day, expected) in CASES {
            let said = of(*life).warning("c", *is_renewed, day * DAY_S);
            assert_eq!(said.as_deref(), *expected, "{life} {is_renewed} {day}");
        }
    }

    #[test]
    fn a_look_comes_each_day_and_at_each_end() {
        let file = |name: &str, validity| FromFile {
            name: name.to_owned(),
            names: String::new(),
            validity,
        };
        let certificates = Certificates::default();
        certificates.all().push(Arc::new(file("a", of(90))));
        certificates.all().push(Arc::new(file("b", of(80))));
        let looks = [
            (10 * DAY_S, vec![], 11 * DAY_S),
            (
                79 * DAY_S + 60,
                vec![
                    "certificate \"a\" expires in 10 days",
                    "certificate \"b\" expires in 23 hours",
                ],
                80 * DAY_S + 1,
            ),
            (
                80 * DAY_S + 1,
                vec![
                    "certificate \"a\" expires in 9 days",
                    "certificate \"b\" has expired",
                ],
                81 * DAY_S + 1,
            ),
        ];
        for (now_s, said, next_s) in looks {
            let said = said.into_iter().map(str::to_owned).collect();
            assert_eq!(certificates.look(now_s), (said, next_s));
        }
    }
}
