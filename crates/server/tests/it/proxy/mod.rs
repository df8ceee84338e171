//! Tests of `proxy_pass` and its relatives, from the request of a client to its response.

mod awaited;
mod basic;
mod connection;
mod faults;
mod header;
mod hops;
mod interim;
mod more;
mod tls;
mod upgrades;
