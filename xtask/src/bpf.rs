//! The programs that run in the kernel: compiled with the pinned clang, and compared with the
//! committed objects, so that these are what the sources say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Other majors make other bytes.
pub(crate) const CLANG: &str = "clang-16";
const STRIP: &str = "llvm-strip-16";

/// A program: the folder of its sources, its source there, and its object.
struct Program {
    folder: &'static str,
    source: &'static str,
    object: &'static str,
}

/// The express lane's, and that of steering.
const PROGRAMS: [Program; 2] = [
    Program {
        folder: "crates/express/src/bpf",
        source: "express.bpf.c",
        object: "crates/express/src/express.bpf.o",
    },
    Program {
        folder: "crates/lane/src/steering",
        source: "steer.bpf.c",
        object: "crates/lane/src/steering/steer.bpf.o",
    },
];

/// Compiles the programs and puts the objects in their places; `--check` compares instead.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let is_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err("the only option is --check".to_owned()),
    };
    PROGRAMS
        .iter()
        .try_for_each(|program| make(program, is_check))
}

fn make(program: &Program, is_check: bool) -> Outcome {
    let Program {
        folder,
        source,
        object,
    } = program;
    let path = workspace::root().join(object);
    let made = compile(&workspace::root().join(folder), source)?;
    let text = |error: std::io::Error| format!("{object}: {error}");
    if !is_check {
        fs::copy(&made, &path).map_err(text)?;
        println!("bpf: wrote {object}");
        return Ok(());
    }
    if fs::read(&made).map_err(text)? == fs::read(&path).map_err(text)? {
        println!("bpf: {object} is what {CLANG} makes of its sources");
        Ok(())
    } else {
        Err(format!(
            "{object} is not what {CLANG} makes of {folder}/{source}: run \"cargo xtask bpf\""
        ))
    }
}

/// Compiles in the sources' own folder, which the object does not name: the same bytes everywhere.
fn compile(folder: &Path, source: &str) -> Result<PathBuf, String> {
    let made = workspace::target().join(source).with_extension("o");
    fs::create_dir_all(workspace::target()).map_err(|error| error.to_string())?;
    let machine = std::env::consts::ARCH;
    must(
        Command::new(CLANG)
            .current_dir(folder)
            .args([
                "-g", "-O2", "-mcpu=v3", "-target", "bpf", "-Wall", "-Werror",
            ])
            .arg(format!("-fdebug-prefix-map={}=.", folder.display()))
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .args(["-c", source, "-o"])
            .arg(&made),
    )?;
    must(Command::new(STRIP).arg("-g").arg(&made))?;
    Ok(made)
}
