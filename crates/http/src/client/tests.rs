//! What each kind of client does with the verbs.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use tokio::runtime::{Builder, LocalOptions};
use turnpike_lane::transport::Transport;

use turnpike_wire::message::Fields;

use super::*;
use crate::h1::input::Input;
use crate::h1::watch::Watch;
use crate::testing;

fn exchange(request: &str) -> Exchange {
    let plan = testing::plan("server { listen 127.0.0.1:80; }").unwrap();
    testing::exchange(plan, request.as_bytes())
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().build_local(LocalOptions::default());
    runtime.unwrap().block_on(work)
}

/// An HTTP/1 client's end, and what knows of the other.
fn peer() -> (UnixStream, Peer) {
    peer_with(b"")
}

/// The same, where `received` has come already.
fn peer_with(received: &[u8]) -> (UnixStream, Peer) {
    let (client, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let watch = Watch::new(0);
    watch.event(false);
    let mut input = Input::new(&Rc::default());
    input.put(received);
    (
        client,
        Peer::new(Transport::plain(ours.into()), input, watch),
    )
}

fn sent(mut client: UnixStream, peer: Peer) -> String {
    drop(peer);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn an_interim_response_is_text_for_an_http1_peer_only() {
    let mut fields = Fields::default();
    fields.add(b"Link", b"</a>; rel=preload");
    let head = InterimHead {
        status: 103,
        fields: &fields,
    };
    let text = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    let (client, peer) = peer();
    let mut asked = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait(Client::Http1(&peer).send_interim(&mut asked, &head)).unwrap();
    assert_eq!(asked.account.sent_bytes(), text.len() as u64);
    assert_eq!(sent(client, peer), text);
    let mut asked = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait(Client::Nobody.send_interim(&mut asked, &head)).unwrap();
    assert_eq!(asked.account.sent_bytes(), 0);
}

#[test]
fn a_body_comes_from_a_peer_and_never_from_nobody() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    let (mut client, peer) = peer();
    client.write_all(b"body").unwrap();
    let mut asked = exchange(head);
    assert!(wait(Client::Http1(&peer).read_body(&mut asked)).is_ok());
    assert_eq!(asked.body.bytes(), b"body");
    assert_eq!(sent(client, peer), "HTTP/1.1 100 Continue\r\n\r\n");
    let mut asked = exchange(head);
    let read = wait(Client::Nobody.read_body(&mut asked));
    assert!(matches!(read, Err(Verdict::Close)));
    let mut asked = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(wait(Client::Nobody.read_body(&mut asked)).is_ok());
}

#[test]
fn a_peer_goes_and_nobody_stays() {
    let (client, peer) = peer();
    drop(client);
    let pending = std::future::pending::<()>();
    assert_eq!(wait(Client::Http1(&peer).unless_gone(pending)), None);
    let done = wait(Client::Nobody.unless_gone(async { 1 }));
    assert_eq!(done, Some(1));
}

#[test]
fn only_a_connection_can_be_taken_over() {
    assert!(Client::Nobody.take_over().is_none());
    let (client, peer) = peer_with(b"early");
    let mut duplex = Client::Http1(&peer).take_over().unwrap();
    assert_eq!(std::mem::take(&mut duplex.early), b"early");
    let taken_bytes = std::cell::Cell::new(1);
    wait(duplex.write_all(b"hello", 0, &taken_bytes)).unwrap();
    assert_eq!(taken_bytes.get(), 6);
    duplex.finish();
    assert_eq!(sent(client, peer), "hello");
}
