//! Runs the fuzz targets for a short time, each from its committed corpus. New inputs go into the
//! target folder, so that a check never changes the checkout.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bpf;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// The version that was tried: `-s none` makes it work on a stable compiler.
const CARGO_FUZZ_VERSION: &str = "0.13.2";
/// Long enough to reach every state of the parsers from their corpus, short enough for each push.
const SECONDS: u32 = 5;

/// The targets that are in C, with their sources: what the express lane's program in the kernel
/// makes of requests, and of whole frames.
const C_TARGETS: &[(&str, &str)] = &[
    ("express_request", "request_fuzz.c"),
    ("express_segment", "segment_fuzz.c"),
];

/// Runs the named targets, all of them when none is named.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut seconds = SECONDS;
    let mut named: Vec<String> = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let value = arguments.next().and_then(|value| value.parse().ok());
                seconds = value.ok_or("--seconds wants a number")?;
            }
            name => named.push(name.to_owned()),
        }
    }
    let folder = workspace::root().join("fuzz");
    if !folder.join("Cargo.toml").exists() {
        println!("fuzz: no fuzz/Cargo.toml, nothing to run");
        return Ok(());
    }
    let mut targets = targets(&folder)?;
    targets.extend(C_TARGETS.iter().map(|(name, _)| (*name).to_owned()));
    if let Some(name) = named.iter().find(|name| !targets.contains(name)) {
        return Err(format!(
            "no target is called \"{name}\"; there are {}",
            targets.join(", ")
        ));
    }
    if named.iter().any(|name| c_source(name).is_none()) || named.is_empty() {
        install()?;
    }
    for target in targets
        .iter()
        .filter(|target| named.is_empty() || named.contains(target))
    {
        fuzz(&folder, target, seconds)?;
    }
    Ok(())
}

/// The source of a target in C.
fn c_source(target: &str) -> Option<&'static str> {
    let mut known = C_TARGETS.iter();
    let found = known.find(|(name, _)| *name == target);
    found.map(|(_, source)| *source)
}

/// The binaries of the fuzz crate.
fn targets(folder: &Path) -> Result<Vec<String>, String> {
    let manifest = folder.join("Cargo.toml").display().to_string();
    let metadata = workspace::metadata(&[
        "--no-deps",
        "--offline",
        "--manifest-path",
        manifest.as_str(),
    ])?;
    let mut targets = Vec::new();
    for package in workspace::elements(&metadata, "packages") {
        for target in workspace::elements(package, "targets") {
            if workspace::elements(target, "kind")
                .iter()
                .any(|kind| kind == "bin")
            {
                targets.push(workspace::text(target, "name").to_owned());
            }
        }
    }
    Ok(targets)
}

/// cargo-fuzz, into the target folder, if it is not there.
fn install() -> Outcome {
    let tools = workspace::target().join("tools");
    if tools.join("bin/cargo-fuzz").exists() {
        return Ok(());
    }
    println!(
        "fuzz: installing cargo-fuzz {CARGO_FUZZ_VERSION} into {}",
        tools.display()
    );
    must(
        workspace::cargo()
            .args(["install", "cargo-fuzz", "--locked", "--quiet"])
            .args(["--version", CARGO_FUZZ_VERSION, "--root"])
            .arg(&tools)
            .env("CARGO_TARGET_DIR", workspace::target().join("tools/build")),
    )
}

fn fuzz(folder: &Path, target: &str, seconds: u32) -> Outcome {
    println!("fuzz: {target}, {seconds} s");
    let scratch = workspace::target().join("fuzz-corpus").join(target);
    std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let c_source = c_source(target);
    let mut command = match c_source {
        Some(source) => Command::new(compiled(folder, target, source)?),
        None => of_cargo(folder, target),
    };
    if c_source.is_some() {
        let artifacts = folder.join("artifacts").join(target);
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg("-max_len=2048");
    }
    command.arg(&scratch);
    let corpus = folder.join("corpus").join(target);
    if corpus.is_dir() {
        command.arg(&corpus);
    }
    if c_source.is_none() {
        command.arg("--");
    }
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1");
    // Its report is long and of interest only when something was found.
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{target} does not start: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{report}");
        return Err(format!(
            "{target} failed; the input is in fuzz/artifacts/{target}"
        ));
    }
    let executed = report
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!(
        "fuzz: {target}, {} inputs, no failure",
        executed.unwrap_or("?").trim()
    );
    Ok(())
}

/// cargo-fuzz for a target in Rust, without its corpora.
fn of_cargo(folder: &Path, target: &str) -> Command {
    let mut command = Command::new(workspace::target().join("tools/bin/cargo-fuzz"));
    command
        .current_dir(workspace::root())
        .args(["run", "--sanitizer", "none", "--target-dir"])
        .arg(workspace::target().join("fuzz"))
        .arg("--fuzz-dir")
        .arg(folder)
        .arg(target);
    command
}

/// Compiles a target in C, whose findings go where cargo-fuzz puts its own.
fn compiled(folder: &Path, target: &str, source: &str) -> Result<PathBuf, String> {
    let artifacts = folder.join("artifacts").join(target);
    let program = workspace::target().join("fuzz").join(target);
    let machine = std::env::consts::ARCH;
    for made in [&artifacts, &workspace::target().join("fuzz")] {
        std::fs::create_dir_all(made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    must(
        Command::new(bpf::CLANG)
            // The kernel reads words at any address, as this machine does.
            .args([
                "-g",
                "-O1",
                "-Wall",
                "-Werror",
                "-fsanitize=fuzzer,address,undefined",
            ])
            .args(["-fno-sanitize=alignment", "-fno-sanitize-recover=all"])
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .arg(
                workspace::root()
                    .join("crates/express/src/bpf")
                    .join(source),
            )
            .arg("-o")
            .arg(&program),
    )?;
    Ok(program)
}
