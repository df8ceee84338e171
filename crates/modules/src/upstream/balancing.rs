//! Which directive names which way of choosing.

use turnpike_conf::{Complaint, Entry};
use turnpike_http::variables::Template;
use turnpike_plan::builder::Builder;
use turnpike_upstream::{Balancer, Measure, Until};

use super::passed::Passed;

/// The way of choosing of a group.
#[derive(Default)]
pub(super) struct Method {
    pub(super) balancer: Balancer,
    /// What `hash` hashes.
    pub(super) key: Option<Template>,
}

impl Method {
    /// Reads a directive; `None` where it is about something else.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn read<S: Passed>(
        entry: &Entry,
        builder: &mut Builder<'_, S>,
    ) -> Result<Option<Method>, Complaint> {
        let invalid = |index: usize| format!("invalid parameter \"{}\"", entry.argument(index));
        let words: Vec<&str> = entry
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let mut key = None;
        let balancer = match (entry.row.name, words.as_slice()) {
            ("least_conn", []) => Balancer::LeastConnections,
            ("ip_hash", []) => Balancer::IpHash,
            ("hash", [_, rest @ ..]) => {
                let text = entry.arguments[0].bytes();
                key = Some(Template::compile(&text, &mut builder.variables)?);
                match rest {
                    [] => Balancer::Hash,
                    ["consistent"] => Balancer::ConsistentHash,
                    _ => return Err(invalid(1).into()),
                }
            }
            ("random", []) => Balancer::Random,
            ("random", ["two"] | ["two", "least_conn"]) => {
                Balancer::RandomTwo(Measure::Connections)
            }
            ("random", ["two", measure]) => {
                let time = measure.strip_prefix("least_time=");
                let until = time.and_then(time_named::<S>).ok_or_else(|| invalid(1))?;
                Balancer::RandomTwo(Measure::Time(until))
            }
            ("random", _) => return Err(invalid(0).into()),
            ("least_time", [until, rest @ ..]) => {
                let until =
                    time_named::<S>(until).ok_or_else(|| format!("invalid value \"{until}\""))?;
                match rest {
                    [] => Balancer::LeastTime {
                        until,
                        inflight: false,
                    },
                    ["inflight"] => Balancer::LeastTime {
                        until,
                        inflight: true,
                    },
                    _ => return Err(invalid(1).into()),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(Method { balancer, key }))
    }
}

/// Whether a server's parameter makes sense with the method.
pub(super) fn supports(balancer: Balancer, parameter: &str) -> bool {
    let in_turn = matches!(
        balancer,
        Balancer::RoundRobin | Balancer::LeastConnections | Balancer::LeastTime { .. }
    );
    in_turn || (parameter != "backup" && !parameter.starts_with("slow_start="))
}

/// The time of that name.
fn time_named<S: Passed>(name: &str) -> Option<Until> {
    let mut times = S::TIMES.iter();
    times
        .find(|(known, _)| *known == name)
        .map(|(_, until)| *until)
}
