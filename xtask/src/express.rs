//! The express lane's program: compiled with the pinned clang, and compared with the committed
//! object, so that the object is what the sources say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Other majors make other bytes.
pub(crate) const CLANG: &str = "clang-16";
const STRIP: &str = "llvm-strip-16";

/// Compiles the program and puts the object in its place; `--check` compares instead.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let is_check = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err("the only option is --check".to_owned()),
    };
    let folder = workspace::root().join("crates/express/src");
    let object = folder.join("express.bpf.o");
    let made = compile(&folder.join("bpf"))?;
    let text = |error: std::io::Error| format!("{}: {error}", object.display());
    if !is_check {
        fs::copy(&made, &object).map_err(text)?;
        println!("express: wrote {}", object.display());
        return Ok(());
    }
    match fs::read(&made).map_err(text)? == fs::read(&object).map_err(text)? {
        true => {
            println!("express: the object is what {CLANG} makes of its sources");
            Ok(())
        }
        false => Err(format!(
            "{} is not what {CLANG} makes of crates/express/src/bpf: run \"cargo xtask express\"",
            object.display()
        )),
    }
}

/// Compiles in the sources' own folder, which the object does not name: the same bytes everywhere.
fn compile(sources: &Path) -> Result<PathBuf, String> {
    let made = workspace::target().join("express.bpf.o");
    fs::create_dir_all(workspace::target()).map_err(|error| error.to_string())?;
    let machine = std::env::consts::ARCH;
    must(
        Command::new(CLANG)
            .current_dir(sources)
            .args([
                "-g", "-O2", "-mcpu=v3", "-target", "bpf", "-Wall", "-Werror",
            ])
            .arg(format!("-fdebug-prefix-map={}=.", sources.display()))
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .args(["-c", "express.bpf.c", "-o"])
            .arg(&made),
    )?;
    must(Command::new(STRIP).arg("-g").arg(&made))?;
    Ok(made)
}
