//! The express lane beside nginx: small objects, one request per connection, over a pair of virtual
//! interfaces between two network namespaces.
//!
//! Two figures are measured for a transaction (connect, request, answer, close):
//!
//! - **whole**: the time that all CPUs of the machine were busy, of clients, server and kernel.
//! - **server**: the whole less the client's part, which `meter` measures in runs of their own,
//!   since measuring costs time itself. What is neither's for certain counts as the server's.
//!
//! The interfaces are set as most network cards are, for both servers: frames are taken in by NAPI
//! (`gro on`), one frame a segment (`tso off`). Beside ours, the client's interface has a program,
//! since veth needs one to take in what the other interface's program sends. Beside nginx it has
//! none: it would make nginx's answers dearer.
//!
//! A pair of runs, of both servers, takes a few seconds; there are many, in turns, and a ratio is
//! the median of those of the pairs. So a host that is slow for a while makes some pairs slow, or
//! slows both sides of them. A pair is measured again where the host has taken more than a little
//! of the CPUs' time meanwhile (steal).
//!
//! Requests are padded to the size of the answer, so that it has room in the request's frame;
//! figures without padding stand beside. With padding, a run with less than 99 % of requests
//! answered in the driver is void. The goals are for wrk; `turnpike load` stands beside.

mod meter;
mod place;
mod table;

use super::median;
use super::progress::Progress;
use crate::contender::{self, Contender};
use crate::options::Options;
use crate::outcome::Outcome;
use place::Place;

/// Pairs of what has goals: 95 % of intervals from the second least ratio to the second largest
/// contain the median then.
const ROUNDS: usize = 9;
/// Pairs of what stands beside.
const ROUNDS_BESIDE: usize = 2;
/// Seconds of a measurement.
const SECONDS: u64 = 2;
/// Enough to see that everything works; its figures are held against no goal.
const QUICK: (usize, u64) = (1, 1);

/// The part of the CPUs' time that the host may take during a measurement.
const STOLEN_SHARE_MAX: f64 = 0.02;
/// Pairs of a run that are measured again: a host that takes so much more often is as it is, and
/// the run is to end.
const REPEATS_MAX: usize = 8;

const OBJECTS: &[(&str, &str)] = &[
    ("file, 600 B", contender::OBJECT),
    ("file, 1 KB", "/1K.bin"),
    ("empty_gif", "/empty.gif"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Wrk,
    Load,
}

/// What is measured, for each object.
#[derive(Clone, Copy, Debug)]
struct Kind {
    client: Client,
    is_padded: bool,
    /// Whether the client's part is measured, by which the whole grows.
    is_metered: bool,
}

const fn kind(client: Client, is_padded: bool, is_metered: bool) -> Kind {
    Kind {
        client,
        is_padded,
        is_metered,
    }
}

impl Kind {
    /// Whether the goals are for it.
    fn has_goals(self) -> bool {
        self.is_padded && self.client == Client::Wrk
    }
}

/// A metered run stands behind the one that it belongs to.
const KINDS: &[Kind] = &[
    kind(Client::Wrk, true, false),
    kind(Client::Wrk, true, true),
    kind(Client::Wrk, false, false),
    kind(Client::Wrk, false, true),
    kind(Client::Load, true, false),
    kind(Client::Load, false, false),
];

/// A measurement: microseconds for a transaction.
#[derive(Clone, Copy, Debug)]
struct Sample {
    whole_us: f64,
    /// The client's part, and what the server is seen to cost: 0 in a run that is not metered.
    client_us: f64,
    seen_us: f64,
    per_s: f64,
    /// The part of requests that the driver answered.
    hit_share: f64,
    /// The part of the CPUs' time that the host took.
    stolen_share: f64,
}

/// The samples of both servers, for each object and kind.
type Samples = [[Vec<Sample>; 2]];

/// Measures, prints two tables, and judges them.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--rounds", "--seconds", "--cpu", "--mode"];
    let options = Options::parse(arguments, &valued, &["--quick", "--debug"])?;
    let is_quick = options.has("--quick");
    let (rounds, seconds) = if is_quick { QUICK } else { (ROUNDS, SECONDS) };
    let rounds = options.number("--rounds", rounds)?.max(1);
    let contenders = [Contender::ours(&options)?, Contender::nginx()?];
    turnpike_host::raise_file_limit();
    let seconds = options.number("--seconds", seconds)?.max(1);
    let place = Place::new(contenders, seconds, &options)?;
    let Measured {
        samples,
        background,
        repeats,
    } = measure(&place, rounds)?;
    let [least, most] = [f64::min, f64::max].map(|pick| background.iter().copied().reduce(pick));
    println!(
        "Between the rounds the machine was busy for {:.2} of a CPU ({:.2} to {:.2}). Pairs that \
         were measured again, since the host took more than {:.0} % of the time: {repeats}.\n",
        median(&background),
        least.unwrap_or(f64::NAN),
        most.unwrap_or(f64::NAN),
        100.0 * STOLEN_SHARE_MAX,
    );
    print!("{}", table::whole(&samples));
    println!();
    print!("{}", table::parts(&samples));
    if is_quick {
        return table::void(&samples);
    }
    println!();
    table::judge(&samples)
}

/// What a run has found.
struct Measured {
    samples: Vec<[Vec<Sample>; 2]>,
    /// How many CPUs were busy before each round.
    background: Vec<f64>,
    repeats: usize,
}

fn measure(place: &Place, rounds: usize) -> Result<Measured, String> {
    let rounds_of = |kind: Kind| {
        if kind.has_goals() {
            rounds
        } else {
            rounds.min(ROUNDS_BESIDE)
        }
    };
    let pairs: usize = KINDS.iter().map(|kind| rounds_of(*kind)).sum();
    let mut progress = Progress::of(OBJECTS.len() * pairs * 2);
    let mut measured = Measured {
        samples: vec![[Vec::new(), Vec::new()]; OBJECTS.len() * KINDS.len()],
        background: Vec::new(),
        repeats: 0,
    };
    for round in 0..rounds {
        measured.background.push(place.background()?);
        for number in 0..measured.samples.len() {
            let (object, kind) = (OBJECTS[number / KINDS.len()], KINDS[number % KINDS.len()]);
            if round >= rounds_of(kind) {
                continue;
            }
            // A B, B A: a machine that slows down slows both.
            let first = (round + number) % 2;
            let mut pair = || -> Result<[Sample; 2], String> {
                let mut one = |server: usize| {
                    progress.step(&format!(
                        "round {}, {}, {:?}, {}",
                        round + 1,
                        object.0,
                        kind.client,
                        place.name(server)
                    ));
                    place.sample(server, object.1, kind)
                };
                let (one, other) = (one(first)?, one(1 - first)?);
                Ok(if first == 0 {
                    [one, other]
                } else {
                    [other, one]
                })
            };
            let mut samples = pair()?;
            let is_stolen = |sample: &Sample| sample.stolen_share > STOLEN_SHARE_MAX;
            while measured.repeats < REPEATS_MAX && samples.iter().any(is_stolen) {
                measured.repeats += 1;
                samples = pair()?;
            }
            for (all, sample) in measured.samples[number].iter_mut().zip(samples) {
                all.push(sample);
            }
        }
    }
    progress.end();
    Ok(measured)
}
