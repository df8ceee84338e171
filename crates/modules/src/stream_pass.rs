//! `pass` of `stream`: a connection is given to the server of another address of ours, of HTTP or
//! of `stream`, as if it had been accepted there.

use std::net::SocketAddr;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, Merge, ReferenceText, Row, View, bytes_of};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_plan::Quoted;
use turnpike_plan::template::Template;
use turnpike_stream::client::Client;
use turnpike_stream::phase::{Content, LocalFuture, Status};
use turnpike_stream::plan::{Builder, Family, ServerDraft};
use turnpike_stream::session::Session;
use turnpike_upstream::Address;

use crate::upstream::{Target, Url};

/// How often one connection is passed on: more is taken for a cycle, as in nginx.
const PASSES_MAX: u8 = 10;

const ROWS: &[Row] = &[Row {
    name: "pass",
    contexts: &[Context::StreamServer],
    merge: Merge::Own,
    variables: Some(0),
    syntax: "address",
    summary: "Passes the connection to the server that listens on that address, in `http` or in \
        `stream`, as if it had been accepted there.",
    ..Row::PLAIN
}];

/// Where the connections of a server go.
enum Pass {
    /// As written.
    Fixed(Destination),
    /// Known when a session is there.
    Evaluated(Template),
}

/// One of our addresses.
enum Destination {
    Inet(SocketAddr),
    Unix(Vec<u8>),
}

pub(crate) const FAMILY: Family = Family {
    name: "stream pass",
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("stream_pass/reference.md"))],
    server,
    ..Family::NONE
};

fn server(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("pass") else {
        return Ok(());
    };
    let text = entry.argument(0);
    let template = builder.template(view, entry, &bytes_of(text))?;
    let pass = match template.constant() {
        None => Pass::Evaluated(template),
        Some(_) => {
            let fixed = fixed(text);
            Pass::Fixed(fixed.map_err(|message| view.error(entry.span, message))?)
        }
    };
    draft
        .set_content(Arc::new(pass))
        .map_err(|what| view.error(entry.span, format!("\"pass\" directive {what}")))
}

/// The address that a configuration names. A name is looked up.
fn fixed(text: &str) -> Result<Destination, Complaint> {
    let failed = |what: &str| format!("{what} in \"{text}\" of the \"pass\" directive");
    let url = Url::parse(text).map_err(failed)?;
    if url.port.is_none() && !matches!(url.target, Target::Unix(_)) {
        return Err(failed("no port").into());
    }
    let addresses = url.addresses(0).map_err(failed)?;
    let destination = addresses.into_iter().next().map(|address| match address {
        Address::Inet(address) => Destination::Inet(address),
        Address::Unix(path) => Destination::Unix(path.to_vec()),
    });
    destination.ok_or_else(|| failed("no addresses").into())
}

/// The address that variables have given. No name is looked up.
fn evaluated(text: &str) -> Result<Destination, Complaint> {
    let failed = |what: &str| format!("{what} in pass \"{text}\"");
    let url = Url::parse(text).map_err(failed)?;
    match (url.target, url.port) {
        (Target::Unix(path), _) => Ok(Destination::Unix(path)),
        (Target::Name(_), _) => Err(failed("no addresses").into()),
        (Target::Ip(_), None) => Err(failed("no port").into()),
        (Target::Ip(ip), Some(port)) => Ok(Destination::Inet(SocketAddr::new(ip, port))),
    }
}

impl Destination {
    /// Whether that is it; an address that stands for all of its family is.
    fn is(&self, listen: &ListenAddress) -> bool {
        match (self, listen) {
            (Destination::Inet(address), ListenAddress::Tcp(listen)) => {
                let is_same_ip = listen.ip() == address.ip();
                let is_any = listen.ip().is_unspecified() && listen.is_ipv4() == address.is_ipv4();
                listen.port() == address.port() && (is_same_ip || is_any)
            }
            (Destination::Unix(path), ListenAddress::Unix(listen)) => **listen == **path,
            _ => false,
        }
    }
}

impl Content for Pass {
    fn datagrams_max(&self) -> u64 {
        1
    }

    fn serve<'a>(
        &'a self,
        session: &'a mut Session,
        client: &'a Client,
    ) -> LocalFuture<'a, Status> {
        Box::pin(async move {
            session.action.set("passing connection to port");
            self.choose(session, client).unwrap_or_else(|message| {
                session.log(Level::Error, format_args!("{message}"));
                Status::InternalServerError
            })
        })
    }
}

impl Pass {
    /// Says where the connection goes; the error is why it goes nowhere.
    fn choose(&self, session: &mut Session, client: &Client) -> Result<Status, String> {
        let Client::Connected(connected) = client else {
            return Err("cannot pass udp connection".to_owned());
        };
        if !connected.is_plain() && !session.preread.is_empty() {
            return Err("cannot pass connection with preread data".to_owned());
        }
        if session.passes >= PASSES_MAX {
            return Err("stream pass cycle".to_owned());
        }
        let text;
        let destination = match self {
            Pass::Fixed(destination) => destination,
            Pass::Evaluated(template) => {
                text = template.value(session);
                let shown = || Quoted(&text).to_string();
                let read = std::str::from_utf8(&text)
                    .map_err(|_| format!("invalid host in pass \"{}\"", shown()))?;
                &evaluated(read)?
            }
        };
        let mut destinations = session.plan.destinations.iter();
        match destinations.find(|listen| destination.is(listen)) {
            Some(listen) => session.pass_to = Some(listen.clone()),
            None => {
                let name = match destination {
                    Destination::Inet(address) => address.to_string(),
                    Destination::Unix(path) => format!("unix:{}", Quoted(path)),
                };
                let message = format_args!("port not found for \"{name}\"");
                session.log(Level::Error, message);
            }
        }
        Ok(Status::Ok)
    }
}

#[cfg(test)]
mod tests {
    //! Which addresses are meant.

    #![allow(clippy::unwrap_used)]

    use turnpike_lane::gate::ListenAddress;

    use super::{Destination, evaluated, fixed};

    fn listen(text: &str) -> ListenAddress {
        match text.strip_prefix("unix:") {
            Some(path) => ListenAddress::Unix(path.as_bytes().into()),
            None => ListenAddress::Tcp(text.parse().unwrap()),
        }
    }

    #[test]
    fn an_address_is_that_of_a_listen_or_one_that_stands_for_all() {
        let cases = [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.0.0.1:80", "[::]:80", false),
            ("[::1]:80", "[::]:80", true),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
            ("unix:/a", "127.0.0.1:80", false),
        ];
        for (destination, address, expected) in cases {
            let found = evaluated(destination).unwrap();
            assert_eq!(
                Destination::is(&found, &listen(address)),
                expected,
                "{destination} {address}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused_in_nginxs_words() {
        let cases = [
            ("127.0.0.1", "no port in pass \"127.0.0.1\""),
            ("a.test:80", "no addresses in pass \"a.test:80\""),
            ("", "no host in pass \"\""),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluated(text).err(), Some(expected.into()));
        }
        assert_eq!(
            fixed("127.0.0.1").err(),
            Some("no port in \"127.0.0.1\" of the \"pass\" directive".into())
        );
    }
}
