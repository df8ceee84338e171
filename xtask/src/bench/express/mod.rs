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
//! Requests are padded to the size of the answer, so that it has room in the request's frame;
//! figures without padding stand beside. With padding, a run with less than 99 % of requests
//! answered in the driver is void. The goals are for wrk; `turnpike load` stands beside.

mod meter;
mod place;
mod table;

use super::progress::Progress;
use crate::contender::{self, Contender};
use crate::options::Options;
use crate::outcome::Outcome;
use place::Place;

/// Interleaved rounds.
const ROUNDS: usize = 5;
/// Seconds of a measurement.
const SECONDS: u64 = 4;
/// Enough to see that everything works; its figures are held against no goal.
const QUICK: (usize, u64) = (1, 1);

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
    let background = place.background()?;
    let samples = measure(&place, rounds)?;
    println!("The machine was busy for {background:.2} of a CPU before the run.\n");
    print!("{}", table::whole(&samples));
    println!();
    print!("{}", table::parts(&samples));
    if is_quick {
        return table::void(&samples);
    }
    println!();
    table::judge(&samples)
}

fn measure(place: &Place, rounds: usize) -> Result<Vec<[Vec<Sample>; 2]>, String> {
    let mut progress = Progress::of(rounds * OBJECTS.len() * KINDS.len() * 2);
    let mut samples = vec![[Vec::new(), Vec::new()]; OBJECTS.len() * KINDS.len()];
    for round in 0..rounds {
        for (number, samples) in samples.iter_mut().enumerate() {
            let (object, kind) = (OBJECTS[number / KINDS.len()], KINDS[number % KINDS.len()]);
            // A B, B A: a machine that slows down slows both.
            for server in [round % 2, 1 - round % 2] {
                progress.step(&format!(
                    "round {}, {}, {:?}, {}",
                    round + 1,
                    object.0,
                    kind.client,
                    place.name(server)
                ));
                samples[server].push(place.sample(server, object.1, kind)?);
            }
        }
    }
    progress.end();
    Ok(samples)
}
