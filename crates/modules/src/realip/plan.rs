//! Reads which clients are trusted, and where the address is.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::LocationDraft;

use super::forwarded::Trust;
use super::handler::{Place, RealAddress};
use turnpike_plan::cidr::Cidr;

/// Adds the replacement where somebody is trusted.
pub(super) fn location(view: View<'_>, draft: &mut LocationDraft) -> Result<(), ConfError> {
    let trust = trust(view)?;
    if trust.is_empty() {
        return Ok(());
    }
    let place = match view.text("real_ip_header") {
        "X-Forwarded-For" => Place::ForwardedFor,
        "proxy_protocol" => Place::ProxyProtocol,
        name => Place::Field(name.as_bytes().into()),
    };
    let handler = Arc::new(RealAddress {
        trust,
        place,
        recursive: view.flag("real_ip_recursive"),
    });
    draft.add_handler(HandlerPlace::ClientAddress, handler.clone());
    draft.add_handler(HandlerPlace::LocationClientAddress, handler);
    Ok(())
}

/// The proxies that are trusted in a block.
pub(super) fn trust(view: View<'_>) -> Result<Trust, ConfError> {
    let mut trust = Trust::default();
    for entry in view.nearest_all("set_real_ip_from") {
        trusted(entry, &mut trust).map_err(|message| view.error(entry.span, message))?;
    }
    Ok(trust)
}

fn trusted(entry: &Entry, trust: &mut Trust) -> Result<(), Complaint> {
    let text = entry
        .arguments
        .first()
        .map_or("", |word| word.text.as_str());
    if text == "unix:" {
        trust.unix = true;
        return Ok(());
    }
    if let Some(range) = Cidr::parse(text) {
        trust.ranges.push(range);
        return Ok(());
    }
    let unknown = || format!("host not found in set_real_ip_from \"{text}\"");
    if text.contains('/') {
        return Err(unknown().into());
    }
    let found = (text, 0).to_socket_addrs().map_err(|_| unknown())?;
    trust.ranges.extend(found.map(|address| match address.ip() {
        IpAddr::V4(address) => Cidr::V4(address.to_bits(), u32::MAX),
        IpAddr::V6(address) => Cidr::V6(address.to_bits(), u128::MAX),
    }));
    Ok(())
}
