//! Shim: the body stands beside the code it is about, in `turnpike_cache::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnpike_cache::fuzzing::freshness(data));
