//! Fuzzing of running servers: changed requests to our server and to an installed nginx, changed
//! answers of an origin behind ours and of applications that speak FastCGI, SCGI and uwsgi, and
//! changed HTTP/2 connections. A case's number says which: see [`Kind`].
//!
//! A seed and a case's number alone determine the bytes: `--seed S --case N` repeats a failed case.
//! The clock only limits the number of cases, and never affects their results.

mod answers;
mod applications;
mod connections;
mod differences;
mod frames;
mod message;
mod mutate;
mod origin;
mod requests;
mod seeds;
mod upstreams;
mod wire;
mod witness;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use applications::Applications;
use connections::Connections;
use requests::Requests;
use upstreams::{Script, Upstreams};
use witness::Witness;

/// The default duration of a run, in minutes.
const MINUTES: f64 = 1.0;
/// The default seed, also of `make test`.
const SEED: u64 = 20;
/// Most of a case is waiting, so that more threads than cores are busy.
const THREADS: usize = 8;
/// The number of findings that end a run.
const FINDINGS_MAX: usize = 10;

/// Everything that runs.
struct Stage {
    seed: u64,
    requests: Requests,
    upstreams: Upstreams,
    applications: Applications,
    connections: Connections,
    witnesses: [Witness; KINDS.len()],
}

/// The kind of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A changed request beside nginx.
    Request,
    /// A changed answer of an origin.
    Answer,
    /// A changed answer of an application.
    Application,
    /// A changed HTTP/2 connection.
    Connection,
}

/// The kinds, which take turns.
const KINDS: [Kind; 4] = [
    Kind::Request,
    Kind::Answer,
    Kind::Application,
    Kind::Connection,
];

/// The place of a case's kind, and the case's number among those of its kind.
fn kind_of(case: u64) -> (usize, u64) {
    let kinds = KINDS.len() as u64;
    ((case % kinds) as usize, case / kinds)
}

/// Runs cases until the time is over, or the one that is named.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--minutes", "--seed", "--case", "--server"];
    let options = Options::parse(arguments, &valued, &["--debug"])?;
    let minutes: f64 = options.number("--minutes", MINUTES)?;
    if !(0.0..=10_000.0).contains(&minutes) {
        return Err(format!("--minutes wants 0 to 10000: \"{minutes}\""));
    }
    let stage = Stage::start(&Contender::ours(&options)?, options.number("--seed", SEED)?)?;
    if let Some(case) = options.text("--case") {
        let case = case
            .parse()
            .map_err(|_| format!("--case wants a number: \"{case}\""))?;
        println!("{}", stage.shown(case));
        return stage.run(case);
    }
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let next = AtomicU64::new(0);
    let findings = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| stage.work(&next, end, &findings));
        }
    });
    let mut findings = findings
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    for witness in &stage.witnesses {
        findings.extend(witness.end().err());
    }
    let cases = next.into_inner();
    let [plain, secure] = stage.connections.answers();
    println!(
        "fuzz-live: seed {}, {cases} cases: requests beside nginx, answers of an origin and of \
         applications, and HTTP/2 connections ({plain} answers, {secure} over TLS), as many of \
         each; {} findings",
        stage.seed,
        findings.len()
    );
    if findings.is_empty() {
        Ok(())
    } else {
        Err(findings.join("\n\n"))
    }
}

impl Stage {
    fn start(ours: &Contender, seed: u64) -> Result<Stage, String> {
        let requests = Requests::start(ours)?;
        let upstreams = Upstreams::start(ours, seed)?;
        let applications = Applications::start(ours, seed)?;
        let connections = Connections::start(ours)?;
        let witnesses = [
            Witness::of(requests.server())?,
            Witness::of(upstreams.server())?,
            Witness::of(applications.server())?,
            Witness::of(connections.server())?,
        ];
        Ok(Stage {
            seed,
            requests,
            upstreams,
            applications,
            connections,
            witnesses,
        })
    }

    /// Runs one case after the other.
    fn work(&self, next: &AtomicU64, end: Instant, findings: &Mutex<Vec<String>>) {
        while Instant::now() < end {
            let case = next.fetch_add(1, Ordering::Relaxed);
            let outcome = self.run(case);
            let mut findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
            if findings.len() >= FINDINGS_MAX {
                return;
            }
            if let Err(what) = outcome {
                let finding = format!("{what}\n{}", self.shown(case));
                println!("fuzz-live: {finding}\n");
                findings.push(format!(
                    "case {case}: {}",
                    what.lines().next().unwrap_or("")
                ));
            }
        }
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The fault of our server.
    fn run(&self, case: u64) -> Outcome {
        let (place, number) = kind_of(case);
        match KINDS[place] {
            Kind::Request => self.requests.run(self.seed, number)?,
            Kind::Answer => self.upstreams.run(self.seed, number)?,
            Kind::Application => self.applications.run(self.seed, number)?,
            Kind::Connection => self.connections.run(self.seed, number)?,
        }
        self.witnesses[place].look()
    }

    /// The bytes of a case, and the command to repeat it.
    fn shown(&self, case: u64) -> String {
        let (place, number) = kind_of(case);
        let (asked, whose, pieces) = match KINDS[place] {
            Kind::Request => (None, "the client", Requests::message(self.seed, number)),
            Kind::Answer => (
                Some(Upstreams::request(self.seed, number)),
                "the origin",
                Script::of_case(self.seed, number).pieces,
            ),
            Kind::Application => (
                Some(Applications::request(self.seed, number)),
                "the application",
                Applications::script(self.seed, number).pieces,
            ),
            Kind::Connection => (
                None,
                "the client",
                vec![Connections::bytes(self.seed, number)],
            ),
        };
        let mut text = format!(
            "  again: cargo xtask fuzz-live --seed {} --case {case}",
            self.seed
        );
        if let Some(request) = asked {
            text += &format!("\n  the client sends \"{}\"", request.escape_ascii());
        }
        for piece in pieces {
            text += &format!("\n  {whose} sends \"{}\"", piece.escape_ascii());
        }
        text
    }
}
