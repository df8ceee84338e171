//! The configuration that comes of manifests, served by the real server: tables of manifests,
//! requests and expected answers.

#![allow(clippy::unwrap_used)]

mod admission;
mod annotations;
mod api_server;
mod bed;
mod chart;
mod cluster;
mod collisions;
mod command_line;
mod documentation;
mod gateway;
mod gateway_status;
mod hostile;
mod manifests;
mod paths;
mod services;
mod settings;
mod tenants;
mod tls;
