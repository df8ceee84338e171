//! Packages of a release: a Debian package, a second one that gives it the name nginx, an RPM
//! package, and a tarball with its checksum.
//!
//! The Debian packages are built with dpkg-deb, which every Debian has, and the RPM package with
//! rpmbuild. So one list of files makes all of them and `make install`, where a packaging tool
//! would know only one of them.

mod check;
mod container;
mod debian;
mod files;
mod long_test;
mod rpm;
mod sbom;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};
pub(crate) use check::run as check;
pub(crate) use container::run as container;
use files::{PROGRAMS, Places};

/// Builds the packages.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--programs", "--revision", "--out"],
        &["--debug"],
    )?;
    let build = Build::of(&options)?;
    let packages = debian::build(&build)?;
    let rpm = [rpm::build(&build)?];
    let tarball = tarball::build(&build)?;
    let materials = [sbom::build(&build.out, &build.version)?];
    let built = packages.iter().chain(&rpm).chain(&tarball);
    for path in built.chain(&materials) {
        let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let megabytes = bytes as f64 / 1e6;
        println!("package: {} {megabytes:.1} MB", path.display());
    }
    Ok(())
}

/// `make install`: the files alone, below a root.
pub(crate) fn install(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--destdir", "--prefix", "--programs"], &[])?;
    let root = match options.text("--destdir") {
        None | Some("") => PathBuf::from("/"),
        Some(folder) => workspace::root().join(folder),
    };
    let prefix = Path::new(options.text("--prefix").unwrap_or("/usr/local"));
    if !prefix.is_absolute() {
        return Err(format!("PREFIX must be absolute: \"{}\"", prefix.display()));
    }
    let programs = programs(&options);
    let places = Places::below(prefix);
    files::write(&root, &places, &programs)?;
    println!(
        "install: {}",
        files::below(&root, &places.programs()).display()
    );
    Ok(())
}

/// The test of the packages in a fresh Debian.
pub(crate) fn test(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--programs"], &["--debug"])?;
    long_test::run(&options)
}

/// The inputs of a build.
struct Build {
    /// Where the packages go.
    out: PathBuf,
    /// The stripped programs.
    programs: PathBuf,
    version: String,
    revision: u32,
    /// The time of the last commit, for files that are the same each time they are built.
    time_s: String,
}

impl Build {
    fn of(options: &Options) -> Result<Build, String> {
        let built = programs(options);
        if options.text("--programs").is_none() {
            let mut cargo = workspace::cargo();
            cargo.args(["build", "--locked"]);
            if !options.has("--debug") {
                cargo.arg("--release");
            }
            must(cargo.args(["--package", "turnpike-server", "--package", "turnpike-view"]))?;
        }
        let out = match options.text("--out") {
            Some(folder) => workspace::root().join(folder),
            None => workspace::target().join("package"),
        };
        let stripped = out.join("programs");
        make(&stripped)?;
        for name in PROGRAMS {
            strip(&built.join(name), &stripped.join(name))?;
        }
        Ok(Build {
            out,
            programs: stripped,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: options.number("--revision", 1)?,
            time_s: output(Command::new("git").current_dir(workspace::root()).args([
                "-c",
                "safe.directory=*",
                "log",
                "-1",
                "--format=%ct",
            ]))?,
        })
    }

    /// The machine that the programs are for.
    fn machine(&self) -> &'static str {
        std::env::consts::ARCH
    }

    /// An empty folder for the files of a package.
    fn staging(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.out.join("staging").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{name}: {error}"))?;
        }
        make(&folder)?;
        Ok(folder)
    }
}

/// The folder with the programs that were built.
fn programs(options: &Options) -> PathBuf {
    let profile = if options.has("--debug") {
        "debug"
    } else {
        "release"
    };
    match options.text("--programs") {
        Some(folder) => workspace::root().join(folder),
        None => workspace::target().join(profile),
    }
}

/// Moves the debug information into a separate file. The names of functions stay: the log shows
/// those in which a lane hangs.
fn strip(program: &Path, stripped: &Path) -> Outcome {
    let symbols = stripped.with_extension("debug");
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len()) as f64 / 1e6;
    must(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .args([program, &symbols]),
    )?;
    must(
        Command::new("strip")
            .arg("--strip-debug")
            .arg("-o")
            .args([stripped, program]),
    )?;
    let folder = stripped.parent().unwrap_or(Path::new("."));
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(symbols.file_name().unwrap_or_default());
    must(
        Command::new("objcopy")
            .current_dir(folder)
            .arg(link)
            .arg(stripped),
    )?;
    println!(
        "package: {} {:.1} MB, stripped {:.1} MB, symbols {:.1} MB",
        program.display(),
        size(program),
        size(stripped),
        size(&symbols)
    );
    Ok(())
}

fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// The output of a command, without the line end.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name}: {}", text.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
