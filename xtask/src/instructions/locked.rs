//! Which instructions of a program lock a cache line: those with the prefix `lock`, and `xchg` with
//! memory, which locks without it (Intel's manual, volume 3, section 9.1.2.2).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace;

/// The addresses of a file's locking instructions, by objdump.
///
/// # Errors
/// objdump does not run, or does not know the file.
pub(super) fn addresses(object: &Path) -> Result<BTreeSet<u64>, String> {
    let told = |error: std::io::Error| format!("objdump {}: {error}", object.display());
    let mut objdump = Command::new("objdump")
        .args(["--disassemble", "--no-show-raw-insn"])
        .arg(object)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(told)?;
    let output = objdump.stdout.take().ok_or("objdump has no output")?;
    let mut found = BTreeSet::new();
    for line in BufReader::new(output).lines() {
        found.extend(locking(&line.map_err(told)?));
    }
    let status = objdump.wait().map_err(told)?;
    if status.success() {
        Ok(found)
    } else {
        Err(format!("objdump {}: {status}", object.display()))
    }
}

/// Where the source has the instruction at an address, by addr2line: the innermost place of this
/// tree into which library code may have been inlined. `None` for code of others.
///
/// # Errors
/// addr2line does not run.
pub(super) fn source(object: &Path, address: u64) -> Result<Option<String>, String> {
    let output = Command::new("addr2line")
        .arg("--inlines")
        .arg("--exe")
        .arg(object)
        .arg(format!("{address:#x}"))
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("addr2line {}: {error}", object.display()))?;
    let root = format!("{}/", workspace::root().display());
    let frames = String::from_utf8_lossy(&output.stdout);
    let mut own = frames.lines().filter_map(|frame| {
        let place = frame.strip_prefix(&root).unwrap_or(frame);
        let place = place.split(" (discriminator").next()?;
        (place.starts_with("crates/") || place.starts_with("tools/")).then(|| place.to_owned())
    });
    Ok(own.next())
}

/// The address of a line with a locking instruction.
fn locking(line: &str) -> Option<u64> {
    let (address, instruction) = line.split_once(":\t")?;
    let instruction = instruction.trim_start();
    let is_exchange = instruction.starts_with("xchg") && instruction.contains('(');
    if instruction.starts_with("lock ") || is_exchange {
        u64::from_str_radix(address.trim(), 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::locking;

    #[test]
    fn locks_and_exchanges_with_memory_are_found() {
        let cases = [
            ("  4010:\tlock cmpxchg %rcx,(%rdi)", Some(0x4010)),
            ("  401a:\tlock xadd %eax,0x8(%rbx)", Some(0x401a)),
            ("  4020:\txchg   %al,(%rdx)", Some(0x4020)),
            ("  4030:\txchg   %ax,%ax", None),
            ("  4034:\tmov    %rax,(%rdx)", None),
            ("0000000000004010 <lock>:", None),
        ];
        for (line, expected) in cases {
            assert_eq!(locking(line), expected, "{line}");
        }
    }
}
