//! Asking a table.

use std::net::IpAddr;

use turnpike_plan::variables::{self, Evaluate, Sources};

use super::plan::{Geo, Table};
use crate::common::address::{Located, NONE, plain};

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

    fn sources(&self) -> Sources {
        Sources::Named(self.address.into_iter().collect())
    }
}

impl Geo {
    fn address<S: Located>(&self, subject: &S) -> Option<IpAddr> {
        let own = match self.address {
            None => subject.client_address()?,
            Some(variable) => {
                let write = |text: &mut Vec<u8>| {
                    variables::append(subject, variable, text);
                };
                variables::with_text(subject, write, |text| {
                    std::str::from_utf8(text).ok()?.parse().ok()
                })?
            }
        };
        Some(if self.proxies.is_empty() {
            own
        } else {
            subject.forwarded(own, &self.proxies, self.proxy_recursive)
        })
    }
}
