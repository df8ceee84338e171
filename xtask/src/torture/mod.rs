//! The torture run. Under load of many kinds, and with half of every CPU busy otherwise, there is
//! an action every second: the server is reloaded, resized or upgraded, one of its lanes is stopped
//! for two seconds, or its master, its serving process or both are killed. A dead master is started
//! again a second later, as by systemd, which holds a socket meanwhile, as with our socket unit.
//! Every request is accounted for: answered, lost in flight at a kill of the serving process, or
//! lost otherwise, which is an error.
//!
//! Clients of HTTP/2 download much beside small requests; those of HTTP/3 begin connections, keep
//! some, and have downloads and uploads under way. `--acts none --minutes 60` leaves the
//! server alone for an hour of that; `--acts reload=100,kill=5` ends when so much was done.
//!
//! The result depends only on counts, never on time: a slow machine makes a run slow, not wrong.
//! Actions are rows of [`ACTS`].

mod acts;
mod clients;
mod http2;
mod ledger;
pub(crate) mod upstreams;
mod victim;

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::contender::{Contender, OBJECT};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::set_on_drop::SetOnDrop;
use crate::{machine, workspace};
use acts::{ACTS, Acts};
use clients::{Load, LoadRow};
use http2::Reader;
use ledger::{Account, Act, Deed, now_us};
use victim::Victim;

/// The default duration of a run.
const MINUTES: u64 = 10;
/// The longest time for actions that are counted.
const MINUTES_MAX: u64 = 60;
/// The default time between two actions, in milliseconds: a shorter one finds rare losses sooner.
const EVERY_MS: u64 = 1_000;
/// Load after the last act, in seconds: until every stall is over.
const AFTERMATH_SECONDS: u64 = 4;
/// Slow clients of each kind.
const SLOW_CLIENTS: usize = 8;
/// The runs of `turnpike load`. Those of HTTP/3 begin fewer connections, as each costs a handshake.
const LOADS: &[LoadRow] = &[
    LoadRow {
        clients: "one-request",
        is_http3: false,
        path: OBJECT,
        options: &["--connrate", "400"],
    },
    LoadRow {
        clients: "keep-alive",
        is_http3: false,
        path: OBJECT,
        options: &["--connections", "32", "--rate", "400"],
    },
    LoadRow {
        clients: "http3 one-request",
        is_http3: true,
        path: OBJECT,
        options: &["--connrate", "20"],
    },
    LoadRow {
        clients: "http3 keep-alive",
        is_http3: true,
        path: OBJECT,
        options: &["--connections", "8", "--rate", "100"],
    },
    LoadRow {
        clients: "http3 downloads",
        is_http3: true,
        path: BODY,
        options: &["--connections", "4", "--rate", "4"],
    },
    LoadRow {
        clients: "http3 uploads",
        is_http3: true,
        path: "/upload",
        options: &["--connections", "4", "--rate", "4", "--body", BODY_FILE],
    },
];
/// A file that is downloaded and uploaded by HTTP/3: some turns of a connection.
const BODY: &str = "/body";
const BODY_FILE: &str = "html/body";
const BODY_BYTES: usize = 1024 * 1024;
/// Clients of HTTP/2.
const READERS: &[Reader] = &[
    Reader::Whole,
    Reader::Whole,
    Reader::Cancelling,
    Reader::Slow,
];
/// What the log says of a lane or a connection that was lost by a fault of ours.
const LOST: &[&str] = &["is given up", "no byte has moved"];

/// How long, and which act when.
#[derive(Clone, Copy)]
struct Pace {
    seconds: u64,
    seed: u64,
    every: Duration,
}

/// The results of a run.
struct Report {
    name: String,
    acts: Acts,
    deeds: Vec<Deed>,
    accounts: Vec<Account>,
    started_us: u64,
    log: String,
}

