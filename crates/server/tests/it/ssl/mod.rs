//! Tests of TLS with clients and with upstream servers, judged by foreign programs.

mod basic;
mod by_name;
mod chains;
mod choice;
mod clients;
mod cold_files;
mod compression;
mod early;
mod files;
mod groups;
mod hellos;
mod ja4;
mod key_log;
mod ocsp;
mod stapling;
mod strangers;
