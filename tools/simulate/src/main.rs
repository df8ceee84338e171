//! Runs seeds, or shows one.

use std::process::ExitCode;

use turnpike_simulate::{Fault, Seeds};

const USAGE: &str = "\
usage: simulate [--seeds COUNT] [--from SEED] [--fault NAME]
       simulate --seed SEED [--fault NAME]
faults: lost-wake-up, answer-twice, buffer-kept, sender-not-woken, end-not-relayed, forward-lost,
        flow-kept, place-misread";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut seeds = Seeds::default();
    let mut one = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let number = value.parse::<u64>().ok();
        match (name.as_str(), number) {
            ("--seeds", Some(count)) => seeds.count = count,
            ("--from", Some(seed)) => seeds.from = seed,
            ("--seed", Some(seed)) => one = Some(seed),
            ("--fault", _) if fault(&value).is_some() => seeds.fault = fault(&value),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let outcome = match one {
        Some(seed) => turnpike_simulate::show(seed, seeds.fault),
        None => turnpike_simulate::run_all(&seeds).map(|summary| {
            println!("{summary}");
            summary.failed.is_empty()
        }),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fault(name: &str) -> Option<Fault> {
    Some(match name {
        "lost-wake-up" => Fault::LostWakeUp,
        "answer-twice" => Fault::AnswerTwice,
        "buffer-kept" => Fault::BufferKept,
        "sender-not-woken" => Fault::SenderNotWoken,
        "end-not-relayed" => Fault::EndNotRelayed,
        "forward-lost" => Fault::ForwardLost,
        "flow-kept" => Fault::FlowKept,
        "place-misread" => Fault::PlaceMisread,
        _ => return None,
    })
}