/// Tortures and accounts.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let valued = [
        "--minutes",
        "--seconds",
        "--seed",
        "--acts",
        "--every-ms",
        "--server",
        "--beside",
    ];
    let options = Options::parse(arguments, &valued, &["--debug", "--write"])?;
    let is_counted = acts::are_counted(&options);
    let minutes = if is_counted { MINUTES_MAX } else { MINUTES };
    let minutes = options.number("--minutes", minutes)?;
    let seconds = options.number("--seconds", minutes * 60)?;
    let seed = options.number("--seed", 1_u64)?;
    let every_ms = options.number("--every-ms", EVERY_MS)?;
    let pace = Pace {
        seconds,
        seed,
        every: Duration::from_millis(every_ms.max(1)),
    };
    turnpike_host::raise_file_limit();
    let mut contenders = vec![Contender::ours(&options)?];
    let load = contenders[0].program.clone();
    if options.text("--beside") == Some("nginx") {
        contenders.push(Contender::nginx()?);
    }
    let mut text = format!(
        "{}{seconds} s, an act every {every_ms} ms (seed {seed}); {SLOW_CLIENTS} clients upload \
         slowly, {SLOW_CLIENTS} hold WebSockets, {} download by HTTP/2; {}; every CPU is half busy \
         with something else\n\n",
        if is_counted { "at most " } else { "" },
        READERS.len(),
        LOADS
            .iter()
            .map(LoadRow::text)
            .collect::<Vec<_>>()
            .join("; "),
    );
    // Side by side, so that the machine is as busy for both.
    let reports = std::thread::scope(|scope| {
        let runs: Vec<_> = contenders
            .iter()
            .map(|contender| {
                let (options, load) = (&options, &load);
                scope.spawn(move || {
                    let acts = Acts::of(options, contender.name == "nginx")?;
                    torture(contender, load, acts, pace)
                })
            })
            .collect();
        let reports = runs.into_iter().map(|run| run.join());
        reports
            .map(|report| report.map_err(|_| "a run broke off".to_owned())?)
            .collect::<Result<Vec<Report>, String>>()
    })?;
    for report in &reports {
        describe(report, &mut text);
    }
    let verdict = reports.first().map_or(Ok(()), judge);
    println!("{text}");
    if options.has("--write") {
        write(&text)?;
    }
    verdict
}

fn torture(
    contender: &Contender,
    load: &std::path::Path,
    acts: Acts,
    pace: Pace,
) -> Result<Report, String> {
    let origin = clients::start_origin().map_err(|error| error.to_string())?;
    let mut victim = Victim::start(contender, origin)?;
    let port = victim.port();
    let folder = victim.folder().to_path_buf();
    let readers = readers(contender, &folder).map_err(|error| error.to_string())?;
    let whole = pace.seconds + AFTERMATH_SECONDS;
    let started_us = now_us();
    let loads = LOADS
        .iter()
        .filter(|row| !row.is_http3 || contender.name != "nginx");
    let loads = loads.map(|row| Load::start(load, row, port, &folder, whole));
    let loads = loads.collect::<Result<Vec<_>, _>>()?;
    let (is_over, deeds) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let done = |deed| {
        deeds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(deed);
    };
    let (accounts, result) = std::thread::scope(|scope| {
        let is_over = &is_over;
        let end = SetOnDrop(is_over);
        for _ in 0..machine::cpus() {
            scope.spawn(move || clients::burn(is_over));
        }
        let slow = (0..SLOW_CLIENTS).flat_map(|_| {
            [
                scope.spawn(move || clients::upload(port, is_over)),
                scope.spawn(move || clients::chat(port, is_over)),
            ]
        });
        let readers = readers
            .iter()
            .map(|reader| scope.spawn(move || http2::download(port, *reader, is_over)));
        let slow: Vec<_> = slow.chain(readers).collect();
        let result = do_acts(&mut victim, acts.clone(), pace, scope, &done);
        if acts.is_counted() {
            std::thread::sleep(Duration::from_secs(AFTERMATH_SECONDS));
            loads.iter().for_each(Load::end);
        }
        let mut accounts: Vec<_> = loads.into_iter().map(Load::account).collect();
        drop(end);
        let slow = slow.into_iter().filter_map(|client| client.join().ok());
        accounts.extend(slow.map(Ok));
        (accounts, result)
    });
    result?;
    let accounts: Result<Vec<Account>, String> = accounts.into_iter().collect();
    let mut deeds = deeds.into_inner().unwrap_or_else(PoisonError::into_inner);
    deeds.sort_by_key(|deed| deed.from_us);
    Ok(Report {
        name: contender.name.clone(),
        acts,
        deeds,
        accounts: sum(accounts?),
        started_us,
        log: victim.log(),
    })
}

/// The clients of HTTP/2. Their download is made, and that of HTTP/3.
fn readers(contender: &Contender, folder: &std::path::Path) -> std::io::Result<&'static [Reader]> {
    if contender.name == "nginx" {
        // It has no port that speaks HTTP/1 too.
        return Ok(&[]);
    }
    std::fs::write(folder.join(BODY_FILE), vec![b'x'; BODY_BYTES])?;
    let path = folder.join("html").join(&http2::LARGE[1..]);
    std::fs::write(path, vec![b'x'; http2::LARGE_BYTES])?;
    Ok(READERS)
}

