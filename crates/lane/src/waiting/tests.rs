#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use tokio::runtime::{Builder, LocalOptions};

use super::Waited;
use crate::transport::Transport;

/// More reads than a task may have in a turn, and fewer bytes than a socket holds.
const READS: usize = 4096;

#[test]
fn input_that_is_always_there_leaves_the_lane_to_other_tasks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    peer.write_all(&[b'x'; READS]).unwrap();
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default());
    let other_ran = Rc::new(Cell::new(false));
    let read_before_other = Rc::new(Cell::new(0));
    runtime.unwrap().block_on(async {
        let waited = Waited::new(Transport::plain(socket.into()));
        let mut buffer = Vec::new();
        // The socket is registered, and its event is there.
        waited.read(&mut buffer, 1).await.unwrap();
        let (seen, count) = (Rc::clone(&other_ran), Rc::clone(&read_before_other));
        let reading = tokio::task::spawn_local(async move {
            while buffer.len() < READS {
                waited.read(&mut buffer, 1).await.unwrap();
                if !seen.get() {
                    count.set(buffer.len());
                }
            }
        });
        let ran = Rc::clone(&other_ran);
        tokio::task::spawn_local(async move { ran.set(true) });
        reading.await.unwrap();
    });
    assert!(other_ran.get());
    assert!(read_before_other.get() < READS, "{READS} reads in a turn");
}
