//! A response that was not stored: the reason, and the call that failed, for the log.

use crate::disk::WriteFailure;
use crate::why::WhyNotStored;

/// A response that was not stored.
#[derive(Debug)]
pub struct NotStored {
    /// The reason.
    pub why: WhyNotStored,
    /// With [`WhyNotStored::WriteFailed`], the call that failed.
    pub failure: Option<WriteFailure>,
}

impl From<WhyNotStored> for NotStored {
    fn from(why: WhyNotStored) -> Self {
        NotStored { why, failure: None }
    }
}

impl From<WriteFailure> for NotStored {
    fn from(failure: WriteFailure) -> Self {
        NotStored {
            why: WhyNotStored::WriteFailed,
            failure: Some(failure),
        }
    }
}
