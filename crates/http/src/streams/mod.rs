//! The streams of a connection that many requests share, and their answers, in any protocol that
//! has such: they stand on [`frames::Frames`], and know no frame.

pub(crate) mod answer;
pub(crate) mod frames;
pub(crate) mod places;
pub(crate) mod serving;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod tunnel;
