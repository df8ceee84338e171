//! Tests with functions of the test program, and with other addresses.

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
