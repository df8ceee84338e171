//! Asking a table.

use std::net::IpAddr;

use turnpike_http::exchange::Exchange;
use turnpike_plan::variables::{self, Evaluate, Subject};
use turnpike_stream::session::Session;

use super::address::{NONE, forwarded, plain};
use super::plan::{Geo, Table};

/// What has an address that can be looked up.
pub(super) trait Located: Subject {
    /// The client's own.
    fn client_address(&self) -> Option<IpAddr>;

    /// Follows what trusted proxies say back from an address.
    fn forwarded(&self, from: IpAddr, geo: &Geo) -> IpAddr;
}

impl<S: Located> Evaluate<S> for Geo {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let address = self.address(subject).map_or(NONE, plain);
        let value = match &self.table {
            Table::Networks(networks) => networks.find(address),
            Table::Ranges(ranges, default) => {
                let bits = match address {
                    IpAddr::V4(address) => address.to_bits(),
                    IpAddr::V6(_) => u32::MAX,
                };
                ranges.find(bits).or(*default)
            }
        };
        if let Some(value) = value {
            out.extend_from_slice(&self.values[value]);
        }
        true
    }
}

impl Geo {
    fn address<S: Located>(&self, subject: &S) -> Option<IpAddr> {
        let own = match self.address {
            None => subject.client_address()?,
            Some(variable) => {
                let mut text = Vec::new();
                variables::append(subject, variable, &mut text);
                std::str::from_utf8(&text).ok()?.parse().ok()?
            }
        };
        Some(match self.proxies.is_empty() {
            true => own,
            false => subject.forwarded(own, self),
        })
    }
}

impl Located for Exchange {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.client.peer().inet()?.ip())
    }

    fn forwarded(&self, from: IpAddr, geo: &Geo) -> IpAddr {
        let fields = self.request.head().fields.values(b"X-Forwarded-For");
        forwarded(from, fields, &geo.proxies, geo.proxy_recursive)
    }
}

impl Located for Session {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.peer.inet()?.ip())
    }

    /// A session has no fields; `proxy` does nothing here, as in nginx, which does not know it.
    fn forwarded(&self, from: IpAddr, _: &Geo) -> IpAddr {
        from
    }
}
