//! The life of a request of HTTP/1 on its connection: it is served in the turn, awaited or driven,
//! and its answer is put on the socket.

mod answer;
mod awaited;
mod driven;
mod rate;
mod serve;
mod splicing;
mod transfer;
