//! What this family does with a request.

use std::os::unix::ffi::OsStrExt;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_wire::message::Method;

use crate::common::files;
use crate::common::folder::{self, EntryKind};

/// Draws a file of the folder that the path stands for.
pub(super) struct Draw;

impl Handler for Draw {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let method = exchange.method();
        let asked = matches!(method, Method::Get | Method::Head | Method::Post);
        if exchange.walk.path().last() != Some(&b'/') || !asked {
            return Verdict::Declined;
        }
        files::with_file_path(exchange, |exchange, path| draw(exchange, path))
    }
}

fn draw(exchange: &mut Exchange, path: &[u8]) -> Verdict {
    let entries = match folder::open(exchange, folder::without_slash(path)) {
        Ok(entries) => entries,
        Err(status) => return Verdict::Status(status),
    };
    let mut files = Vec::new();
    for entry in entries {
        match folder::kind(exchange, &entry) {
            Ok(EntryKind::File) => files.push(entry.file_name()),
            Ok(_) => {}
            Err(status) => return Verdict::Status(status),
        }
    }
    if files.is_empty() {
        return Verdict::Declined;
    }
    // The high half of the product: each file is as likely as the others.
    let drawn = u128::from(exchange.lane.random()) * files.len() as u128;
    let drawn = (drawn >> u64::BITS) as usize;
    if let Some(name) = files.get(drawn) {
        exchange.walk.path_mut().extend_from_slice(name.as_bytes());
    }
    Verdict::Redirect
}
