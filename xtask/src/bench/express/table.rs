//! The tables of a run, and whether its goals are met.

use super::{KINDS, Kind, OBJECTS, Sample, Samples};
use crate::bench::median;
use crate::outcome::Outcome;

/// A run with fewer hits says nothing about the express lane.
const HIT_SHARE_MIN: f64 = 0.99;

/// What is to be reached, as a part of nginx's.
const WHOLE_GOAL: f64 = 0.45;
const SERVER_GOAL: f64 = 0.15;

/// A row: its object, its kind, the samples of both servers and those of the metered runs, where
/// there are some.
struct Row<'a> {
    object: &'static str,
    kind: Kind,
    plain: &'a [Vec<Sample>; 2],
    metered: Option<&'a [Vec<Sample>; 2]>,
}

fn rows(samples: &Samples) -> impl Iterator<Item = Row<'_>> {
    let is_row = |number: &usize| !KINDS[number % KINDS.len()].is_metered;
    (0..samples.len()).filter(is_row).map(|number| {
        let next = KINDS.get(number % KINDS.len() + 1);
        let is_followed = next.is_some_and(|next| next.is_metered);
        Row {
            object: OBJECTS[number / KINDS.len()].0,
            kind: KINDS[number % KINDS.len()],
            plain: &samples[number],
            metered: is_followed.then(|| &samples[number + 1]),
        }
    })
}

/// One figure of each round.
type Figures = Vec<f64>;

impl Row<'_> {
    fn whole(&self, server: usize) -> Figures {
        figures(&self.plain[server], |sample| sample.whole_us)
    }

    fn of_meter(&self, server: usize, figure: impl Fn(&Sample) -> f64) -> Figures {
        let samples = self.metered.map(|metered| &metered[server]);
        samples.map_or_else(Vec::new, |samples| figures(samples, figure))
    }

    /// The server's part: the whole less the client's.
    fn of_server(&self, server: usize) -> Figures {
        let client = self.of_meter(server, |sample| sample.client_us);
        let both = self.whole(server).into_iter().zip(client);
        both.map(|(whole, client)| whole - client).collect()
    }

    fn request(&self) -> &'static str {
        if self.kind.is_padded {
            "padded"
        } else {
            "plain"
        }
    }

    fn hit_shares(&self) -> Figures {
        let metered = self.metered.into_iter().flat_map(|metered| &metered[0]);
        let all = self.plain[0].iter().chain(metered);
        all.map(|sample| sample.hit_share).collect()
    }
}

fn figures(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> Figures {
    samples.iter().map(figure).collect()
}

/// The ratios of both servers' figures, round by round, in order.
fn ratios([own, other]: [Figures; 2]) -> Figures {
    let both = own.iter().zip(&other);
    let mut ratios: Figures = both.map(|(own, other)| own / other).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// What lies outside of an interval, at each end, at most: 95 % lie inside.
const OUTSIDE_MAX: f64 = 0.025;

/// The interval in which the median of all pairs lies, by those that were measured, whatever their
/// distribution is: between two of them in order, as many from either end (the sign test). `None`:
/// there are too few.
fn interval(ratios: &[f64]) -> Option<(f64, f64)> {
    let count = ratios.len();
    let mut outside = 0.0;
    let mut of_place = 0.5_f64.powi(count as i32);
    let mut place = 0;
    // The chance that so many pairs or fewer are below the median.
    while outside + of_place <= OUTSIDE_MAX && place < count {
        outside += of_place;
        of_place *= (count - place) as f64 / (place + 1) as f64;
        place += 1;
    }
    let place = place.checked_sub(1)?;
    Some((*ratios.get(place)?, *ratios.get(count - 1 - place)?))
}

/// A ratio with its interval.
fn ratio_text(ratios: &[f64]) -> String {
    let of_median = median(ratios);
    match interval(ratios) {
        Some((from, to)) => format!("{of_median:.3} ({from:.3} to {to:.3})"),
        None => format!("{of_median:.3}, from {} only", pairs(ratios.len())),
    }
}

fn pairs(count: usize) -> String {
    format!("{count} pair{}", if count == 1 { "" } else { "s" })
}

/// The table of the whole machine's CPU time.
pub(super) fn whole(samples: &Samples) -> String {
    let mut text = format!(
        "Microseconds of all CPUs for a transaction; medians of the pairs, with 95 % intervals; \
         goal {WHOLE_GOAL:.2}\n\n\
         | object | request | client | turnpike | nginx | ratio | hits | turnpike/s | nginx/s |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows(samples) {
        let figures = [0, 1].map(|server| row.whole(server));
        let per_s = |server: usize| {
            let samples = &row.plain[server];
            median(&figures_of_rate(samples))
        };
        text.push_str(&format!(
            "| {} | {} | {:?} | {:.2} | {:.2} | {} | {:.2} % | {:.0} | {:.0} |\n",
            row.object,
            row.request(),
            row.kind.client,
            median(&figures[0]),
            median(&figures[1]),
            ratio_text(&ratios(figures)),
            100.0 * median(&row.hit_shares()),
            per_s(0),
            per_s(1),
        ));
    }
    text
}

fn figures_of_rate(samples: &[Sample]) -> Figures {
    figures(samples, |sample| sample.per_s)
}

/// The table of the parts of client and server.
pub(super) fn parts(samples: &Samples) -> String {
    let mut text = format!(
        "Microseconds for a transaction, apart: client, server (the whole less the client's), and \
         what of it is seen as the server's; goal {SERVER_GOAL:.2}\n\n\
         | object | request | turnpike: client | server | seen | nginx: client | server | seen | \
         ratio |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows(samples).filter(|row| row.metered.is_some()) {
        let parts = [0, 1].map(|server| {
            format!(
                "{:.2} | {:.2} | {:.2}",
                median(&row.of_meter(server, |sample| sample.client_us)),
                median(&row.of_server(server)),
                median(&row.of_meter(server, |sample| sample.seen_us)),
            )
        });
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.object,
            row.request(),
            parts[0],
            parts[1],
            ratio_text(&ratios([0, 1].map(|server| row.of_server(server)))),
        ));
    }
    text
}

