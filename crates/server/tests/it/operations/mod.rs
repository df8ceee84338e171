//! Tests of the life of processes: start, signals, reloads, upgrades, crashes and ends.

mod adoption;
mod control_api;
mod control_socket;
mod drain;
mod lanes;
mod process;
mod sandbox;
mod secure;
mod shutdown_timeout;
mod sockets;
mod systemd;
mod upgrade;
