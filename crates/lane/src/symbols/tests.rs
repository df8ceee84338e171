//! Tests with functions of the test program, and with other addresses.

#![allow(clippy::unwrap_used)]

use super::*;

/// A function to look for.
#[inline(never)]
fn landmark() -> usize {
    std::hint::black_box(landmark as *const () as usize)
}

#[test]
fn functions_are_named() {
    let library = std::hint::black_box(libc::getpid as *const () as usize);
    let names = describe(&[landmark() + 1, library + 1, 16]);
    assert!(names[0].ends_with("symbols::tests::landmark"), "{names:?}");
    assert!(names[1].contains("getpid"), "{names:?}");
    assert_eq!(names[2], "0x10");
}

#[test]
fn a_file_that_is_no_program_has_no_names() {
    for path in ["/proc/self/status", "/dev/null", "/etc/hosts"] {
        let file = File::open(path);
        let found = file.and_then(|file| find(&file, &[1]));
        assert!(
            found.is_err() || found.is_ok_and(|names| names.is_empty()),
            "{path}"
        );
    }
}

/// A program that was stripped as packages strip it still knows its functions.
#[test]
fn a_stripped_program_keeps_its_names() {
    let folder = std::env::temp_dir().join(format!("turnpike-symbols-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let script = "strip --strip-debug -o kept /proc/$1/exe && \
                  objcopy --only-keep-debug kept names && \
                  strip --strip-all -o stripped /proc/$1/exe && \
                  objcopy --add-section .turnpike_symbols=names stripped";
    let stripped = std::process::Command::new("sh")
        .current_dir(&folder)
        .args(["-ec", script, "sh", &std::process::id().to_string()])
        .status();
    let program = File::open(folder.join("stripped"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        stripped.unwrap().success(),
        "binutils are a part of the compiler's packages"
    );
    let Place::Program { offset } = stack::place(landmark() + 1) else {
        panic!("not in the program");
    };
    let names = find(&program.unwrap(), &[offset as u64]).unwrap();
    let name = names[0].as_deref().unwrap();
    assert!(name.ends_with("symbols::tests::landmark"), "{name}");
}