/// Whether the run counts.
///
/// # Errors
/// The objects with too few hits.
pub(super) fn void(samples: &Samples) -> Outcome {
    let is_void = |row: &Row<'_>| {
        row.kind.is_padded && row.hit_shares().iter().any(|share| *share < HIT_SHARE_MIN)
    };
    let void: Vec<&str> = rows(samples)
        .filter(is_void)
        .map(|row| row.object)
        .collect();
    if void.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the run is void: less than 99 % of requests were answered in the driver ({})",
            void.join("; ")
        ))
    }
}

/// Prints whether the driver has answered enough of the padded requests, in the worst run.
fn judge_hits(samples: &Samples) {
    for row in rows(samples).filter(|row| row.kind.has_goals()) {
        let least = row.hit_shares().into_iter().fold(f64::NAN, f64::min);
        println!(
            "{}, hits: {:.2} % at least, goal {:.0} %: {}",
            row.object,
            100.0 * least,
            100.0 * HIT_SHARE_MIN,
            if least >= HIT_SHARE_MIN {
                "met"
            } else {
                "missed"
            }
        );
    }
}

/// Prints a verdict for each goal.
///
/// # Errors
/// The run is void, or goals are missed.
pub(super) fn judge(samples: &Samples) -> Outcome {
    let mut missed = 0;
    for row in rows(samples).filter(|row| row.kind.has_goals()) {
        let whole = ratios([0, 1].map(|server| row.whole(server)));
        let server = ratios([0, 1].map(|server| row.of_server(server)));
        for (what, ratios, goal) in [
            ("whole", whole, WHOLE_GOAL),
            ("server", server, SERVER_GOAL),
        ] {
            let ratio = median(&ratios);
            // A figure that is not there meets nothing.
            let is_met = ratio <= goal;
            missed += usize::from(!is_met);
            println!(
                "{}, {what}: {} of nginx's, goal {goal:.2}: {}",
                row.object,
                ratio_text(&ratios),
                if is_met { "met" } else { "missed" }
            );
        }
    }
    judge_hits(samples);
    void(samples)?;
    match missed {
        0 => Ok(()),
        count => Err(format!("{count} goals are missed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sample(whole_us: f64, client_us: f64, hit_share: f64) -> Sample {
        Sample {
            whole_us,
            client_us,
            seen_us: 0.0,
            per_s: 1.0,
            hit_share,
            stolen_share: 0.0,
        }
    }

    /// A run in which both servers had these samples of every kind.
    fn run(own: Sample, other: Sample) -> Vec<[Vec<Sample>; 2]> {
        vec![[vec![own; 3], vec![other; 3]]; OBJECTS.len() * KINDS.len()]
    }

    #[test]
    fn a_run_is_judged_by_its_goals() {
        let nginx = sample(50.0, 20.0, 0.0);
        for (own, outcome) in [
            (sample(22.0, 18.0, 1.0), Ok(())),
            // The server's part is 5 of 30.
            (sample(22.0, 17.0, 1.0), Err("3 goals are missed")),
            (sample(23.0, 20.0, 1.0), Err("3 goals are missed")),
            (sample(f64::NAN, 20.0, 1.0), Err("6 goals are missed")),
        ] {
            let outcome = outcome.map_err(str::to_owned);
            assert_eq!(judge(&run(own, nginx)), outcome, "{own:?}");
        }
        assert!(judge(&run(sample(22.0, 18.0, 0.98), nginx)).is_err());
    }

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // Tables of the binomial distribution: the place from either end.
        for (count, place) in [
            (1, None),
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (11, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
        ] {
            let ratios: Vec<f64> = (1..=count).map(f64::from).collect();
            let expected = place.map(|place| (f64::from(place), f64::from(count + 1 - place)));
            assert_eq!(interval(&ratios), expected, "{count}");
        }
    }

    #[test]
    fn one_slow_pair_does_not_decide() {
        let (own, nginx) = (sample(22.0, 18.0, 1.0), sample(50.0, 20.0, 0.0));
        let mut samples = run(own, nginx);
        for [own, _] in &mut samples {
            own[1].whole_us = 40.0;
        }
        assert_eq!(judge(&samples), Ok(()));
    }

    #[test]
    fn a_run_with_few_hits_is_void_where_requests_are_padded() {
        let shares = |padded: f64, plain: f64| {
            let mut samples = run(sample(1.0, 1.0, plain), sample(1.0, 1.0, 0.0));
            for (number, [own, _]) in samples.iter_mut().enumerate() {
                if KINDS[number % KINDS.len()].is_padded {
                    *own = vec![sample(1.0, 1.0, padded); 3];
                }
            }
            void(&samples)
        };
        assert_eq!(shares(0.995, 0.0), Ok(()));
        assert!(shares(0.98, 1.0).is_err());
    }
}
