//! Looking an address up.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;

use turnpike_plan::template::Template;
use turnpike_plan::variables::Evaluate;

use super::database::Database;
use super::plan::Proxies;
use super::value;
use crate::common::address::{Located, plain};

/// A variable out of a record.
pub(super) struct Found {
    pub(super) database: Arc<Database>,
    /// The text whose address is looked up; none is the client's address.
    pub(super) source: Option<Template>,
    pub(super) path: Vec<Box<str>>,
    pub(super) default: Option<Box<[u8]>>,
    pub(super) proxies: Arc<Proxies>,
}

/// A variable about the database.
pub(super) struct About {
    pub(super) database: Arc<Database>,
    pub(super) what: Fact,
}

/// What `metadata` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    BuildEpoch,
    LastCheck,
    LastChange,
}

impl<S: Located> Evaluate<S> for Found {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let found = self.address(subject).and_then(|address| {
            let content = self.database.content();
            // An IPv6 address has no record in a database of IPv4.
            let record = content.reader.lookup(plain(address)).ok()?;
            value::at(&record, &self.path)
        });
        match (found, &self.default) {
            (Some(text), _) => out.extend_from_slice(&text),
            (None, Some(text)) => out.extend_from_slice(text),
            (None, None) => return false,
        }
        true
    }
}

impl Found {
    fn address<S: Located>(&self, subject: &S) -> Option<IpAddr> {
        if let Some(source) = &self.source {
            let text = source.value(subject);
            return std::str::from_utf8(&text).ok()?.parse().ok();
        }
        let own = subject.client_address()?;
        Some(if self.proxies.trusted.is_empty() {
            own
        } else {
            subject.forwarded(own, &self.proxies.trusted, self.proxies.recursive)
        })
    }
}

impl<S> Evaluate<S> for About {
    fn evaluate(&self, _: &S, out: &mut Vec<u8>) -> bool {
        let content = self.database.content();
        let written = match self.what {
            Fact::BuildEpoch => write!(out, "{}", content.reader.metadata().build_epoch),
            Fact::LastCheck => write!(out, "{}", self.database.checked_s()),
            Fact::LastChange => write!(out, "{}", content.changed_s()),
        };
        written.is_ok()
    }
}
