//! Asking a table.

use std::net::IpAddr;

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::Evaluate;

use super::address::{NONE, forwarded, plain};
use super::plan::{Geo, Table};

impl Evaluate<Exchange> for Geo {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let address = self.address(exchange).map_or(NONE, plain);
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
    fn address(&self, exchange: &Exchange) -> Option<IpAddr> {
        let own = match self.address {
            None => exchange.client.peer.inet()?.ip(),
            Some(variable) => {
                let mut text = Vec::new();
                exchange.variable(variable, &mut text);
                std::str::from_utf8(&text).ok()?.parse().ok()?
            }
        };
        if self.proxies.is_empty() {
            return Some(own);
        }
        let fields = exchange.head.fields.values(b"X-Forwarded-For");
        Some(forwarded(own, fields, &self.proxies, self.proxy_recursive))
    }
}
