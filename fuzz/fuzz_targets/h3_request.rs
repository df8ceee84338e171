//! Shim: the body stands beside the code it is about, in `turnpike_wire::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnpike_wire::fuzzing::h3_request(data));
