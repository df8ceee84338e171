//! The figures of a run, in the forms people and programs read.
//!
//! `text` is wrk's output, `json` has everything, `html` has pictures, `hdr` has the histograms;
//! `limits` decides whether the generator itself was the limit. Nothing here changes a figure.

pub(crate) mod csv;
pub(crate) mod hdr;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod text;
