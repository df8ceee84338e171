//! The project's chores, in the language that we test.
//!
//! There is one file per chore. A chore prints its findings, and its exit code shows the result. It
//! never changes a file outside of the workspace, except `setup`, which installs packages.

mod accessibility;
mod acme;
mod bench;
mod bpf;
mod certificates;
mod clients;
mod contender;
mod crash_test;
mod deny;
mod docs;
mod dokuwiki;
mod fuzz;
mod fuzz_live;
mod go_program;
mod grpc;
mod h2spec;
mod http2_frames;
mod instructions;
mod kubernetes;
mod machine;
mod options;
mod otel;
mod outcome;
mod package;
mod peers;
mod portability;
mod python;
mod readme;
mod reload_torture;
mod set_on_drop;
mod setup;
mod simulate;
mod stall;
mod strangers;
mod studies;
mod suites;
mod tidy;
mod tls_judges;
mod torture;
mod unit;
mod websockets;
mod workspace;

use std::process::ExitCode;

use outcome::Outcome;

struct Chore {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Outcome,
}

impl Chore {
    /// How it is called.
    fn call(&self) -> String {
        format!("{} {}", self.name, self.arguments)
    }
}

/// Every chore, in the order in which `cargo xtask` lists them.
const CHORES: &[Chore] = &[
    Chore {
        name: "setup",
        arguments: "[build] [test] [applications] [tls] [peers] [http2] [accessibility] [package] \
                    [cross] [bench] [instructions] [kubernetes]",
        summary: "install the Debian packages of the named sets",
        run: setup::run,
    },
    Chore {
        name: "suites",
        arguments: "TARGET...",
        summary: "run targets of the Makefile and print how long each takes",
        run: suites::run,
    },
    Chore {
        name: "accessibility",
        arguments: "[--server FILE | --debug]",
        summary: "judge every page by axe-core in Chromium",
        run: accessibility::run,
    },
    Chore {
        name: "package",
        arguments: "[--programs FOLDER | --target NAME] [--debug] [--revision N] [--out FOLDER]",
        summary: "build the Debian packages, the RPM package and the tarball",
        run: package::run,
    },
    Chore {
        name: "container",
        arguments: "[--programs FOLDER | --debug] [--out FOLDER]",
        summary: "build the container image",
        run: package::container,
    },
    Chore {
        name: "package-check",
        arguments: "",
        summary: "check the files of the packages",
        run: package::check,
    },
    Chore {
        name: "package-test",
        arguments: "[--programs FOLDER | --debug]",
        summary: "install, upgrade under load and remove the packages in a fresh Debian",
        run: package::test,
    },
    Chore {
        name: "readme-test",
        arguments: "",
        summary: "do in a fresh Debian what the README says, and print how long it takes",
        run: readme::test,
    },
    Chore {
        name: "package-cross-test",
        arguments: "--target aarch64-unknown-linux-gnu [--debug]",
        summary: "build the Debian package for another machine, and look at it",
        run: package::cross_test,
    },
    Chore {
        name: "install",
        arguments: "[--destdir FOLDER] [--prefix FOLDER] [--programs FOLDER]",
        summary: "install the release programs and their files",
        run: package::install,
    },
    Chore {
        name: "unit",
        arguments: "[--once | --other-ways] [--only PART]",
        summary: "run every test suite in a sandbox, and again as an ordinary user without",
        run: unit::run,
    },
    Chore {
        name: "tidy",
        arguments: "[--cycles [--crate FOLDER]]",
        summary: "check the house rules: imports, cycles, ceilings, unsafe, dead files",
        run: tidy::run,
    },
    Chore {
        name: "deny",
        arguments: "",
        summary: "check the licences, sources and duplicates of dependencies",
        run: deny::run,
    },
    Chore {
        name: "portability",
        arguments: "",
        summary: "build with the oldest Rust; build and run sans-IO crates for wasm32, under Miri",
        run: portability::run,
    },
    Chore {
        name: "bpf",
        arguments: "[--check]",
        summary: "compile the programs in the kernel, or compare them with the committed objects",
        run: bpf::run,
    },
    Chore {
        name: "docs",
        arguments: "[--check]",
        summary: "write (or check) the generated documentation",
        run: docs::run,
    },
    Chore {
        name: "fuzz",
        arguments: "[--seconds N] [TARGET...]",
        summary: "run the fuzz targets, ten seconds each",
        run: fuzz::run,
    },
    Chore {
        name: "fuzz-live",
        arguments: "[--minutes N] [--seed S [--case N]] [--server PATH | --debug]",
        summary: "fuzz Turnpike and nginx with mutated requests, answers and HTTP/2 connections",
        run: fuzz_live::run,
    },
    Chore {
        name: "h2spec",
        arguments: "[--install] [--server PATH | --debug]",
        summary: "run h2spec, strict, against our HTTP/2 with TLS and without",
        run: h2spec::run,
    },
    Chore {
        name: "acme",
        arguments: "[--install] [--server PATH | --debug]",
        summary: "order, renew and be refused certificates of Pebble, a foreign ACME server",
        run: acme::run,
    },
    Chore {
        name: "peers",
        arguments: "[--server FILE | --debug] [--only pages|database|quic]",
        summary: "use Flask under uWSGI and SCGI, PostgreSQL and QUIC through the server",
        run: peers::run,
    },
    Chore {
        name: "tls-judges",
        arguments: "[--server PATH | --debug]",
        summary: "have testssl.sh and sslyze judge our TLS",
        run: tls_judges::run,
    },
    Chore {
        name: "strangers",
        arguments: "FOLDER [NAME...] [--debug]",
        summary: "compare the answers to strangers' configurations with nginx's",
        run: strangers::run,
    },
    Chore {
        name: "clients",
        arguments: "[--server PATH | --debug]",
        summary: "have curl, Python, Go, Chromium and OpenSSL use our TLS",
        run: clients::run,
    },
    Chore {
        name: "http2-clients",
        arguments: "[--only CLIENT] [--minutes N] [--beside nginx] [--server PATH | --debug]",
        summary: "load our HTTP/2 by ten foreign clients at full speed; none may be cut",
        run: clients::run_loads,
    },
    Chore {
        name: "http3-clients",
        arguments: "[--only CLIENT] [--server PATH | --debug]",
        summary: "have curl, quic-go, Chromium and aioquic use our HTTP/3",
        run: clients::http3::run,
    },
    Chore {
        name: "bench",
        arguments: "[real | applications | secure | stream | express | loading | memory | floods | \
                    climb | records] [--quick] [--no-write] [--server PATH]",
        summary: "compare with nginx; write bench/results and the README's table",
        run: bench::run,
    },
    Chore {
        name: "instructions",
        arguments: "[--server PATH | --debug]",
        summary: "count a request's instructions, and those that lock, by valgrind",
        run: instructions::run,
    },
    Chore {
        name: "studies",
        arguments: "[--seconds N] [--only NAME] [--server PATH | --debug | --nginx]",
        summary: "run the published configurations under load from wrk and ab",
        run: studies::run,
    },
    Chore {
        name: "reload-torture",
        arguments: "[--reloads N] [--server PATH | --debug] [--without-nginx]",
        summary: "reload under load and count failed requests, compared with nginx",
        run: reload_torture::run,
    },
    Chore {
        name: "crash-test",
        arguments: "[--kills N] [--server PATH | --debug] [--without-nginx]",
        summary: "kill the serving process under load, compared with nginx",
        run: crash_test::run,
    },
    Chore {
        name: "dokuwiki",
        arguments: "[--server PATH | --debug]",
        summary: "use Debian's DokuWiki under php-fpm behind us: pages, login, edit, upload",
        run: dokuwiki::run,
    },
    Chore {
        name: "otel",
        arguments: "[--server PATH | --debug]",
        summary: "send spans to a collector of gRPC's and OpenTelemetry's own code",
        run: otel::run,
    },
    Chore {
        name: "grpc",
        arguments: "[--server PATH | --debug]",
        summary: "call a gRPC service through us by gRPC's own client",
        run: grpc::run,
    },
    Chore {
        name: "kubernetes",
        arguments: "",
        summary: "run the controller in a cluster of Kubernetes' own API server (as root)",
        run: kubernetes::run,
    },
    Chore {
        name: "websockets",
        arguments: "[--server PATH | --debug]",
        summary: "hold conversations over WebSockets through us, and compare what comes back",
        run: websockets::run,
    },
    Chore {
        name: "simulate",
        arguments: "[--seed N | --seeds N --from N] [--fault NAME]",
        summary: "run lanes with a virtual clock and scripted peers, or show one of them",
        run: simulate::run,
    },
    Chore {
        name: "stall",
        arguments: "[--rate N] [--seconds N] [--server PATH | --debug] [--write]",
        summary: "stop one of two lanes for two seconds at a fixed rate, compared with nginx",
        run: stall::run,
    },
    Chore {
        name: "torture",
        arguments: "[--minutes N | --seconds N] [--seed N] [--acts A,B] [--server PATH | --debug] \
                    [--beside nginx] [--write]",
        summary: "reload, resize, upgrade, stall and kill under load; account for every request",
        run: torture::run,
    },
    Chore {
        name: "upstream-torture",
        arguments: "[--seconds N] [--server PATH | --debug]",
        summary: "kill and restart upstream servers under load; no request may fail",
        run: torture::upstreams::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print_chores();
        return ExitCode::SUCCESS;
    };
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        eprintln!("xtask: no chore is called \"{name}\"");
        print_chores();
        return ExitCode::FAILURE;
    };
    if rest.iter().any(|argument| argument == "--help") {
        println!("Usage: cargo xtask {}", chore.call());
        println!("  {}", chore.summary);
        return ExitCode::SUCCESS;
    }
    match (chore.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn print_chores() {
    println!("Usage: cargo xtask CHORE, where CHORE is one of:");
    for chore in CHORES {
        println!("  {:<70} {}", chore.call(), chore.summary);
    }
}
