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
mod over_nginx;
mod rpm;
mod sbom;
mod tarball;
mod target;
pub(crate) mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must, output};
pub(crate) use check::run as check;
pub(crate) use container::run as container;
use files::{PROGRAMS, Places};
use sbom::SHIPPED;
use target::Target;

/// Builds the packages.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(
        arguments,
        &["--programs", "--revision", "--out", "--target"],
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
    files::write(&root, &places, &programs, &programs)?;
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

/// The test of the packages for another machine.
pub(crate) fn cross_test(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--target"], &["--debug"])?;
    long_test::cross(&options)
}

/// The inputs of a build.
struct Build {
    /// Where the packages go.
    out: PathBuf,
    /// The stripped programs.
    programs: PathBuf,
    /// Programs that run on this machine, which print the pages and completions.
    printers: PathBuf,
    /// The machine that the programs are for, if it is not this one.
    target: Option<&'static Target>,
    version: String,
    revision: u32,
    /// The time of the last commit, for files that are the same each time they are built.
    time_s: String,
}

impl Build {
    fn of(options: &Options) -> Result<Build, String> {
        let target = options.text("--target").map(Target::named).transpose()?;
        if target.is_some() && options.text("--programs").is_some() {
            return Err("--programs and --target exclude each other".to_owned());
        }
        let native = programs(options);
        let mut built = native.clone();
        if options.text("--programs").is_none() {
            compile(options, None)?;
            if let Some(target) = target {
                compile(options, Some(target))?;
                let profile = native.file_name().unwrap_or_default();
                built = workspace::target().join(target.rust).join(profile);
            }
        }
        let out = match (options.text("--out"), target) {
            (Some(folder), _) => workspace::root().join(folder),
            (None, Some(target)) => workspace::target().join("package").join(target.rust),
            (None, None) => workspace::target().join("package"),
        };
        let stripped = out.join("programs");
        make(&stripped)?;
        for name in PROGRAMS {
            strip(target, &built.join(name), &stripped.join(name))?;
        }
        Ok(Build {
            out,
            programs: stripped,
            printers: native,
            target,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: options.number("--revision", 1)?,
            time_s: workspace::git(&["log", "-1", "--format=%ct"])?,
        })
    }

    /// The machine that the programs are for.
    fn machine(&self) -> &'static str {
        target::machine(self.target)
    }

    /// Writes the files of an installation; returns the settings.
    fn write_files(&self, root: &Path, places: &Places) -> Result<Vec<PathBuf>, String> {
        files::write(root, places, &self.programs, &self.printers)
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

/// Has cargo build the programs for a machine; `None` is this one.
fn compile(options: &Options, target: Option<&Target>) -> Outcome {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked"]);
    if !options.has("--debug") {
        cargo.arg("--release");
    }
    if let Some(target) = target {
        target.compile(&mut cargo)?;
    }
    let packages = SHIPPED.iter().flat_map(|name| ["--package", name]);
    must(cargo.args(packages))
}

/// The folder with the programs that were built for this machine.
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

/// The section in which a stripped program keeps the names of its functions.
const KEPT_SECTION: &str = ".turnpike_symbols";

/// Moves symbols and debug information into a separate file. The names of functions stay, in a
/// section of ours: the log shows those in which a lane hangs.
fn strip(target: Option<&Target>, program: &Path, stripped: &Path) -> Outcome {
    let symbols = stripped.with_extension("debug");
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len()) as f64 / 1e6;
    must(
        target::tool(target, "objcopy")
            .arg("--only-keep-debug")
            .args([program, &symbols]),
    )?;
    let kept = stripped.with_extension("kept");
    let names = stripped.with_extension("names");
    for (option, output) in [("--strip-debug", kept.as_path()), ("--strip-all", stripped)] {
        must(
            target::tool(target, "strip")
                .args([option, "-o"])
                .args([output, program]),
        )?;
    }
    must(
        target::tool(target, "objcopy")
            .arg("--only-keep-debug")
            .args([&kept, &names]),
    )?;
    let mut section = std::ffi::OsString::from(format!("{KEPT_SECTION}="));
    section.push(&names);
    must(
        target::tool(target, "objcopy")
            .arg("--add-section")
            .args([section.as_os_str(), stripped.as_os_str()]),
    )?;
    let folder = stripped.parent().unwrap_or(Path::new("."));
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(symbols.file_name().unwrap_or_default());
    must(
        target::tool(target, "objcopy")
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