fn do_acts<'scope>(
    victim: &mut Victim,
    mut acts: Acts,
    pace: Pace,
    scope: &'scope std::thread::Scope<'scope, '_>,
    done: &'scope (impl Fn(Deed) + Sync),
) -> Result<(), String> {
    let started = Instant::now();
    let end = started + Duration::from_secs(pace.seconds);
    let mut random = pace.seed | 1;
    let mut next = started + pace.every;
    while next < end {
        // xorshift64: which act comes when is the seed's doing.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let Some(act) = acts.choose(random >> 8) else {
            break;
        };
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        if victim.suffer(act, random >> 24, scope, done)? {
            acts.was_done(act);
        }
        next = (next + pace.every).max(Instant::now());
    }
    if !acts.is_counted() {
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// One account for each kind of client.
fn sum(accounts: Vec<Account>) -> Vec<Account> {
    let mut sums: Vec<Account> = Vec::new();
    for account in accounts {
        match sums.iter_mut().find(|sum| sum.clients == account.clients) {
            Some(sum) => {
                sum.offered += account.offered;
                sum.answered += account.answered;
                sum.failures.extend(account.failures);
            }
            None => sums.push(account),
        }
    }
    sums
}

/// How often an act was tried, and how often it came to something.
fn count(report: &Report, act: Act) -> (usize, usize) {
    let deeds = report.deeds.iter().filter(|deed| deed.act == act);
    let done = deeds.clone().filter(|deed| deed.is_done);
    (deeds.count(), done.count())
}

fn summary(report: &Report, act: Act) -> Option<String> {
    let name = act.name();
    match count(report, act) {
        (0, _) => None,
        (tried, done) if tried == done => Some(format!("{tried} {name}")),
        (tried, done) => Some(format!("{tried} {name} ({done} done)")),
    }
}

fn describe(report: &Report, text: &mut String) {
    let acts: Vec<String> = ACTS
        .iter()
        .filter_map(|(_, act, _)| summary(report, *act))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "**{}**: {}\n", report.name, acts.join(", "));
    let head = "| clients | offered | answered | lost in flight at kills | lost otherwise |";
    let _ = writeln!(text, "{head}\n|---|---|---|---|---|");
    let mut causes = String::new();
    for account in &report.accounts {
        let losses = account.losses(&report.deeds);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            account.clients,
            account.offered,
            account.answered,
            losses.at_kills_total(),
            losses.otherwise_total()
        );
        for (kind, count) in &losses.at_kills {
            let _ = writeln!(causes, "- kill: {count} {} ({kind})", account.clients);
        }
        for ((acts, kind), count) in &losses.otherwise {
            let _ = writeln!(causes, "- {acts}: {count} {} ({kind})", account.clients);
        }
    }
    let _ = writeln!(text, "\n{causes}");
}

/// Nothing may be lost otherwise, and nothing may be unaccounted for.
fn judge(report: &Report) -> Outcome {
    let lists = report
        .accounts
        .iter()
        .flat_map(|account| account.list(&report.deeds, report.started_us));
    let mut faults: Vec<String> = lists.collect();
    for (_, act, _) in ACTS {
        let (tried, done) = count(report, *act);
        if tried > 0 && done == 0 {
            faults.push(format!("{}: none came to anything", act.name()));
        }
        if let Some(wanted) = report.acts.wanted(*act).filter(|wanted| done < *wanted) {
            faults.push(format!("{}: {done} of {wanted} were done", act.name()));
        }
    }
    let is_lost = |line: &&str| LOST.iter().any(|words| line.contains(words));
    faults.extend(report.log.lines().filter(is_lost).map(str::to_owned));
    for account in report
        .accounts
        .iter()
        .filter(|account| !account.is_balanced())
    {
        faults.push(format!(
            "{}: {} offered are not {} answered and {} failed",
            account.clients,
            account.offered,
            account.answered,
            account.failures.len()
        ));
    }
    for account in report
        .accounts
        .iter()
        .filter(|account| account.answered == 0)
    {
        faults.push(format!("{}: none was answered", account.clients));
    }
    if faults.is_empty() {
        return Ok(());
    }
    for line in report.log.lines() {
        eprintln!("{line}");
    }
    Err(faults.join("\n"))
}

/// Keeps the run with the other results.
fn write(text: &str) -> Outcome {
    let date = machine::first_line("date", &["-u", "+%Y-%m-%d"]);
    let name = format!("{date}-torture-{}", machine::slug());
    let folder = workspace::root().join("bench/results").join(name);
    let title = "# Torture: reload, resize, upgrade, stall and kills under load\n\n";
    let note = "Made by `cargo xtask torture --beside nginx --write`. Both ran at the same time; \
                nginx was only reloaded and resized.\n\n";
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("README.md"), format!("{title}{note}{text}")))
        .map_err(|error| format!("{}: {error}", folder.display()))
}
