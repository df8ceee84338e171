//! Measures for benchmarks whose time the kernel spends on received frames, per process and
//! interface (`meter.bpf.c`). The system cannot say it: it counts a softirq as run time of the
//! process that it interrupts.
//!
//! `meter OBJECT INTERFACE INTERFACE` answers each line of its input with a table: a line for each
//! process with its number, the nanoseconds of all softirqs in its time, those on each interface,
//! and how often frames were taken in from each; then an empty line.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder};

/// Bytes of an interface's name in the kernel, with the zero that ends it (IFNAMSIZ).
const NAME_BYTES: usize = 16;

/// Numbers of a process in the table.
const NUMBERS: usize = 5;

/// A process, and its numbers summed over all CPUs.
type Row = (u32, [u64; NUMBERS]);

fn main() {
    if let Err(error) = run() {
        eprintln!("meter: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [object, interfaces @ ..] = arguments.as_slice() else {
        return Err("the arguments are: OBJECT INTERFACE INTERFACE".into());
    };
    let object = load(Path::new(object), interfaces)?;
    let attached: Result<Vec<_>, _> = object.progs_mut().map(|code| code.attach()).collect();
    let _attached = attached?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        line?;
        for (process, numbers) in table(&object)? {
            let numbers = numbers.map(|number| number.to_string()).join(" ");
            writeln!(output, "{process} {numbers}")?;
        }
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}

fn load(path: &Path, interfaces: &[String]) -> Result<Object, Box<dyn std::error::Error>> {
    let object = ObjectBuilder::default().open_file(path)?.load()?;
    name(&object, interfaces)?;
    Ok(object)
}

/// Tells the program the interfaces' names.
fn name(object: &Object, interfaces: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut maps = object.maps();
    let names = maps.find(|map| map.name() == "names").ok_or("no names")?;
    for (number, interface) in interfaces.iter().enumerate() {
        let mut name = [0; NAME_BYTES];
        let room = name.get_mut(..interface.len()).ok_or("a long name")?;
        room.copy_from_slice(interface.as_bytes());
        names.update(&(number as u32).to_ne_bytes(), &name, MapFlags::ANY)?;
    }
    Ok(())
}

/// The program's table.
fn table(object: &Object) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut maps = object.maps();
    let processes = maps.find(|map| map.name() == "processes");
    let processes = processes.ok_or("no processes")?;
    let mut rows = Vec::new();
    for key in processes.keys() {
        let of_cpus = processes.lookup_percpu(&key, MapFlags::ANY)?;
        let mut sums = [0; NUMBERS];
        for times in of_cpus.iter().flatten() {
            for (sum, number) in sums.iter_mut().zip(times.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(number.try_into()?);
            }
        }
        rows.push((u32::from_ne_bytes(key.as_slice().try_into()?), sums));
    }
    Ok(rows)
}
